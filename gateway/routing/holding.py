"""What routing knows a request's content by, and what a backend holds of it.

Decided here: the seam between the decision and whatever believes or knows what caches hold. Not decided here: how a key
is made (`chain`), how beliefs are kept (`beliefs` and the indexes behind it).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.hashing import spread
from gateway.types import BackendName
from gateway.types.per_request import per_request


@per_request(frozen=True, slots=True)
class RouteKey:
    """The identities of one request's content, made once.

    ``images`` are digests of what is sent of each in prompt order (of videos, last, those of their files), ``patches``
    the vision encoder's patches and ``tokens`` the embeddings of each (both may be shorter: the rest is not known).
    ``chain`` are running 64-bit hashes of the prompt, each with everything before it; the link ``chain[i]`` ends
    ``chain_tokens[i]`` tokens into the prompt, rising. ``scope`` separates tenants whose images engines do not share.
    ``prompt`` has the engines' own blocks, where somebody publishes them and the prompt's token ids are known. ``home``
    is what the content's homes go by; where it is not known, the first image is. ``ends`` are the prompt tokens up to
    the end of each image, where that is known.
    """

    images: tuple[bytes, ...] = ()
    patches: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    chain: tuple[int, ...] = ()
    chain_tokens: tuple[int, ...] = ()
    scope: int = 0
    prompt: PromptChains | None = field(default=None, compare=False, repr=False)
    home: int | None = None
    ends: tuple[int, ...] = ()

    @property
    def content(self) -> int | None:
        """What the content's homes go by: a conversation's history keeps its home whatever is appended."""
        if self.home is not None:
            return self.home
        return spread(self.images[0]) if self.images else None

    @property
    def encode_patches(self) -> int:
        """Patches of all images together."""
        return sum(self.patches)

    def covered(self, prefix_tokens: int) -> tuple[int, int]:
        """How many of the first images lie in a prefix, and their patches: who holds it encodes none of them."""
        count = bisect_right(self.ends, prefix_tokens)
        return count, sum(self.patches[:count])


@dataclass(frozen=True, slots=True)
class Holding:
    """What one backend holds of one request.

    ``images`` is how many of its images, ``encode_patches`` the patches that need no encoding there, ``prefix_tokens``
    the prompt tokens that need no prefill. ``exact``: the prefix is the engine's own word, not a belief.
    """

    images: int = 0
    encode_patches: int = 0
    prefix_tokens: int = 0
    exact: bool = False


NOTHING = Holding()
# Who is missing holds nothing that anybody knows of.
Holdings: TypeAlias = Mapping[BackendName, Holding]


class Believed(dict[BackendName, Holding]):
    """Holdings with ``reuse``: which share of our requests comes with content that we had met before (`reuse`)."""

    __slots__ = ("reuse",)

    def __init__(self, found: Mapping[BackendName, Holding], reuse: float) -> None:
        super().__init__(found)
        self.reuse = reuse


class ExactPrefixes(Protocol):
    """An index that follows the engines' own events."""

    def prefix_tokens(self, key: RouteKey) -> Mapping[BackendName, int]:
        """Tokens of the longest prefix held, for every backend whose state is fresh now (0 is an answer too)."""
        ...

    def forget(self, backend: BackendName) -> None:
        """The backend restarted or went away."""
        ...
