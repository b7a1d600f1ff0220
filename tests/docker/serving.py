"""A gateway and a simulated engine started by somebody's commands, and the picture that they are asked about.

Decided here: the ports, when both are ready, how they end. Not decided here: how a command is started.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import httpx

from tests.e2e.processes import until
from tests.ports import free_port
from tests.simulator import drawn
from tests.simulator.process import MODEL, chat, image_part

DEADLINE_S = 120.0


class Start(Protocol):
    def __call__(self, words: list[str], more: dict[str, str] | None = None) -> subprocess.Popen[str]: ...


@dataclass(frozen=True, slots=True)
class Running:
    gateway: subprocess.Popen[str]
    settings: dict[str, str]
    url: str


@contextmanager
def serving(start: Start, engine_words: list[str], words: list[str]) -> Iterator[Running]:
    """Both, ready. Raises AssertionError when they do not become it."""
    engine_port, port, admin_port = free_port(), free_port(), free_port()
    settings = {
        "VLMGW_BACKENDS": f"http://127.0.0.1:{engine_port}",
        "VLMGW_SERVER_PORT": str(port),
        "VLMGW_SERVER_ADMIN_PORT": str(admin_port),
    }
    engine = start([*engine_words, "--port", str(engine_port), "--speed", "0"])
    gateway = start(words, settings)
    try:
        until(lambda: status(f"http://127.0.0.1:{engine_port}/health") == 200, "a simulated engine", DEADLINE_S)
        until(lambda: status(f"http://127.0.0.1:{admin_port}/readyz") == 200, "a ready gateway", DEADLINE_S)
        yield Running(gateway, settings, f"http://127.0.0.1:{port}")
    finally:
        for process in (gateway, engine):
            if process.poll() is None:
                process.terminate()
            ended(process)


def ask_for_a_picture(url: str) -> str:
    """One that lies on its side, so that a worker must decode and encode it; what was done to it, from the headers."""
    picture = image_part(drawn.data_url(drawn.turned_jpeg(1600, 1200, 6)))
    body = chat("What is this?", picture, max_tokens=8)
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=DEADLINE_S, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.json()["model"] == MODEL
    assert "recoded=1" in answer.headers["x-vlmgw-images"], answer.headers
    return f"a picture: {answer.headers['x-vlmgw-images']}, {answer.headers['x-vlmgw-image-tokens']} tokens"


def ended(process: subprocess.Popen[str]) -> int:
    """The exit code of one that was told to end."""
    try:
        process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    return process.returncode


def status(url: str) -> int:
    """0 where nobody answers."""
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code
    except httpx.TransportError:
        return 0
