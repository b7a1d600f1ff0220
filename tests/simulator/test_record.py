from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.simulator.fields import Json
from gateway.simulator.geometry import Fitted
from gateway.simulator.pictures import Loaded
from gateway.simulator.prompt import ImageInput
from gateway.simulator.raster import Picture, Raster
from gateway.simulator.record import FaultKind, FaultPlan, Recorder, abridged
from gateway.simulator.refusal import Refusal


def test_long_strings_are_kept_as_their_length() -> None:
    assert abridged({"url": "x" * 201, "short": ["y" * 200, 3, None]}) == {
        "url": "<201 characters>",
        "short": ["y" * 200, 3, None],
    }


def test_what_is_nested_deeper_than_anybody_means_is_not_kept() -> None:
    deep: Json = []
    for _ in range(1000):
        deep = [deep]
    assert "<deeper>" in json.dumps(abridged(deep))


def test_a_record_tells_what_was_sent_and_what_answered() -> None:
    raster = Raster("jpeg", 80, 40, 6, 40, 80, (1, 2, 3), "fp")
    picture = Picture(raster, Fitted(3, 2, 24), "id-1")
    source = ImageInput("messages.0.content.0", "data:,", uuid="u")
    record = Recorder(None).begin("POST", "/v1/chat/completions", [("A", "b")])
    record.saw(
        [Loaded(source, picture, 99, "ab", raster, cache_hit=False), Loaded(source, picture, 0, None, None, True)]
    )
    sent, known = record.images
    assert (sent["pointer"], sent["uuid"], sent["sent_bytes"], sent["sha256"]) == (
        "messages.0.content.0",
        "u",
        99,
        "ab",
    )
    assert (sent["stored_width"], sent["width"], sent["orientation"], sent["tokens"]) == (80, 40, 6, 6)
    assert (known["stored_width"], known["width"], known["cache_hit"]) == (None, 40, True)


def test_finished_requests_are_written_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    recorder = Recorder(str(path))
    for _ in range(2):
        recorder.end(recorder.begin("POST", "/tokenize", []))
    recorder.close()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["index"] for line in lines] == [0, 1]
    assert lines[0]["outcome"] == "running"


def test_records_can_be_forgotten_and_go_on_counting() -> None:
    recorder = Recorder(None)
    recorder.begin("POST", "/a", [])
    recorder.clear()
    assert recorder.begin("POST", "/b", []).index == 1
    assert [entry["path"] for entry in recorder.listing() if isinstance(entry, dict)] == ["/b"]


def test_faults_strike_in_order_and_only_as_often_as_ordered() -> None:
    plan = FaultPlan(seed=0)
    plan.order({"faults": [{"kind": "status", "times": 2, "status": 500}, {"kind": "delay", "delay_s": 0.5}]})
    struck = [plan.take() for _ in range(4)]
    assert [fault.kind if fault else None for fault in struck] == [
        FaultKind.STATUS,
        FaultKind.STATUS,
        FaultKind.DELAY,
        None,
    ]
    assert struck[0] is not None
    assert struck[0].status == 500
    assert struck[2] is not None
    assert struck[2].delay_s == 0.5


def test_a_rate_lets_the_others_pass() -> None:
    plan = FaultPlan(seed=0)
    plan.order({"faults": [{"kind": "status", "times": 1_000, "rate": 0.25}]})
    struck = sum(plan.take() is not None for _ in range(1_000))
    assert 180 <= struck <= 320


def test_an_unknown_fault_is_refused_and_changes_nothing() -> None:
    plan = FaultPlan(seed=0)
    plan.order({"faults": [{"kind": "status"}]})
    with pytest.raises(Refusal, match="unknown kind 'explode'; known: status"):
        plan.order({"faults": [{"kind": "explode"}]})
    assert plan.take() is not None
