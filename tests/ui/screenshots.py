"""The pictures of the page in docs/img, taken anew: ``python -m tests.ui.screenshots [photograph]``.

Taken by hand where the page changes, and looked at; no test writes into the repository.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import threading
from pathlib import Path

import httpx
import pyvips
from playwright.sync_api import Page, expect

from tests.ui.site import PHONE, Site, photograph, site

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "img"
PICTURES = Path(__file__).resolve().parents[2] / ".pictures"
MODELS = ("OpenGVLab/InternVL3-8B", "google/gemma-3-12b-it", "gpt-4o")
_SECONDS_OF_LOAD = 25
_BAD_POLICY = "tenant: acme\nkv_tokens_in_flight: 300000\nrules:\n  max_pixles: 1310720\n  output: jpg\n"


def _playground(page: Page, picture: Path) -> None:
    page.set_input_files("#file", picture)
    for model in MODELS:
        page.fill("#model", model)
        page.press("#model", "Enter")
    page.select_option("#task", "ocr")
    expect(page.locator("#compared tbody tr")).to_have_count(len(MODELS) + 1)
    expect(page.locator("#curve svg path")).to_have_count(len(MODELS) + 1)
    expect(page.locator("#facts")).to_contain_text("tasks.ocr.max_pixels")
    page.evaluate("document.activeElement.blur()")


def _shoot(page: Page, name: str) -> None:
    """With a palette: a third of the bytes, and nobody sees it."""
    picture = pyvips.Image.new_from_buffer(page.screenshot(), "")
    picture.pngsave(str(FOLDER / f"{name}.png"), palette=True, Q=90, effort=7, dither=0.6)


def _load(up: Site, pictures: list[Path], ended: threading.Event) -> None:
    urls = ["data:image/jpeg;base64," + base64.b64encode(path.read_bytes()).decode() for path in pictures]
    with httpx.Client(trust_env=False, timeout=30) as client:
        number = 0
        while not ended.is_set():
            up.chat(client, number, urls[number % len(urls)])
            number += 1
            ended.wait(0.02)


def take(picture: Path, others: list[Path]) -> None:
    """Write all of them."""
    with site(Path(tempfile.mkdtemp())) as up:
        ended = threading.Event()
        work = threading.Thread(target=_load, args=(up, [picture, *others], ended))
        work.start()
        for dark in (False, True):
            name = "dark" if dark else "light"
            with up.page(dark=dark) as page:
                _playground(page, picture)
                _shoot(page, f"ui-playground-{name}")
                page.click("nav a[href='#live']")
                page.wait_for_timeout(_SECONDS_OF_LOAD * 1000 * (not dark) + 3000)
                page.click("#pause")
                page.locator("#decisions li", has_text="classify").first.locator("summary").click()
                _shoot(page, f"ui-live-{name}")
                page.click("nav a[href='#policies']")
                page.select_option("#policy-tenant", "acme")
                page.fill("#pasted", _BAD_POLICY)
                page.click("#check-form button")
                expect(page.locator("#verdict")).to_contain_text("mistake")
                page.evaluate("scrollTo(0, 0)")
                _shoot(page, f"ui-policies-{name}")
        with up.page(PHONE) as page:
            page.click("nav a[href='#live']")
            page.wait_for_selector("#decisions li")
            _shoot(page, "ui-live-phone")
        ended.set()
        work.join()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        drawn = photograph(Path(folder), 4032, 3024)
        given = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES / "phone-12mp.jpg"
        small = PICTURES / "photo-small.jpg"
        take(given if given.is_file() else drawn, [small] if small.is_file() else [])
