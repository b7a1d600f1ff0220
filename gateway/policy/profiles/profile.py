"""What a vendor profile is: values of rules as a file could write them, and how that vendor spells refusals.

Decided here: the shape. Not decided here: the numbers (one file per vendor, each with its source), and where a
profile lies among the layers of a policy (`resolve`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.errors import GatewayError, Spelling


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """``rules``: key -> value as its kind would have read it (those that are joined: the part that is written).

    ``errors``: our code -> status and code in the vendor's words; ``words``: status -> code for all others.
    """

    name: str
    rules: Mapping[str, object]
    errors: Mapping[str, Spelling] = field(default_factory=dict)
    words: Mapping[int, str] = field(default_factory=dict)

    def spelling(self, error: GatewayError) -> Spelling | None:
        """How the vendor would put this error; ``None`` where it would put it as we do."""
        known = self.errors.get(error.code)
        if known is not None:
            return known
        word = self.words.get(error.status)
        return None if word is None else Spelling(error.status, word)
