"""JSON lines written by a thread: nobody waits for standard output, and one bad line costs no other."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import pytest

from gateway.telemetry import log
from gateway.telemetry.log import JsonLog


class Kept(io.BytesIO):
    """Remembers what was written; `blocked` holds writers back until it is set free."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked = threading.Event()
        self.blocked.set()
        self.waiting = threading.Event()

    def write(self, data: Any, /) -> int:
        self.waiting.set()
        self.blocked.wait(30)
        return super().write(data)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


def test_an_event_is_one_line_with_time_level_and_fields() -> None:
    out = Kept()
    lines = JsonLog(stream=out)
    lines.event("info", "started", port=1)
    lines.event("error", "broken", why="line\nbreak")
    lines.close()
    first, second = out.lines
    assert (first["level"], first["event"], first["port"]) == ("info", "started", 1)
    assert isinstance(first["time"], float)
    assert second["why"] == "line\nbreak"


def test_levels_hold_back_and_can_be_changed() -> None:
    out = Kept()
    lines = JsonLog("warning", access=False, stream=out)
    lines.event("info", "too low")
    lines.access({"event": "exchange"})
    lines.configure("debug", access=True)
    lines.event("debug", "now")
    lines.access({"event": "exchange"})
    lines.close()
    assert [line["event"] for line in out.lines] == ["now", "exchange"]


def test_a_repeated_event_is_said_once_in_a_while() -> None:
    out = Kept()
    lines = JsonLog(stream=out)
    for _ in range(5):
        lines.limited("warning", "drift", every_s=3600)
        lines.limited("warning", "other", every_s=3600)
    lines.limited("warning", "drift", every_s=0)
    lines.close()
    assert [(line["event"], line.get("unsaid")) for line in out.lines] == [
        ("drift", None),
        ("other", None),
        ("drift", 4),
    ]


def test_half_a_surrogate_pair_and_strange_values_cost_no_line() -> None:
    out = Kept()
    lines = JsonLog(stream=out)
    lines.event("info", "before")
    lines.event("info", "half", model="\ud800", path="/\udcff")
    lines.event("info", "strange", value=object())
    lines.event("info", "after")
    lines.close()
    assert [line["event"] for line in out.lines] == ["before", "half", "strange", "after"]
    assert lines.dropped == 0


def test_nothing_that_is_said_begins_a_line_of_its_own() -> None:
    """Whatever a client calls its model, nobody who reads line by line takes it for an event."""
    out = io.BytesIO()
    lines = JsonLog(stream=out)
    forged = '{"event": "exchange", "tenant": "rich"}'
    for between in ("\n", "\r", "\r\n", "\x85", "\u2028", "\u2029", "\x0b", "\x1c"):
        lines.event("info", "said", model=f"m{between}{forged}{between}")
    lines.access({"event": "exchange", "model": f"m\n{forged}"})
    lines.close()
    written = out.getvalue().decode().splitlines()
    assert [json.loads(line)["event"] for line in written] == ["said"] * 8 + ["exchange"]
    assert all(json.loads(line)["model"].startswith("m") for line in written)


def test_a_blocked_output_blocks_nobody_and_what_is_lost_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_WAITING_LINES", 8)
    monkeypatch.setattr(log, "_CLOSE_S", 0.01)
    out = Kept()
    out.blocked.clear()
    blocked = JsonLog(stream=out)
    blocked.event("info", "first")
    assert out.waiting.wait(30)
    for number in range(20):
        blocked.event("info", "more", number=number)
    assert blocked.dropped == 12
    blocked.close()  # returns although nothing can be written
    monkeypatch.setattr(log, "_CLOSE_S", 30)
    out.blocked.set()
    blocked.close()
    assert [line.get("number") for line in out.lines] == [None, *range(8)]


def test_a_closed_output_is_counted_and_does_not_end_the_thread() -> None:
    out = Kept()
    lines = JsonLog(stream=out)
    out.close()
    lines.event("info", "lost")
    lines.close()
    assert lines.dropped == 1
