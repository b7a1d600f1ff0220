"""Prometheus' text format, read back: as much of it as the gateway writes.

Decided here: how a line becomes a sample, and that only finite numbers and printable texts do. Not decided here: what
samples mean (`reading`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]
Samples: TypeAlias = Mapping[tuple[str, Labels], float]

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n"}


def read_samples(text: str) -> Samples:
    """Every sample by name and labels (sorted). Comments and what is no sample are passed over."""
    samples: dict[tuple[str, Labels], float] = {}
    for line in text.splitlines():
        found = None if line.startswith("#") else _LINE.match(line)
        if found is None:
            continue
        name, labels, value = found.groups()
        pairs = sorted((key, _plain(told)) for key, told in _LABEL.findall(labels or ""))
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number):
            samples[name, tuple(pairs)] = number
    return samples


def _plain(escaped: str) -> str:
    text = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), escaped)
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
