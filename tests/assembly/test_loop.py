"""The loop's clock, its errors, its garbage."""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import time

from gateway.assembly.loop import GC_THRESHOLDS, MonotonicClock, UnawaitedErrors, spare_the_collector
from gateway.telemetry.log import JsonLog


def test_the_clock_is_the_monotonic_one() -> None:
    before = time.monotonic()
    assert before <= MonotonicClock().now_s() <= time.monotonic()


async def test_a_lack_of_resources_is_said_once_and_other_errors_as_ever() -> None:
    stream = io.BytesIO()
    log, loop = JsonLog(stream=stream), asyncio.get_running_loop()
    handler, said = UnawaitedErrors(log), []
    loop.set_exception_handler(lambda _, context: said.append(context))
    for _ in range(100):
        handler(loop, {"message": "accept", "exception": OSError(errno.EMFILE, "Too many open files")})
    log.close()
    assert stream.getvalue().count(b"out_of_resources") == 1
    assert said == []


def test_what_start_up_made_is_frozen() -> None:
    before = gc.get_threshold()
    try:
        spare_the_collector()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold() == GC_THRESHOLDS
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
