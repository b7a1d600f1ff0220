"""What a request asked for, as the access line holds it: bounded, numbers and our own words only."""

from __future__ import annotations

from dataclasses import replace

from gateway.record import AskedFor
from gateway.telemetry.asked import MAX_SOURCES, asked_line
from gateway.types import Size
from tests.journey.fakes import facts

TEXT = AskedFor(0, (), 0, 0, 3, 400, None, 1, False)


def test_a_request_of_text_is_two_numbers() -> None:
    assert asked_line(TEXT, ()) == {"messages": 3, "text_bytes": 400}


def test_everything_else_is_told_where_it_is_something() -> None:
    asked = AskedFor(2, ("high", None), 1, 2, 3, 400, 512, 2, True, 1_310_720, 32_768)
    plain = facts(Size(448, 336))
    moving = replace(plain, remote=True, probe=replace(plain.probe, frames=7, orientation=6))
    assert asked_line(asked, (plain, moving)) == {
        "messages": 3,
        "text_bytes": 400,
        "images": 2,
        "videos": 1,
        "audios": 2,
        "output_limit": 512,
        "choices": 2,
        "tools": True,
        "max_pixels": 1_310_720,
        "context": 32_768,
        "sources": [f"jpeg 448x336 {plain.byte_count} detail=high", f"jpeg 336x448 {plain.byte_count} frames=7 remote"],
    }


def test_only_words_of_ours_are_told_and_the_newest_images() -> None:
    count = MAX_SOURCES + 5
    sources = [facts(Size(32 + number, 32)) for number in range(count)]
    asked = replace(TEXT, images=count + 2, details=("secret",) * (count + 1) + ("low",))
    line = asked_line(asked, sources)
    told = line["sources"]
    assert isinstance(told, list)
    assert (line["images"], len(told)) == (count + 2, MAX_SOURCES)
    assert told[-1].startswith(f"jpeg {31 + count}x32 ")
    assert told[-1].endswith(" detail=low")
    assert "secret" not in str(line)
