"""What was found out or made last, as much of it as fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class Recent(Generic[ValueT]):
    """Values of at most ``limit`` together by ``weigh``, least recently used out first.

    A value that alone takes more than an eighth is not kept: one giant must not push out everything.
    """

    def __init__(self, limit: int, weigh: Callable[[ValueT], int]) -> None:
        self._limit = limit
        self._weigh = weigh
        self._values: OrderedDict[Hashable, ValueT] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> ValueT | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: ValueT) -> None:
        old = self._values.pop(key, None)
        self.weight -= 0 if old is None else self._weigh(old)
        weight = self._weigh(value)
        if weight * 8 > self._limit:
            return
        self._values[key] = value
        self.weight += weight
        while self.weight > self._limit:
            self.weight -= self._weigh(self._values.popitem(last=False)[1])
