"""How far an image may shrink below its cap where it shows little: `off`, or from which detail on it may.

`halving_psnr_db`: an image is made smaller for as long as halving its sides once more would keep this PSNR, its busiest
parts counting most; lower shrinks more. `floor_pixels`: never below. Text, documents and screens are left alone, and so
is what stands under `geometry: preserve`. Asking costs a look at the pixels of each new image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.policy.effective import Adaptive
from gateway.policy.mappings import below, entries_once
from gateway.policy.node import MappingNode, Node, ScalarNode, nearest, shortened
from gateway.policy.rule import Rule
from gateway.policy.values import PIXEL_UNITS, Amount, BadValue, JsonSchema, Mistake, bad

_OFF = "off"
_KNOBS: Mapping[str, Amount] = {
    "floor_pixels": Amount("floor_pixels", 32 * 32, 10**9, PIXEL_UNITS, products=True),
    "halving_psnr_db": Amount("halving_psnr_db", 20, 60),
}


@dataclass(frozen=True, slots=True)
class AdaptiveKind:
    """``off`` (bare, it is YAML's word for false), or a mapping of knobs; those left out keep what was inherited."""

    def parse(self, node: Node) -> dict[str, int] | None:
        if isinstance(node, ScalarNode) and (node.value == _OFF or node.value is False):
            return None
        if not isinstance(node, MappingNode):
            raise bad(node, f"{_OFF} or a mapping with some of {', '.join(_KNOBS)}")
        knobs: dict[str, int] = {}
        mistakes: list[Mistake] = []
        for entry in entries_once(node, mistakes):
            if entry.key not in _KNOBS:
                key = shortened(entry.key)
                mistakes.append(Mistake(entry.line, f"unknown key{nearest(key, _KNOBS)}", key))
                continue
            try:
                amount = _KNOBS[entry.key].parse(entry.node)
            except BadValue as error:
                mistakes += below(entry, error)
                continue
            assert amount is not None, "without a word there is always a number"
            knobs[entry.key] = amount
        if mistakes:
            raise BadValue(*mistakes)
        return knobs

    def schema(self) -> JsonSchema:
        each = {knob: amount.schema() for knob, amount in _KNOBS.items()}
        mapping = {"type": "object", "properties": each, "additionalProperties": False}
        return {"anyOf": [{"enum": [_OFF, False]}, mapping]}


def joined_knobs(inherited: Adaptive | None, written: Mapping[str, int] | None) -> Adaptive | None:
    """The knobs with those replaced that a file names; ``None`` is off."""
    return None if written is None else replace(inherited or Adaptive(), **written)


RULE = Rule(
    key="adaptive",
    summary="Shrink below the cap what shows little, as in `{floor_pixels: 512x512, halving_psnr_db: 31}`; or `off`.",
    kind=AdaptiveKind(),
    default=None,
    join=joined_knobs,
)
