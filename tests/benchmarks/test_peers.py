"""What the peers' benchmark makes of its measurements; the peers themselves are started by the benchmark only."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.peers.affinity import Met
from benchmarks.peers.bars import chart
from benchmarks.peers.bodies import fresh_images, with_comment
from benchmarks.peers.environments import environment
from benchmarks.peers.line_up import EVERYBODY
from benchmarks.peers.page import FIGURE, PAGE, RESULTS, merged, with_measured
from benchmarks.peers.report import failure_rows, markdown, ratios, speed_rows, table

_JPEG = b"\xff\xd8\xff\xdbpixels"


def costs(**cpu_ms: float) -> dict[str, dict[str, float]]:
    return {name.replace("_", "-"): {"cpu_ms": value, "p50_ms": 2 * value} for name, value in cpu_ms.items()}


def test_ratios_are_the_gateways_cpu_over_each_others_and_none_for_who_is_missing() -> None:
    found = ratios(costs(gateway=1.0, relay=0.5, sglang_router=0.4))
    assert (found["cpu_ms"], found["cpu_ratio_to_relay"], found["cpu_ratio_to_sglang_router"]) == (1.0, 2.0, 2.5)
    assert found["cpu_ratio_to_litellm"] is None


def test_who_could_not_be_installed_has_no_column_and_is_named() -> None:
    report: dict[str, object] = {"costs": {"text": costs(gateway=1.0, relay=0.05)}, "missing": {"litellm": "no wheel"}}
    assert speed_rows(report) == [
        ["CPU-ms per request (p50, ms)", "gateway", "relay"],
        ["text of 0.6 KB", "1.00 (2.00)", "0.050 (0.10)"],
    ]
    assert table(report)[-1] == "left out: litellm: no wheel"


def test_homes_and_cold_encodes() -> None:
    met = Met(({1: 5, 2: 5}, {2: 1, 3: 4})).to_json()
    assert met == {"homes": 2, "cold_encodes": 4, "split": [10, 5], "pictures": 3}


def test_failures_are_told_in_words() -> None:
    found = {
        "fields_lost": [],
        "dies_in_stream": {"events": 100, "error_event": False, "ended_cleanly": False},
        "too_large": {"status": 413, "type": "text/plain"},
        "no_backend": {"status": 500, "type": "", "after_s": 0.4, "retry_after": None, "names_backend": True},
    }
    rows = failure_rows({"failure": {"x": found}, "recovery_s": {"x": None}})
    assert [row[1] for row in rows] == [
        "x",
        "none",
        "100 events, no word, connection cut",
        "413 text/plain",
        "500 , after 0.4 s, names the backend's address",
        "not within 90 s",
    ]
    assert markdown(rows)[:2] == ["| case | x |", "| --- | --- |"]


def test_the_same_picture_in_ever_another_file() -> None:
    following = fresh_images(_JPEG)
    files = []
    for _ in range(3):
        tree = json.loads(following())
        url = tree["messages"][0]["content"][0]["image_url"]["url"]
        files.append(base64.b64decode(url.partition(",")[2], validate=True))
    assert files == [with_comment(_JPEG, number) for number in (1, 2, 3)]


def test_a_peer_that_cannot_be_installed_says_why(tmp_path: Path) -> None:
    (tmp_path / "sglang-router").write_text("a file where the environment should be")
    assert "sglang-router" in environment("sglang-router", tmp_path).missing
    with pytest.raises(KeyError):
        environment("nobody", tmp_path)


def test_the_figure_has_a_bar_for_everybody_who_was_there() -> None:
    report = {"costs": {"text": costs(gateway=1.0, litellm=26.0), "stream": costs(gateway=10.0, relay=8.0)}}
    drawn = ET.fromstring(chart(report))
    assert len(drawn.findall("{*}rect")) == 1 + 4


def test_the_page_is_what_the_stored_report_says() -> None:
    report = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert with_measured(page, report) == page
    assert FIGURE.read_text(encoding="utf-8") == chart(report)
    assert {*report["costs"]["text"]} <= {*EVERYBODY}
    with pytest.raises(ValueError, match="no place"):
        with_measured("a page without marks", report)


def test_reports_of_different_parts_become_one() -> None:
    facts = {"rounds": 5, "date": "2030-01-01", "machine": {"cpus": 2}, "missing": {}}
    one = {**facts, "costs": {"text": {}}, "text": {"cpu_ms": 1.0}}
    other = {**facts, "date": "2030-01-02", "costs": {}, "missing": {"litellm": "no wheel"}, "rss": {}}
    assert merged([one, other]) == {**one, "missing": {"litellm": "no wheel"}, "rss": {}}
