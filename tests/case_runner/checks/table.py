"""How an ``expect`` is checked: every key has its function in a table, or is on the list of those that inform."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

Subject = TypeVar("Subject")
Problems = Iterator[str]
Check: TypeAlias = Callable[[Subject, Any, Mapping[str, Any]], Problems]


@dataclass(frozen=True, slots=True)
class Table(Generic[Subject]):
    """``checks``: key -> function of subject, wanted value and the whole expectation, yielding what is wrong.

    ``informs``: key -> why it needs no check of its own.
    """

    name: str
    checks: Mapping[str, Check[Subject]]
    informs: Mapping[str, str] = field(default_factory=dict)

    def judge(self, subject: Subject, expect: Mapping[str, Any]) -> Problems:
        """Everything that is wrong; a key that nobody knows is wrong too."""
        for key, wanted in expect.items():
            if key in self.informs:
                continue
            check = self.checks.get(key)
            if check is None:
                yield f"{self.name}{key}: a key that the runner does not know"
                continue
            for problem in check(subject, wanted, expect):
                yield f"{self.name}{key}: {problem}"
