"""The wait for an answer's head: it ends once, and looks like a failure of the connection."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import SocketTimeoutError
from aiohttp.client_proto import ResponseHandler

from gateway.upstream.transport.patience import Patience


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
