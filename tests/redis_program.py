"""Where the programs of Redis are.

Debian's ``redis-tools`` holds the server under another name: one binary that is what its first word says. The packages
``redis-server`` and ``redis-sentinel`` would add links to it, and services on 6379 and 26379 that no test wants.
"""

from __future__ import annotations

import shutil
from typing import Literal

_BINARY = "redis-check-rdb"


def redis_program(name: Literal["redis-server", "redis-sentinel"]) -> str | None:
    """The file to run with ``name`` as the first word of its command line; ``None`` where Redis is not installed."""
    return shutil.which(name) or shutil.which(_BINARY)
