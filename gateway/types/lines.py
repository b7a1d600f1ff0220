"""The head of an HTTP/1 message as bytes, whichever way it goes.

Decided here: that nothing is written which would end a line early or hide in one (RFC 9112 §2.2, RFC 9110 §5.5), and
that bytes which were read as lone surrogates leave as they came. Not decided here: what the lines say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# What no line of a head may hold; a tab is let through. Line ends are counted.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def head_bytes(lines: Sequence[str]) -> bytes:
    """The lines and the empty one behind them. Raises ValueError for a control character within a line."""
    head = "\r\n".join([*lines, "", ""])
    ends = len(lines) + 1
    if head.count("\n") != ends or head.count("\r") != ends or _FORBIDDEN.search(head) is not None:
        raise ValueError("a control character in the head of a message")
    return head.encode("utf-8", "surrogateescape")
