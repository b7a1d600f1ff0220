"""Drives a coroutine by hand, without an event loop, and strikes at the await of its choice."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import TypeVar

_Made = TypeVar("_Made")


@types.coroutine
def suspend(label: str) -> Generator[str, None, None]:
    """Suspend exactly once; the driver sees ``label``."""
    yield label


async def aside(work: Callable[[], _Made], /) -> _Made:
    """Pure work that is done elsewhere: one await."""
    await suspend("aside")
    return work()


@dataclass(frozen=True, slots=True)
class Ride:
    """The labels of all suspensions in order, and what escaped at the end."""

    trail: tuple[str, ...]
    escaped: BaseException | None


def drive(work: Coroutine[object, None, None], strike_at: int | None = None, blow: BaseException | None = None) -> Ride:
    """Run to the end; the suspension number ``strike_at`` raises ``blow`` instead of returning."""
    trail: list[str] = []
    try:
        label = work.send(None)
        while True:
            assert isinstance(label, str), "the journey awaits nothing but ports"
            trail.append(label)
            struck = blow is not None and len(trail) - 1 == strike_at
            label = work.throw(blow) if struck and blow is not None else work.send(None)
    except StopIteration:
        return Ride(tuple(trail), None)
    except BaseException as error:  # noqa: BLE001  # what escapes is the finding
        return Ride(tuple(trail), error)
