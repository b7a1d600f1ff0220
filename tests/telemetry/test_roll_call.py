"""Who answers, told once per change."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from gateway.telemetry.log import JsonLog
from gateway.telemetry.roll_call import RollCall
from gateway.types import BackendName, BackendView, EngineKind


def view(name: str, *, healthy: bool) -> BackendView:
    return BackendView(name=BackendName(name), url=f"http://{name}", engine=EngineKind.VLLM, healthy=healthy)


def test_absence_and_return_are_told_once_each() -> None:
    stream = io.BytesIO()
    log = JsonLog(stream=stream)
    roll = RollCall(log)
    for is_there in (True, False, False, True, True):
        roll.call([view("steady", healthy=True), view("a", healthy=is_there)])
    log.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line["event"], line["backend"]) for line in lines] == [
        ("warning", "backend_down", "a"),
        ("info", "backend_up", "a"),
    ]
    assert lines[0]["url"] == "http://a"


def test_a_unix_socket_is_told_as_it_was_configured() -> None:
    stream = io.BytesIO()
    log = JsonLog(stream=stream)
    RollCall(log).call([replace(view("a", healthy=False), url="http://unix-1.invalid", written_url="unix:///a.sock")])
    log.close()
    assert json.loads(stream.getvalue())["url"] == "unix:///a.sock"


def test_who_left_while_absent_is_forgotten() -> None:
    stream = io.BytesIO()
    log = JsonLog(stream=stream)
    roll = RollCall(log)
    roll.call([view("a", healthy=False)])
    roll.call([])
    roll.call([view("a", healthy=True)])
    log.close()
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["backend_down"]
