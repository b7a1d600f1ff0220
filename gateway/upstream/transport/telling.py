"""What is told of a failed exchange: enough to find its cause, and nothing that was said in it.

Decided here: errors of the system are quoted, those of HTTP only named, since theirs repeat the bytes that they could
not read: a line of an answer, or of what an engine echoes.
"""

from __future__ import annotations


def told(error: BaseException) -> str:
    """Type and, of the system's errors, text."""
    name = type(error).__name__
    if isinstance(error, OSError):
        return f"{name}: {error}"
    return name if error.__cause__ is None else f"{name} ({told(error.__cause__)})"
