"""Every target of guided fuzzing; a new one is one line here."""

from __future__ import annotations

from tests.fuzz.targets import bodies, files, media, streams, told, wires
from tests.fuzz.targets.target import Target

TARGETS: tuple[Target, ...] = (
    *bodies.TARGETS,
    *streams.TARGETS,
    *media.TARGETS,
    *files.TARGETS,
    *told.TARGETS,
    *wires.TARGETS,
)
