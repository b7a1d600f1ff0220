"""Where pictures go: twenty of them, each asked about ten times, through each router to two backends.

Eight requests at a time in a shuffled order; the backend waits 30 ms before it answers. A fresh router and fresh
backends for every case. *Homes*: pictures that only one backend ever saw. *Cold encodes*: pairs of picture and backend
that met; as many as pictures is the least, twice as many means that both backends encoded each. *Split*: requests by
backend. The words are new in every request, or always the same. Where a router has a policy that is told a key in a
header, it is run once more with the picture's number as that key: what a client can do that hashes its pictures itself.
"""

from __future__ import annotations

import json
import random
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.contenders import Contender
from benchmarks.peers.asking import Askers
from benchmarks.peers.bodies import image_body, small_pictures
from benchmarks.peers.line_up import GATEWAY, LITELLM, SGLANG, VLLM, Site, Variant, site

PICTURES, ASKED = 20, 10
_CONCURRENCY = 8
_DELAY_MS = 30
_WORDS = ("quiet", "copper", "seven", "harbour", "lantern", "meadow", "orbit", "pepper", "river", "sudden", "tunnel")


@dataclass(frozen=True, slots=True)
class Case:
    """One router under one policy; ``key_header`` names the header that is told the picture."""

    name: str
    variant: Variant
    key_header: str = ""


CASES = (
    Case("gateway", Variant(GATEWAY)),
    Case("sglang-router cache_aware (default)", Variant(SGLANG)),
    Case("sglang-router manual + key", Variant(SGLANG, ("--policy", "manual")), "x-smg-routing-key"),
    Case("vllm-router cache_aware (default)", Variant(VLLM)),
    Case("vllm-router consistent_hash + key", Variant(VLLM, ("--policy", "consistent_hash")), "x-session-id"),
    Case("litellm simple-shuffle (default)", Variant(LITELLM)),
)


@dataclass(frozen=True, slots=True)
class Met:
    """Which backend saw which picture how often."""

    seen: tuple[Mapping[int, int], ...]

    def to_json(self) -> dict[str, object]:
        pictures = set().union(*self.seen)
        homes = [sum(picture in backend for backend in self.seen) for picture in pictures]
        split = [sum(backend.values()) for backend in self.seen]
        return {"homes": homes.count(1), "cold_encodes": sum(homes), "split": split, "pictures": len(pictures)}


def measure() -> tuple[dict[str, object], dict[str, str]]:
    """Homes, cold encodes and split by case and words; who is missing and why."""
    found: dict[str, object] = {}
    missing: dict[str, str] = {}
    for case in CASES:
        cell: dict[str, object] = {}
        for words in ("new", "same"):
            with site([case.variant], backends=2) as place:
                missing |= place.missing
                if place.contenders:
                    cell[words] = _asked(case, place, place.contenders[0], new=words == "new").to_json()
        if cell:
            found[case.name] = cell
    return found, missing


def _asked(case: Case, place: Site, contender: Contender, *, new: bool) -> Met:
    numbers = [picture for picture in range(PICTURES) for _ in range(ASKED)]
    chance = random.Random(3)
    chance.shuffle(numbers)
    bodies = [_body(number, " ".join(chance.choices(_WORDS, k=24)) if new else "What is this?") for number in numbers]
    askers = Askers(contender, _CONCURRENCY)
    try:
        keyed = (lambda place: {case.key_header: f"picture-{numbers[place]}"}) if case.key_header else None
        askers.ask(lambda place: bodies[place], len(bodies), keyed)
    finally:
        askers.close()
    return Met(tuple(Counter(_seen(port)) for port, _ in place.backends))


def _body(number: int, words: str) -> bytes:
    """The orders stand behind the words: routers that look at text look at its beginning."""
    orders = f"[[picture={number} delay_ms={_DELAY_MS}]]"
    return image_body(small_pictures(PICTURES)[number], f"{words} {orders}")


def _seen(port: int) -> list[int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/bench/seen", timeout=10) as answer:
        return [int(picture) for picture in json.load(answer)]
