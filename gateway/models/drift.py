"""What engines count for images against what we predicted: agreement, another cap, or a family not to be trusted.

Decided here: when a deviation is explained by a pixel cap that the engine was started with (several responses agree on
it, over different sizes), when predictions are no longer believed, and when they are again. Not decided here: what is
done about it (`book` serves the learnt cap, planning reserves more), and what people are told (the recorder).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import Final

from gateway.errors import GatewayError
from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Family
from gateway.types import Size

# So many responses must deviate before anything is concluded, and so many in a row agree before it is taken back.
ENOUGH: Final = 3
FORGIVEN: Final = 20
_REMEMBERED: Final = 8
# An engine that counts nonsense must not make every request too large to serve; real deviations are far smaller.
_MOST_OVER: Final = 16.0
# A request of more images costs too much to be tried under many caps; it counts, and teaches nothing.
_LEARNABLE_IMAGES: Final = 4


class Finding(StrEnum):
    """What one response showed that was not known before."""

    DEVIATES = "deviates"  # the first of its kind
    CAP_LEARNT = "cap_learnt"
    DISTRUSTED = "distrusted"
    TRUSTED_AGAIN = "trusted_again"


@dataclass(frozen=True, slots=True)
class Observation:
    """One response: the rasters the engine was given, and the image tokens it counted."""

    sizes: tuple[Size, ...]
    actual_tokens: int


def counted(sizes: Sequence[Size], family: Family, checkpoint: Checkpoint) -> int:
    """What we predict for the images of one request."""
    return sum(price.tokens for price in family.request_tokens(sizes, checkpoint))


@dataclass(slots=True)
class Ledger:
    """What one backend has shown of one model. ``learnt_max_pixels`` None: nothing else than what is configured."""

    learnt_max_pixels: int | None = None
    is_trusted: bool = True
    most_over: float = 1.0
    _learnable: deque[Observation] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _deviated: int = 0
    _agreed: int = 0

    def take(self, seen: Observation, family: Family, checkpoint: Checkpoint, *, may_learn: bool) -> Finding | None:
        """Take in one response; ``checkpoint`` carries the cap now assumed for this backend.

        ``may_learn`` is false where the operator has told the cap: then a deviation is only ever a deviation.
        """
        expected = counted(seen.sizes, family, checkpoint)
        if seen.actual_tokens == expected:
            return self._agree()
        self._agreed = 0
        self._deviated += 1
        self.most_over = min(max(self.most_over, seen.actual_tokens / max(1, expected)), _MOST_OVER)
        if len(seen.sizes) <= _LEARNABLE_IMAGES:
            self._learnable.append(seen)
        if self._deviated < ENOUGH:
            return Finding.DEVIATES if self._deviated == 1 else None
        # Ever more rarely: a model that stays strange must not cost its arithmetic at every response.
        is_due = self._deviated <= _REMEMBERED or self._deviated & (self._deviated - 1) == 0
        cap = explaining_cap(tuple(self._learnable), family, checkpoint) if may_learn and is_due else None
        if cap is not None:
            self.learnt_max_pixels = cap
            self._forget()
            return Finding.CAP_LEARNT
        if not self.is_trusted:
            return None
        self.is_trusted = False
        return Finding.DISTRUSTED

    def _agree(self) -> Finding | None:
        self._agreed += 1
        if self._agreed < FORGIVEN:
            return None
        was_trusted = self.is_trusted
        self._forget()
        return None if was_trusted else Finding.TRUSTED_AGAIN

    def _forget(self) -> None:
        self.is_trusted, self.most_over, self._deviated = True, 1.0, 0
        self._learnable.clear()

    def surplus_tokens(self, image_tokens: int) -> int:
        """What to reserve above a prediction that is not believed: what it was exceeded by at most, and a quarter."""
        return 0 if self.is_trusted else ceil(image_tokens * (self.most_over * 1.25 - 1))


def explaining_cap(seen: Sequence[Observation], family: Family, checkpoint: Checkpoint) -> int | None:
    """The pixel cap under which every observation comes out, if there is one and the sizes are of several kinds.

    Tokens never fall when the cap rises, so each observation narrows the interval of caps that the earlier ones
    leave. Of what is left the roundest in grid cells is taken, since operators write such numbers.
    """
    if len({each.sizes for each in seen}) < 2:
        return None
    # Nobody caps a model below what it enlarges small images to, and an engine that counts one token for everything
    # must not turn images into specks.
    low, high = max(_cell_pixels(checkpoint), checkpoint.min_pixels), checkpoint.max_pixels
    for each in seen:
        try:
            if not _is_in_reach(each, family, checkpoint, low):
                return None
            low = _first_cap(each, family, checkpoint, each.actual_tokens, low, high)
            high = _first_cap(each, family, checkpoint, each.actual_tokens + 1, low, high) - 1
        except GatewayError:
            return None
        if low > high:
            return None
    cap = _roundest(low, high, _cell_pixels(checkpoint))
    under = checkpoint.with_(max_pixels=cap)
    return cap if all(counted(each.sizes, family, under) == each.actual_tokens for each in seen) else None


def _is_in_reach(seen: Observation, family: Family, checkpoint: Checkpoint, low: int) -> bool:
    """Whether any cap comes to the count at all; most families of tiles have none that changes anything."""
    fewest = counted(seen.sizes, family, checkpoint.with_(max_pixels=low))
    return fewest <= seen.actual_tokens <= counted(seen.sizes, family, checkpoint)


def _cell_pixels(checkpoint: Checkpoint) -> int:
    return max(1, checkpoint.factor) ** 2


def _first_cap(seen: Observation, family: Family, checkpoint: Checkpoint, tokens: int, low: int, high: int) -> int:
    """The smallest cap from ``low`` to ``high`` at which the images come to so many tokens; one above all if none."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if counted(seen.sizes, family, checkpoint.with_(max_pixels=middle)) < tokens:
            low = middle + 1
        else:
            high = middle
    return low


def _roundest(low: int, high: int, cell_pixels: int) -> int:
    """The number of whole cells within the interval that has most factors of two; its lower end where there is none."""
    first, last = -(-low // cell_pixels), high // cell_pixels
    if first > last:
        return low
    step = 1
    while -(-first // (step * 2)) * step * 2 <= last:
        step *= 2
    return -(-first // step) * step * cell_pixels
