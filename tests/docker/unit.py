"""A systemd unit as data: sections of keys that may be given more than once."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docker.dockerfile import ROOT

UNIT = ROOT / "docker/systemd/vlm-gateway.service"
_LINE = re.compile(r"(\w+)=(.*)")


def sections(path: Path = UNIT) -> dict[str, dict[str, list[str]]]:
    """Raises ValueError for a line that is neither a section, a key nor a comment."""
    found: dict[str, dict[str, list[str]]] = {}
    current: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            current = found.setdefault(line[1:-1], {})
        elif entry := _LINE.fullmatch(line):
            current.setdefault(entry[1], []).append(entry[2])
        else:
            raise ValueError(f"{path.name}:{number}: {line}")
    return found
