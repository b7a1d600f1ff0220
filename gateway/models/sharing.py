"""Several images under one token budget: shared out so that the smallest share is as large as it can be.

Decided here: water-filling on the family's own grid. One level is looked for: every image gets the largest plan that
takes no more tokens than the level, an image that needs less keeps all it has. What is then left lifts images that can
rise by one step. Images of one size are treated alike, so the result does not depend on their order. Not decided here:
the budget (policy), and what becomes of a request that cannot be brought under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.models.caps import Caps, plan_within
from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Family, Target
from gateway.types import Size

# Steps of the search above the level that continuous water would reach; grids waste less than a sixteenth of it.
_FIRST_STEP_SHARE: Final = 16


@dataclass(frozen=True, slots=True)
class Budget:
    """What to share: embedding positions of one request, and the cap in pixels that holds for each image anyway."""

    tokens: int
    cap_pixels: int | None


@dataclass(frozen=True, slots=True)
class _Want:
    """One kind of image: its size, and the caps that hold for it whatever the budget."""

    size: Size
    caps: Caps

    @property
    def rank(self) -> tuple[int, int, int, int]:
        return self.size.width, self.size.height, self.caps.pixels or 0, self.caps.side or 0


def share(
    sizes: Sequence[Size],
    family: Family,
    checkpoint: Checkpoint,
    budget: Budget,
    caps: Sequence[Caps] | None = None,
) -> tuple[int | None, ...] | None:
    """A cap in tokens for each image, in order, so that all plans together keep the budget; ``None`` = as it is.

    ``caps`` are each image's own where they are not alike; else all have the budget's.

    ``None`` for the whole where no caps can: the floors of the images lie above the budget. Deterministic; permuting
    the images permutes the result. Raises what `Family.plan` raises.
    """
    same = Caps(budget.cap_pixels)
    wants = [_Want(size, own) for size, own in zip(sizes, caps or [same] * len(sizes), strict=True)]
    water = _Water(family, checkpoint, budget, Counter(wants))
    if water.total(None) <= budget.tokens:
        return (None,) * len(sizes)
    if budget.tokens < 1 or water.total(1) > budget.tokens:
        return None
    level = water.highest_level()
    lifted = water.lift(level)
    return tuple(lifted.get(want, level) for want in wants)


@dataclass(slots=True)
class _Water:
    family: Family
    checkpoint: Checkpoint
    budget: Budget
    counts: Counter[_Want]
    _whole: dict[_Want, Target] = field(default_factory=dict)
    _plans: dict[_Want, list[tuple[int, int, Size]]] = field(default_factory=dict)
    _prices: dict[Size, int | None] = field(default_factory=dict)

    def total(self, level: int | None) -> int:
        """Tokens of all images at one level; most families do not care which others there are, some do."""
        return self._priced({want: self._target(want, level) for want in self.counts})

    def _priced(self, targets: Mapping[_Want, Size]) -> int:
        total = 0
        for want, count in self.counts.items():
            tokens = self._tokens(targets[want])
            if tokens is None:
                return self._priced_together(targets)
            total += tokens * count
        return total

    def _priced_together(self, targets: Mapping[_Want, Size]) -> int:
        every = [target for want, target in targets.items() for _ in range(self.counts[want])]
        return sum(price.tokens for price in self.family.request_tokens(every, self.checkpoint))

    def _tokens(self, target: Size) -> int | None:
        """The price of one image at its target, found once: the search comes by the same targets again and again."""
        if target not in self._prices:
            self._prices[target] = self.family.tokens_among(target, self.counts.total(), self.checkpoint)
        return self._prices[target]

    def _target(self, want: _Want, level: int | None) -> Size:
        whole = self._whole.get(want)
        if whole is None:
            whole = self._whole[want] = self._plan(want, None)
        if level is None or whole.tokens.tokens <= level:
            return whole.size
        # A plan of so many tokens is the plan at every level between that and the one it was made for.
        known = self._plans.setdefault(want, [])
        for least, most, target in known:
            if least <= level <= most:
                return target
        made = self._plan(want, level)
        known.append((made.tokens.tokens if made.reached else 0, level, made.size))
        return made.size

    def _plan(self, want: _Want, level: int | None) -> Target:
        return plan_within(want.size, self.family, self.checkpoint, want.caps, level)

    def highest_level(self) -> int:
        """The highest level whose total keeps the budget; level 1 does, no level does not."""
        low, high = 1, self.budget.tokens
        level = self._continuous()
        step = max(1, level // _FIRST_STEP_SHARE)
        if self.total(level) <= self.budget.tokens:
            low = level
            while low + step < high and self.total(low + step) <= self.budget.tokens:
                low += step
                step *= 2
            high = min(high, low + step)
        else:
            high = level
        if self.total(high) <= self.budget.tokens:
            return high
        while high - low > 1:
            middle = (low + high) // 2
            if self.total(middle) <= self.budget.tokens:
                low = middle
            else:
                high = middle
        return low

    def _continuous(self) -> int:
        """The level that water without grids would reach."""
        needs = sorted((self._whole[want].tokens.tokens, count) for want, count in self.counts.items())
        left, images = self.budget.tokens, self.counts.total()
        for tokens, count in needs:
            if tokens * images >= left:
                break
            left -= tokens * count
            images -= count
        return max(1, left // max(1, images))

    def lift(self, level: int) -> dict[_Want, int | None]:
        """Images that can rise to the next level within what is left, those that gain least first."""
        levels: dict[_Want, int | None] = dict.fromkeys(self.counts, level)
        targets = {want: self._target(want, level) for want in self.counts}
        total = self._priced(targets)
        gains = []
        for want, at in targets.items():
            above = self._target(want, level + 1)
            if at != above:
                gains.append((above.pixels - at.pixels, want, above))
        for _, want, above in sorted(gains, key=lambda gain: (gain[0], gain[1].rank)):
            risen = self._risen(targets, total, want, above)
            if risen <= self.budget.tokens:
                targets[want], levels[want], total = above, level + 1, risen
        return levels

    def _risen(self, targets: Mapping[_Want, Size], total: int, want: _Want, above: Size) -> int:
        """The total once all images of one kind rise."""
        now, then = self._tokens(targets[want]), self._tokens(above)
        if now is None or then is None:
            return self._priced({**targets, want: above})
        return total + (then - now) * self.counts[want]
