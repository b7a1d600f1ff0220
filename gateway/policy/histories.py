"""The kind of value that says when a conversation's oldest images go: triggers, the batch, how many always stay.

Decided here: spelling, ranges, and that a trigger by count leaves room for a batch above what stays: with less the
frontier could not hold still. Not decided here: which images go (`dropping`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.policy.effective import History
from gateway.policy.mappings import below, entries_once, unknown_entry
from gateway.policy.node import Entry, MappingNode, Node, ScalarNode
from gateway.policy.values import BYTE_UNITS, Amount, BadValue, JsonSchema, Mistake, bad

_TRIGGERS: Mapping[str, Amount] = {
    "images": Amount("images", 1, 10_000),
    "bytes": Amount("bytes", 1, 2**40, BYTE_UNITS),
    "tokens": Amount("tokens", 1, 2**31),
}
_BATCH = Amount("batch", 1, 1_000)
_KEEP_NEWEST = Amount("keep_newest", 1, 1_000)
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Histories:
    """A mapping with ``trigger`` (some of images, bytes, tokens), ``batch`` and ``keep_newest``, or ``none``."""

    word: str = _NONE

    def parse(self, node: Node) -> History | None:
        if isinstance(node, ScalarNode) and node.value == _NONE:
            return None
        if not isinstance(node, MappingNode):
            raise bad(node, f"{_NONE} or a mapping such as {{trigger: {{images: 20}}, batch: 10, keep_newest: 4}}")
        triggers: dict[str, int] = {}
        own: dict[str, int] = {}
        mistakes: list[Mistake] = []
        for entry in entries_once(node, mistakes):
            try:
                match entry.key:
                    case "trigger":
                        triggers = _triggers(entry)
                    case "batch":
                        own["batch"] = _whole(_BATCH, entry.node)
                    case "keep_newest":
                        own["keep_newest"] = _whole(_KEEP_NEWEST, entry.node)
                    case _:
                        mistakes.append(unknown_entry(entry, ["trigger", "batch", "keep_newest"]))
            except BadValue as error:
                mistakes += below(entry, error)
        if not mistakes and not triggers:
            mistakes.append(Mistake(node.line, f"expected a trigger: at least one of {', '.join(_TRIGGERS)}"))
        if mistakes:
            raise BadValue(*mistakes)
        found = History(triggers.get("images"), triggers.get("bytes"), triggers.get("tokens"), **own)
        if found.images is not None and found.images < found.keep_newest + found.batch - 1:
            least = found.keep_newest + found.batch - 1
            message = f"{found.images} images leave no room for batches of {found.batch} beside the newest "
            message += f"{found.keep_newest}: at least {least}, or a smaller batch"
            raise BadValue(Mistake(node.line, message, "trigger.images"))
        return found

    def schema(self) -> JsonSchema:
        triggers = {name: amount.schema() for name, amount in _TRIGGERS.items()}
        properties = {
            "trigger": {"type": "object", "properties": triggers, "additionalProperties": False, "minProperties": 1},
            "batch": _BATCH.schema(),
            "keep_newest": _KEEP_NEWEST.schema(),
        }
        mapping = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
            "required": ["trigger"],
        }
        return {"anyOf": [{"const": _NONE}, mapping]}


def _triggers(entry: Entry) -> dict[str, int]:
    if not isinstance(entry.node, MappingNode):
        raise bad(entry.node, f"a mapping with some of {', '.join(_TRIGGERS)}")
    found: dict[str, int] = {}
    mistakes: list[Mistake] = []
    for each in entries_once(entry.node, mistakes):
        amount = _TRIGGERS.get(each.key)
        if amount is None:
            mistakes.append(unknown_entry(each, _TRIGGERS))
            continue
        try:
            found[each.key] = _whole(amount, each.node)
        except BadValue as error:
            mistakes += below(each, error)
    if mistakes:
        raise BadValue(*mistakes)
    return found


def _whole(amount: Amount, node: Node) -> int:
    value = amount.parse(node)
    assert value is not None, "without a word there is always a number"
    return value
