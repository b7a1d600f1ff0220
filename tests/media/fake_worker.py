"""An image worker whose codec does what its image says: the file is a JSON object of orders instead of pixels.

``{"size": [w, h], "at": "probe" | "render", "do": …, "once": path, "value": n}``; ``once`` limits the deed to the first
time (the path is the mark). Deeds: kill, stop (hang), sleep, grow (keep memory), memory (MemoryError), surprise, bad.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.errors import Undecodable
from gateway.media.worker import run
from gateway.ports import Accepts
from gateway.types import Detail, ImageFormat, ImagePlan, Probe, Size


@dataclass(frozen=True, slots=True)
class FakeRendered:
    data: bytes
    format: ImageFormat
    size: Size


class FakeCodec:
    fingerprint = "fake-1"

    def __init__(self) -> None:
        self.kept: list[bytearray] = []

    def probe(self, data: bytes, accepts: Accepts) -> Probe:
        orders = self._obey(data, "probe")
        width, height = orders.get("size", [64, 48])
        return Probe(ImageFormat.PNG, Size(width, height), complete=orders.get("complete", True))

    def measure(self, data: bytes, probe: Probe, sizes: Sequence[Size]) -> tuple[Detail, tuple[float, ...]]:
        orders = self._obey(data, "measure")
        return Detail(probe.raster.pixels, tuple(orders.get("losses", [1, 1])), 0), (40.0,) * len(sizes)

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> FakeRendered:
        orders = self._obey(data, "render")
        return FakeRendered(b"rendered " * orders.get("length", 1), ImageFormat.PNG, plan.target)

    def _obey(self, data: bytes, where: str) -> dict[str, Any]:
        try:
            orders: dict[str, Any] = json.loads(data)
        except ValueError as error:
            raise Undecodable("The file holds no orders.") from error
        if orders.get("at") == where and not self._done_before(orders.get("once")):
            self._do(orders["do"], orders.get("value", 0))
        return orders

    @staticmethod
    def _done_before(mark: str | None) -> bool:
        if mark is None:
            return False
        if Path(mark).exists():
            return True
        Path(mark).touch()
        return False

    def _do(self, deed: str, value: float) -> None:
        match deed:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "sleep":
                time.sleep(value)
            case "grow":
                self.kept.append(bytearray(b"x" * int(value)))
            case "memory":
                bytearray(1 << 50)
            case "surprise":
                raise RuntimeError("a secret of the image")
            case "bad":
                raise Undecodable("The image is bad.")
            case "nonsense":
                os.write(self._channel_fd(), b"\xff not a message")

    @staticmethod
    def _channel_fd() -> int:
        return int(json.loads(sys.argv[1])["channel_fd"])


def load(name: str) -> FakeCodec:
    if name != "fake":
        raise RuntimeError(f"no codec {name}")
    return FakeCodec()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], load, lambda: None))
