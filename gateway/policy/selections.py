"""The kind of value that says which pictures of a source are used: `first`, `reject`, or several as in `sample:4`.

Decided here: spelling and range. Not decided here: which frames or pages those are (`rules.animated`, `rules.pages`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.policy.effective import Selection, Several
from gateway.policy.node import Node, ScalarNode, nearest
from gateway.policy.values import BadValue, JsonSchema, Mistake, bad


@dataclass(frozen=True, slots=True)
class Selections:
    """``first``, ``reject`` or ``word:N`` with N from ``minimum`` to ``maximum``."""

    word: str
    minimum: int
    maximum: int

    def parse(self, node: Node) -> Selection:
        value = node.value if isinstance(node, ScalarNode) else None
        if value in (Several.FIRST.value, Several.REJECT.value):
            return Selection(Several(value))
        many = re.fullmatch(rf"{self.word}:([0-9]{{1,6}})", value) if isinstance(value, str) else None
        if many is None:
            words = [Several.FIRST.value, Several.REJECT.value, f"{self.word}:N"]
            raise bad(node, f"one of {', '.join(words)}", nearest(str(value), words))
        count = int(many[1])
        if not self.minimum <= count <= self.maximum:
            span = f"{self.minimum} to {self.maximum}"
            raise BadValue(Mistake(node.line, f"{count} is out of range: N of {self.word}:N is {span}"))
        return Selection(Several.MANY, count, self.word)

    def schema(self) -> JsonSchema:
        pattern = rf"^{self.word}:[0-9]{{1,6}}$"
        words = [Several.FIRST.value, Several.REJECT.value]
        return {"anyOf": [{"enum": words}, {"type": "string", "pattern": pattern}]}
