"""What a request costs each contender: CPU of all its processes, latency and rate, in interleaved rounds.

A round asks every contender once, in an order drawn anew, on fresh connections, for about ``_ROUND_CPU_S`` of its CPU.
CPU is what the
kernel accounted to all threads of the contender's process tree (user and system) during its turn, divided by the
requests that were completed in it; the figure is the median over the rounds. It does not depend on what other programs
take of the machine as rates and latencies do. Latencies are over all requests of all rounds.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.contenders import Contender, cpu_s
from benchmarks.peers.asking import Askers
from benchmarks.peers.bodies import TEXT, fresh_images, image_body, photograph, stream

_ROUND_CPU_S = 0.15
_WARM_UP_LIMIT_S = 3.0
_SMALL_BYTES, _LARGE_BYTES = 300_000, 5_000_000
_EVENTS = 200


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of request. ``bodies`` gives what makes the bodies, anew for each contender; counts are per round."""

    name: str
    what: str
    bodies: Callable[[], Callable[[], bytes]]
    concurrency: int = 1
    least: int = 5
    most: int = 400


@dataclass(slots=True)
class _Taken:
    """What one contender's rounds came to."""

    cpu_ms: list[float] = field(default_factory=list)
    latency_ms: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)
    requests: int = 0

    def to_json(self) -> dict[str, float]:
        hundredths = statistics.quantiles(self.latency_ms, n=100)
        return {
            "cpu_ms": round(statistics.median(self.cpu_ms), 3),
            "p50_ms": round(statistics.median(self.latency_ms), 3),
            "p99_ms": round(hundredths[98], 3),
            "per_s": round(statistics.median(self.per_s), 1),
            "requests": self.requests,
        }


def _same(body: Callable[[], bytes]) -> Callable[[], Callable[[], bytes]]:
    """Always the same body."""

    def made() -> Callable[[], bytes]:
        once = body()
        return lambda: once

    return made


CELLS = (
    Cell("text", "text of 0.6 KB", _same(lambda: TEXT)),
    Cell("text_c16", "text, 16 at a time", _same(lambda: TEXT), concurrency=16),
    Cell("image_300kb", "300 KB image, known", _same(lambda: image_body(photograph(_SMALL_BYTES))), most=200),
    Cell("image_5mb", "5 MB image, known", _same(lambda: image_body(photograph(_LARGE_BYTES))), most=40),
    Cell("image_5mb_new", "5 MB image, never seen", lambda: fresh_images(photograph(_LARGE_BYTES)), most=10, least=3),
    Cell("stream", f"stream, {_EVENTS} chunks 1 ms apart", _same(lambda: stream(_EVENTS, 1_000)), least=3, most=5),
    Cell("stream_c4", "4 such streams, 5 ms apart", _same(lambda: stream(_EVENTS, 5_000)), 4, 4, 4),
    Cell("stream_burst", f"stream, {_EVENTS} chunks at once", _same(lambda: stream(_EVENTS, 0)), most=60),
)


def measure(
    cell: Cell, contenders: Sequence[Contender], rounds: int, seed: int = 1
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """All contenders on one kind of request; and who broke off twice, with its last words."""
    turns = {contender.name: _Turns(cell, contender, cell.bodies()) for contender in contenders}
    order, shuffle = list(turns.values()), random.Random(seed).shuffle
    for _ in range(rounds + 1):
        shuffle(order)
        for each in order:
            each.take()
    done = {name: each.taken.to_json() for name, each in turns.items() if not each.given_up}
    return done, {name: each.last_words for name, each in turns.items() if each.given_up}


@dataclass(slots=True)
class _Turns:
    """One contender's turns at a kind of request: the first warms it up and does not count."""

    cell: Cell
    contender: Contender
    body: Callable[[], bytes]
    taken: _Taken = field(default_factory=_Taken)
    count: int = 0
    broken: int = 0
    last_words: str = ""

    @property
    def given_up(self) -> bool:
        return self.broken > 1

    def take(self) -> None:
        """One turn; one that breaks off is taken once more."""
        while not self.given_up:
            try:
                if self.count:
                    _round(self.cell, self.contender, self.body, self.count, self.taken)
                else:
                    self.count = _warmed(self.cell, self.contender, self.body)
                return
            except (OSError, RuntimeError) as error:
                self.broken += 1
                self.last_words = str(error)


def _warmed(cell: Cell, contender: Contender, body: Callable[[], bytes]) -> int:
    """Ask for a while without counting; how many requests a round will have."""
    askers = Askers(contender, cell.concurrency)
    wanted, asked = max(cell.least, cell.concurrency), 0
    try:
        askers.ask(lambda _: body(), wanted)
        before_s, began_s = cpu_s(contender.pid), time.perf_counter()
        while asked < max(wanted, cell.most // 2) and time.perf_counter() - began_s < _WARM_UP_LIMIT_S:
            asked += len(askers.ask(lambda _: body(), wanted))
        each_s = (cpu_s(contender.pid) - before_s) / asked
    finally:
        askers.close()
    return max(wanted, min(cell.most, int(_ROUND_CPU_S / each_s)))


def _round(cell: Cell, contender: Contender, body: Callable[[], bytes], count: int, taken: _Taken) -> None:
    askers = Askers(contender, cell.concurrency)
    try:
        before_s, began_s = cpu_s(contender.pid), time.perf_counter()
        latencies_ms = askers.ask(lambda _: body(), count)
        spent_s, lasted_s = cpu_s(contender.pid) - before_s, time.perf_counter() - began_s
    finally:
        askers.close()
    taken.cpu_ms.append(1000 * spent_s / count)
    taken.latency_ms += latencies_ms
    taken.per_s.append(count / lasted_s)
    taken.requests += count
