"""What every client program does: play scenes against one gateway, and print what came of each as one JSON object.

Runs in the environment of the client libraries (``.clients``), which does not hold the gateway.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODEL = "Qwen/Qwen3-VL-8B-Instruct"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the gateway is, and two pictures as data URLs: one above its cap, one that conforms, one broken."""

    url: str
    big: str
    small: str
    broken: str

    @property
    def media(self) -> dict[str, str]:
        """The pictures' bare base64."""
        return {name: getattr(self, name).partition(",")[2] for name in ("big", "small", "broken")}


def play(*scenes: Callable[[Stage], object]) -> None:
    """``argv``: the gateway's address and a JSON file with the pictures. A scene's exception is its result."""
    stage = Stage(sys.argv[1], **json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    results = {scene.__name__: _played(scene, stage) for scene in scenes}
    sys.stdout.write(json.dumps(results) + "\n")


def _played(scene: Callable[[Stage], object], stage: Stage) -> object:
    try:
        found = scene(stage)
        return asyncio.run(found) if inspect.iscoroutine(found) else found
    except Exception as error:  # noqa: BLE001  # the library's own error is what the test looks at
        return {
            "raised": type(error).__name__,
            "kinds": [kind.__name__ for kind in type(error).__mro__],
            "status": getattr(error, "status_code", None),
            "text": str(error)[:2000],
        }
