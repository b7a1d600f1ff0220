"""Names with ``*`` for any run of characters, also an empty one: models, paths, users, values of headers."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=4_096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)


def matches(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern as a whole."""
    return _compiled(pattern).fullmatch(name) is not None
