"""One frame, on wide and narrow terminals."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gateway.cli.top.reading import BackendRow, Reading, TenantRow, read
from gateway.cli.top.screen import screen
from tests.cli.top.test_reading import pair


def drawn(reading: Reading, *problems: str, width: int = 120, height: int | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, legacy_windows=False)
    console.print(screen(reading, list(problems), width=width, height=height))
    return out.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def test_everything_is_told() -> None:
    text = drawn(read([pair()]), width=160)
    for told in (
        "vlm-gateway 0.1.0", "12.0/s", "shed 2.0", "rate_exceeded 2.0/s", "in flight 3, oldest 2.5 s", "loop lag p50",
        "500/s instead of 2,000 (75% saved)", "1 of 2 workers busy █████░░░░░", "300 of 1,000 ███░░░░░░░",
        "2 MB/s became 0 B/s", "cache hits 25%",
    ):  # fmt: skip
        assert told in text, told
    assert "first byte –" in text


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = drawn(read([pair()]), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "acme" in text


def test_problems_are_told_and_no_gateway_is_no_table() -> None:
    text = drawn(read([]), "http://b: no answer (ConnectError)")
    assert "no answer" in text
    assert "Backends" not in text
    text = drawn(replace(read([pair()]), draining=1, reload_failed=1, store_away=1, breakers={"open": 2, "closed": 1}))
    assert "1 draining  1 with a failed reload  1 cut off" in text
    assert "2 open" in text


def test_long_lists_are_cut_to_the_terminals_height() -> None:
    backends = [BackendRow(f"b{place}", 1, 1, 0.0, 0.0, 0.0, 4.0, None) for place in range(50)]
    tenants = [TenantRow(f"t{place}", 0.0, 0.0, 0.0, 0.0, None) for place in range(3)]
    reading = replace(read([pair()]), backends=backends, tenants=tenants)
    text = drawn(reading, height=30)
    assert " more" in text
    assert len(text.splitlines()) <= 30
    assert len(drawn(reading).splitlines()) > 55


def test_half_believed_and_down_are_told_apart() -> None:
    backends = [BackendRow("half", 1, 2, 0, 0, 0, None, None), BackendRow("gone", 0, 2, 0, 0.5, 0, None, None)]
    text = drawn(replace(read([pair()]), backends=backends))
    assert "1/2" in text
    assert "down" in text
