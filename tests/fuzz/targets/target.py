"""What a target of guided fuzzing is, and how its inputs are replayed without a fuzzer.

A target's ``check`` takes any bytes and returns, or raises for a finding: an exception that is not documented, or two
readings of one input that differ. What hangs or eats memory is caught by the fuzzer's own limits and, in a replay, by
pytest's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import GatewayBug, GatewayError, Rejected
from tests.fuzz.mutate import mutate

CORPUS = Path(__file__).parents[1] / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """``modules`` are those whose branches guide the fuzzer; ``largest_bytes`` bounds its inputs; ``replayed`` is how
    many damaged inputs a test affords; ``seeds`` are made beside those that are kept as files."""

    name: str
    what: str
    check: Callable[[bytes], None]
    modules: tuple[str, ...]
    largest_bytes: int = 4096
    replayed: int = 300
    seeds: Callable[[], Iterable[bytes]] = tuple

    @property
    def folder(self) -> Path:
        """Where its corpus is kept: what reached something new, and every input that was once a finding."""
        return CORPUS / self.name

    @property
    def words(self) -> Path:
        """What the fuzzer may put in, in libFuzzer's form."""
        return CORPUS.parent / "dictionaries" / f"{self.name}.dict"

    def kept(self) -> list[bytes]:
        """The corpus, always in the same order."""
        return [path.read_bytes() for path in sorted(self.folder.glob("*"))]

    def inputs(self, seed: int, count: int) -> Iterator[bytes]:
        """Seeds and corpus as they are, then ``count`` damaged ones, made from ``seed`` alone."""
        known = [*self.seeds(), *self.kept()]
        yield from known
        files: Sequence[bytes] = [each for each in known if each]
        rng = random.Random(seed)
        for _ in range(count):
            yield mutate(rng.choice(files), files, rng)[: self.largest_bytes]


def documented(error: GatewayError) -> None:
    """A refusal as a client may see it: by the error tree, its own fault, in words. Raises AssertionError otherwise."""
    assert isinstance(error, Rejected), f"{type(error).__name__}: {error.detail}"
    assert not isinstance(error, GatewayBug)
    assert 400 <= error.status < 500
    assert error.message
    error.message.encode()
