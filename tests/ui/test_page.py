"""The page in a real Chromium, in front of a real gateway: what it shows is what the commands say."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.cli.command import run
from tests.e2e.processes import until
from tests.ui.site import CAP_PIXELS, MODEL, PHONE, Site, photograph, site

OTHERS = ("OpenGVLab/InternVL3-8B", "google/gemma-3-12b-it", "gpt-4o")
# A file put into the page as a hand would drop it.
_DROP = """async ([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], name, {type: "image/jpeg"}));
  const event = new DragEvent("drop", {dataTransfer: given, bubbles: true, cancelable: true});
  document.getElementById("drop").dispatchEvent(event);
}"""

_DRAWN = "image => image.complete && image.naturalWidth > 0"

# All rules in light; in dark those that colours decide.
_AXE: tuple[tuple[Literal["light", "dark"], dict[str, Any]], ...] = (
    ("light", {"resultTypes": ["violations"]}),
    ("dark", {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]}),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def up(folder: Path) -> Iterator[Site]:
    with site(folder) as found:
        yield found


@pytest.fixture(scope="module")
def picture(folder: Path) -> Path:
    return photograph(folder)


@pytest.fixture(scope="module")
def page(up: Site, picture: Path) -> Iterator[Page]:
    """The playground with the photograph dropped into it."""
    with up.page() as opened:
        opened.evaluate(_DROP, [picture.name, base64.b64encode(picture.read_bytes()).decode()])
        expect(opened.locator("#shown")).to_be_visible()
        yield opened


def estimated(size: str, *models: str) -> list[dict[str, Any]]:
    """What the command says; of closed APIs, at the level they default to."""
    flags = [word for model in models for word in ("--model", model)]
    rows: list[dict[str, Any]] = run("estimate", size, *flags, "--json").json
    return [row for row in rows if row.get("detail") in {None, "high"}]


def capped(size: str) -> dict[str, Any]:
    """What the command says of the served model, with the cap of its backends."""
    found: dict[str, Any] = run("estimate", size, "--model", MODEL, "--max-pixels", str(CAP_PIXELS), "--json").json[0]
    return found


def cells(page: Page) -> list[list[str]]:
    return [row.locator("th, td").all_inner_texts() for row in page.locator("#compared tbody tr").all()]


def as_shown(size: str) -> str:
    return size.replace("x", " × ")


def test_without_the_token_the_door_stays_shut(up: Site) -> None:
    with up.page(token=None) as page:
        page.fill("#token", "wrong")
        page.click("#login-form button")
        expect(page.locator("#login-error")).to_have_text("This is not the admin token.")
        expect(page.locator("#playground")).to_be_hidden()


def test_a_dropped_photograph_shows_its_grid_and_the_numbers_of_the_command(page: Page) -> None:
    told = capped("1600x1200")
    ((name, seen_at, grid, tokens, *_, kv, prefill, encoder, why),) = cells(page)
    rows, columns = told["grid"].split("x")
    assert name == MODEL
    assert (seen_at, grid) == (as_shown(told["target"]), f"{columns} × {rows}")
    assert tokens == f"{told['tokens']:,}" == page.locator("#facts dd").first.inner_text().split("\n")[0]
    assert kv == f"{told['kv_mb']:.0f} MB"
    assert (prefill, encoder) == (f"{told['prefill_ms']:.1f} ms", f"{told['encode_ms']:.0f} ms")
    assert why.startswith("the engine would shrink it")
    expect(page.locator("#delivered-facts")).to_contain_text(as_shown(told["target"]))
    for frame, across in (("original", columns), ("delivered", columns)):
        box = page.locator(f"#{frame} svg")
        assert box.get_attribute("viewBox") == f"0 0 {across} {rows}"
        until(lambda frame=frame: page.locator(f"#{frame} img").evaluate(_DRAWN), "a picture that is drawn")  # type: ignore[misc]
    delivered = page.locator("#delivered img").evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert "x".join(map(str, delivered)) == told["target"]
    page.uncheck("#show-grid")
    expect(page.locator(".frame svg")).to_have_count(0)
    page.check("#show-grid")


def test_the_slider_asks_for_the_count_of_that_size(page: Page) -> None:
    slider = page.locator("#scale")
    expect(page.locator("#curve svg path")).to_have_count(1)
    for percent, size in ((50, "800x600"), (10, "160x120")):
        slider.fill(str(percent))
        told = capped(size)
        expect(page.locator("#facts dd").first).to_contain_text(f"{told['tokens']:,}")
        expect(page.locator("#scale-size")).to_have_text(f"{as_shown(size)} ({percent} %)")
        rows, columns = told["grid"].split("x")
        expect(page.locator("#delivered svg")).to_have_attribute("viewBox", f"0 0 {columns} {rows}")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#facts dd").first).to_contain_text(f"{capped('1600x1200')['tokens']:,}")


def test_models_are_compared_as_the_command_compares_them(page: Page) -> None:
    for model in OTHERS:
        page.fill("#model", model)
        page.press("#model", "Enter")
    expect(page.locator("#compared tbody tr")).to_have_count(4)
    shown = {row[0].split(" ")[0]: row for row in cells(page)[1:]}
    for told in estimated("1600x1200", *OTHERS):
        row = shown[told["model"]]
        assert (row[1], row[3]) == (as_shown(told["target"]), f"{told['tokens']:,}")
        if "kv_mb" in told:
            assert float(row[6].split(" ")[0]) == pytest.approx(told["kv_mb"], abs=0.6)
    expect(page.locator("#curve svg path")).to_have_count(4)


def test_the_rule_that_fired_says_where_it_was_written(page: Page) -> None:
    page.select_option("#task", "classify")
    rule = page.locator("#facts > div").last
    expect(rule).to_contain_text("the policy's cap")
    expect(rule).to_contain_text("max_pixels = 262,144, from policies/default.yaml:4 tasks.classify.max_pixels")
    expect(page.locator("#explained-box")).to_contain_text("What would become of this request")
    page.click("#explained-box summary")
    expect(page.locator("#explained")).to_contain_text("task classify (header x-vlmgw-task)")
    expect(page.locator("#explained")).to_contain_text("picker:")


def test_the_copied_request_works(page: Page, folder: Path) -> None:
    page.click("#copy-curl")
    expect(page.locator("#copied")).to_contain_text("Copied as curl")
    text = page.evaluate("navigator.clipboard.readText()")
    command = ["bash", "-c", text.replace("curl ", "curl -sS --noproxy '*' ", 1)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    answer = json.loads(ran.stdout)
    assert answer["usage"]["prompt_tokens_details"]["multimodal_tokens"]["image"] == 234
    page.click("#copy-python")
    expect(page.locator("#copied")).to_contain_text("Copied as Python")
    code = page.evaluate("navigator.clipboard.readText()")
    compile(code, "copied.py", "exec")
    assert f'model="{MODEL}"' in code


def test_a_file_that_is_no_picture_is_told(up: Site, folder: Path) -> None:
    (folder / "none.jpg").write_bytes(b"this is text")
    with up.page() as page:
        page.set_input_files("#file", folder / "none.jpg")
        expect(page.locator("#problem")).to_be_visible()
        expect(page.locator("#shown")).to_be_hidden()


def test_live_shows_requests_as_they_happen(up: Site, picture: Path) -> None:
    url = "data:image/jpeg;base64," + base64.b64encode(picture.read_bytes()).decode()
    with up.page() as page, httpx.Client(trust_env=False, timeout=30) as client:
        page.click("nav a[href='#live']")
        expect(page.locator("#backends tbody tr")).to_have_count(2)
        before = int(up.gateway.metric("requests_total", outcome="ok"))
        with ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(lambda number: up.chat(client, number, url), range(24)))
        assert set(statuses) == {200}
        expect(page.locator("#live-facts > div").first).to_contain_text(f"{before + 24} in all")
        expect(page.locator("#decisions li")).to_have_count(before + 24)
        expect(page.locator("#state")).to_have_text("live")
        rows = page.locator("#backends tbody tr")
        until(
            lambda: sum(int(row.locator("td").last.inner_text()) for row in rows.all()) == before + 24,
            "each request on one of the backends",
        )
        asked = up.gateway.metric("image_tokens_total", kind="asked") or up.gateway.metric("image_tokens_total")
        assert asked > 0
        page.locator("#decisions li", has_text="classify").first.locator("summary").click()
        expect(page.locator("#decisions details[open] pre")).to_contain_text("picker:")
        expect(page.locator("#tenants tbody tr", has_text="acme")).to_contain_text("200,000")
        page.click("#pause")
        expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")


def test_policies_say_where_values_come_from_and_what_is_wrong_with_a_file(up: Site) -> None:
    with up.page() as page:
        page.click("nav a[href='#policies']")
        page.select_option("#policy-tenant", "acme")
        page.select_option("#policy-task", "classify")
        page.fill("#policy-model", MODEL)
        page.check("#policy-own")
        row = page.locator("#policy-values tbody tr", has_text="max_images")
        expect(row.first).to_contain_text("policies/acme.yaml:4 models.Qwen/*.max_images")
        page.fill("#policy-find", "max_pixels")
        expect(page.locator("#policy-values tbody tr")).to_have_count(1)
        page.fill("#pasted", "tenant: acme\nrules:\n  max_pixles: 5\n")
        page.click("#check-form button")
        expect(page.locator("#verdict")).to_contain_text("pasted.yaml:3 rules.max_pixles")
        expect(page.locator("#verdict")).to_contain_text("max_pixels")
        page.fill("#pasted", "tenant: acme\nkv_tokens_in_flight: 300000\nmodels:\n  'Qwen/*': {max_images: 4}\n")
        page.click("#check-form button")
        expect(page.locator("#verdict")).to_contain_text("kv_tokens_in_flight: 200000 → 300000")


def test_nothing_hinders_people_with_disabilities_in_light_and_dark(up: Site, page: Page) -> None:
    axe = Axe()
    for name in ("playground", "live", "policies"):
        page.goto(f"{up.gateway.admin}/ui/#{name}")
        if name == "policies":
            page.select_option("#policy-tenant", "acme")
            page.check("#policy-own")
        page.wait_for_selector(f"#{name}:not([hidden]) tbody tr")
        for scheme, options in _AXE:
            page.emulate_media(color_scheme=scheme)
            found = axe.run(page, options=options).response["violations"]
            grave = [each for each in found if each["impact"] in {"serious", "critical"}]
            assert grave == [], json.dumps([(each["id"], [n["html"] for n in each["nodes"]][:3]) for each in grave])


def test_it_fits_a_phone_and_a_keyboard_finds_its_way(up: Site) -> None:
    with up.page(PHONE) as page:
        for name in ("playground", "live", "policies"):
            page.goto(f"{up.gateway.admin}/ui/#{name}")
            page.wait_for_selector(f"#{name}:not([hidden])")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.locator(".skip").focus()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.hash") == "#playground"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        expect(page.locator("#playground")).to_be_visible()


def test_afterwards_no_other_host_was_asked_and_nothing_was_complained_of(up: Site) -> None:
    assert up.hosts() == {up.gateway.admin.removeprefix("http://")}
    assert up.complaints == []
    assert not [line for line in up.gateway.lines("exchange") if "playground" in line["request_id"]]
