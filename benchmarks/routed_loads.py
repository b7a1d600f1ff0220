"""The workloads of the routing simulation: arrivals are Poisson, contents as users of vision models send them.

Rates are set by the work without any cache: where much is sent again, a fleet that routes blindly is overloaded by a
little (1.1 of what it can do), where nothing is, it is busy (0.75).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.routed import PREFILL_S, Request
from gateway.routing.hashing import spread
from gateway.routing.holding import RouteKey

PATCHES, IMAGE_TOKENS = 4096, 1024


class Writer:
    """Writes requests; every text is new unless it is named."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self._names = 0

    def fresh(self) -> str:
        self._names += 1
        return f"text {self._names} {self.dice.random()}"

    def request(self, parts: list[tuple[str, int]], session: int = 0) -> Request:
        """``parts``: (name, tokens) in prompt order; names that begin with ``image`` are images."""
        images, ends, chain, places, text_chain = [], [], [], [], []
        so_far, text, tokens = "", "", 0
        for name, count in parts:
            so_far += name
            tokens += count
            chain.append(spread(so_far.encode()))
            places.append(tokens)
            if name.startswith("image"):
                images.append(spread(name.encode()).to_bytes(8, "little") * 2)
                ends.append(tokens)
            else:
                text += name
                text_chain.append(spread(text.encode()))
        first = parts[0][0] if parts[0][0].startswith("image") else so_far
        count = len(images)
        home = spread(images[0]) if images else spread(first.encode())
        key = RouteKey(
            tuple(images),
            (PATCHES,) * count,
            (IMAGE_TOKENS,) * count,
            tuple(chain),
            tuple(places),
            home=home,
            ends=tuple(ends),
        )
        return Request(0.0, key, tuple(text_chain), session, tokens, self.dice.choice((30, 120, 400)))

    def image(self, name: object) -> tuple[str, int]:
        return f"image {name}.", IMAGE_TOKENS

    def text(self, low: int = 40, high: int = 400) -> tuple[str, int]:
        return self.fresh(), self.dice.randint(low, high)


def unique(writer: Writer) -> Iterator[Request]:
    """Photographs that nobody sends twice, one to four of them, and texts of any length without one."""
    while True:
        count = writer.dice.choice((0, 1, 1, 2, 4))
        images = [writer.image(writer.fresh()) for _ in range(count)]
        yield writer.request([writer.text(40, 6000 if not count else 400), *images])


def zipf(writer: Writer) -> Iterator[Request]:
    """Pictures of a catalogue, by Zipf's law (exponent 1, 400 of them), each with a new question before it."""
    weights = [1 / rank for rank in range(1, 401)]
    while True:
        (number,) = writer.dice.choices(range(400), weights)
        yield writer.request([writer.text(), writer.image(f"catalogue {number}")])


def screenshots(writer: Writer) -> Iterator[Request]:
    """Agents: twelve turns, a new screenshot in each, the whole history sent again."""
    system = ("You operate a computer.", 800)
    open_talks: list[tuple[int, list[tuple[str, int]]]] = []
    session = 0
    while True:
        if len(open_talks) < 48 or not open_talks:
            session += 1
            open_talks.append((session, [system, writer.text()]))
        index = writer.dice.randrange(len(open_talks))
        number, parts = open_talks[index]
        parts += [writer.image(writer.fresh()), writer.text(20, 100)]
        yield writer.request(list(parts), number)
        parts.append(writer.text(30, 120))
        if len(parts) > 2 + 3 * 12:
            del open_talks[index]


def documents(writer: Writer) -> Iterator[Request]:
    """Scanned documents of eight pages, six questions each, several documents at a time."""
    waiting: list[tuple[int, list[tuple[str, int]]]] = []
    session = 0
    while True:
        if len(waiting) < 60:
            session += 1
            pages = [writer.image(writer.fresh()) for _ in range(8)]
            waiting += [(session, pages)] * 6
        number, pages = waiting.pop(writer.dice.randrange(len(waiting)))
        yield writer.request([*pages, writer.text()], number)


def hot(writer: Writer) -> Iterator[Request]:
    """One picture in the news: a third of the requests ask about it, for the middle third of the time."""
    others = zipf(writer)
    number = 0
    while True:
        number += 1
        is_hot = 1000 < number % 3000 <= 2000 and writer.dice.random() < 1 / 3
        yield writer.request([writer.text(), writer.image("hot")]) if is_hot else next(others)


WORKLOADS: dict[str, tuple[Callable[[Writer], Iterator[Request]], bool]] = {
    "unique": (unique, False),
    "zipf": (zipf, True),
    "screenshots": (screenshots, True),
    "documents": (documents, True),
    "hot": (hot, True),
}


def load_of(name: str, count: int, backends: int, seed: int = 1) -> list[Request]:
    """So many requests for so many backends, at the rate that this workload is run at."""
    make, sends_again = WORKLOADS[name]
    writer = Writer(seed)
    made = make(writer)
    requests = [next(made) for _ in range(count)]
    whole_s = sum(request.full_s + request.output_tokens * PREFILL_S for request in requests) / count
    rate = (1.1 if sends_again else 0.75) * backends / whole_s
    at_s, timed = 0.0, []
    for request in requests:
        at_s += writer.dice.expovariate(rate)
        timed.append(replace(request, at_s=at_s))
    return timed
