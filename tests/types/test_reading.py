"""A connection goes on only where it was held back, and asks the parser for what it keeps."""

from __future__ import annotations

from gateway.types.reading import ReadsWhereHeld


class Protocol:
    """What aiohttp's protocol is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self, resume_parser: bool = True) -> None:
        self.told.append("go on, parser too" if resume_parser else "go on")


class Connection(ReadsWhereHeld, Protocol):
    """As those of both sides are made."""


def test_nothing_is_told_where_nothing_was_held_back() -> None:
    connection = Connection()
    connection.resume_reading()
    connection.resume_reading(False)
    assert connection.told == []


def test_what_was_held_back_goes_on_once() -> None:
    connection = Connection()
    connection.pause_reading()
    connection.resume_reading()
    connection.resume_reading()
    assert connection.told == ["pause", "go on, parser too"]


def test_the_parser_is_still_asked_after_the_transport_went_on_without_it() -> None:
    connection = Connection()
    connection.pause_reading()
    connection.resume_reading(False)
    connection.resume_reading()
    connection.resume_reading()
    assert connection.told == ["pause", "go on", "go on, parser too"]
