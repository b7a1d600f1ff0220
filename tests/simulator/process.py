"""A simulator in a process of its own, and the small bodies that the tests send."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

MODEL = "Qwen/Qwen3-VL-8B-Instruct"


class SimulatorProcess:
    """Starts `python -m gateway.simulator` on a free port; `url` is what it printed."""

    def __init__(self, *flags: str) -> None:
        self._flags = flags

    def __enter__(self) -> SimulatorProcess:
        command = [sys.executable, "-m", "gateway.simulator", "--port", "0", *self._flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.ready = json.loads(self.process.stdout.readline())
        self.url: str = self.ready["url"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


def image_part(url: str | None, **fields: object) -> dict[str, object]:
    return {"type": "image_url", "image_url": None if url is None else {"url": url}, **fields}


def chat(*parts: Mapping[str, object] | str, **fields: Any) -> dict[str, Any]:
    """A chat body with one user message; a plain string is a text part."""
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}


def events(body: str) -> list[str]:
    """The data of each event of a stream."""
    return [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]


def parsed_events(body: str) -> list[dict[str, Any]]:
    return [json.loads(data) for data in events(body) if data != "[DONE]"]


def joined_text(body: str, pick: Callable[[dict[str, Any]], str | None]) -> str:
    return "".join(pick(entry) or "" for entry in parsed_events(body))
