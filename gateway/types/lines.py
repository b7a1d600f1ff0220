"""The head of an HTTP/1 message as bytes, whichever way it goes.

Decided here: that nothing is written which would end a line early or hide in one (RFC 9112 §2.2, RFC 9110 §5.5), and
that bytes which were read as lone surrogates leave as they came. Not decided here: what the lines say.
"""

from __future__ import annotations

from collections.abc import Sequence

# What no line of a head may hold; a tab is let through.
_CONTROLS = bytes([*range(0x09), *range(0x0A, 0x20), 0x7F])


def head_bytes(lines: Sequence[str]) -> bytes:
    """The lines and the empty one behind them. Raises ValueError for a control character within a line."""
    head = "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")
    # Those that end lines, and no other: counted by leaving them out, in a quarter of a pattern's time.
    if len(head) - len(head.translate(None, _CONTROLS)) != 2 * (len(lines) + 1):
        raise ValueError("a control character in the head of a message")
    return head
