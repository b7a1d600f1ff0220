"""``engine-sim``: the stand-in engine as a command of ours, with flags of its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from tests.cli.command import start


def test_help_is_the_simulator_s_own() -> None:
    ran = start("engine-sim", "--help")
    assert ran.code == 0
    assert "--prefill-tokens-per-s" in ran.out


@pytest.mark.parametrize(
    "arguments", [["--port", "x"], ["--no-such-flag"], ["--engine", "other"], ["--kv-tokens", "1"]]
)
def test_wrong_flags_exit_with_2(arguments: list[str]) -> None:
    ran = start("engine-sim", *arguments)
    assert ran.code == 2
    assert "engine-sim: error:" in ran.err


def test_an_unknown_engine_is_told_the_known_ones() -> None:
    assert "'sgland' is not one of {vllm,sglang}" in start("engine-sim", "--engine", "sgland").err


def test_a_taken_port_exits_with_1() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        ran = start("engine-sim", "--port", str(port))
    assert ran.code == 1
    assert f"cannot listen on 127.0.0.1:{port}: " in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_it_serves_until_it_is_told_to_leave(engine: str) -> None:
    command = [sys.executable, "-m", "gateway", "engine-sim", "--port", "0", "--engine", engine, "--speed", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["engine"] == engine
        models = httpx.get(f"{ready['url']}/v1/models", trust_env=False, timeout=30).json()
        assert models["data"][0]["id"] == ready["model"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_port_that_is_none_is_told_with_its_range() -> None:
    ran = start("engine-sim", "--port", "99999")
    assert ran.code == 1
    assert ran.err.strip() == "engine-sim: --port 99999: it must be between 0 and 65535"
