"""The wait for an answer's head: it ends once, and looks like a failure of the connection."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from aiohttp import SocketTimeoutError
from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import StreamReader

from gateway.upstream.transport.patience import Patience, Silence


async def test_its_end_fails_whoever_waits() -> None:
    protocol = ResponseHandler(asyncio.get_running_loop())
    patience = Patience(protocol, 0.01)
    patience.begin()
    with pytest.raises(SocketTimeoutError):
        await protocol.read()
    assert patience.is_over
    patience.begin()
    patience.end()
    assert patience.is_over


async def test_who_takes_something_gets_the_time_anew_and_who_answered_has_none() -> None:
    protocol = ResponseHandler(asyncio.get_running_loop())
    patience = Patience(protocol, 0.01)
    patience.begin()
    patience.begin()
    patience.end()
    patience.end()
    await asyncio.sleep(0.05)
    assert not patience.is_over
    assert protocol.exception() is None


class Looked:
    """A protocol and a content, as far as they are looked at; the clock is turned by hand."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._reading_paused = False
        self.failures = 0

    def set_exception(self, _failure: BaseException) -> None:
        self.failures += 1


async def test_an_answer_is_given_up_after_its_silence_and_not_while_it_is_held_back() -> None:
    looked = Looked()
    silence = Silence(cast("ResponseHandler", looked), cast("StreamReader", looked), 4000.0)
    for _ in range(3):
        silence._look()
    looked.total_bytes = 1
    for _ in range(4):
        silence._look()  # the first of them hears it
    looked._reading_paused = True
    silence._look()
    looked._reading_paused = False
    for _ in range(3):
        silence._look()
    assert looked.failures == 0
    silence._look()
    assert looked.failures == 2, "who waits for a head and who reads on are told"
    silence.end()
    silence.end()
