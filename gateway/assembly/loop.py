"""How this process treats its event loop: its clock, what it does with errors nobody awaited, when it collects garbage.

Decided here: those three. Not decided here: what runs in the loop (``app``), how its lag is measured (``gauges``).
"""

from __future__ import annotations

import asyncio
import errno
import gc
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from gateway.telemetry.log import JsonLog

T = TypeVar("T")

GC_THRESHOLDS = (20_000, 50, 100)
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class MonotonicClock:
    """``ports.Clock`` of a real process."""

    # The built-in itself: it is asked two dozen times per request.
    now_s = staticmethod(time.monotonic)


class UnawaitedErrors:
    """The loop's exception handler. Without descriptors it is called 1,024 times a second, where one line will do."""

    def __init__(self, log: JsonLog) -> None:
        self._log = log

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _OUT_OF_RESOURCES:
            self._log.limited("error", "out_of_resources", reason=error.strerror)
        else:
            loop.default_exception_handler(context)


def spare_the_collector() -> None:
    """Keep the garbage collector from walking what start-up made, and from looking too often at what requests make.

    A request makes some hundred short-lived objects and no cycles; the default of 700 would look at the youngest
    generation in the middle of every other request (6 % of a text request's CPU, interleaved measurement).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[object, object, T]) -> T:
    """Run ``work`` on another thread's loop and await it from here."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
