"""Text requests at concurrency 1: all of the journey (policy, budget, route, metrics, log) against relay and LiteLLM.

LiteLLM's proxy lives in an environment of its own, made on first use (``.bench/litellm``); where it cannot be installed
the report says so and has no ratio to it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

from benchmarks.contenders import Contender, Cost, measure, pin_apart, relay_and_gateway, stop, wait_listening
from benchmarks.stub import MODEL
from benchmarks.timing import Options, machine_facts

LITELLM_VERSION = "1.108.7"
_ENVIRONMENT = Path(__file__).parent.parent / ".bench" / "litellm"
_KEY = "sk-bench"
_BODY = json.dumps({
    "model": MODEL,
    "messages": [
        {"role": "system", "content": "You are a helpful assistant that answers briefly."},
        {"role": "user", "content": "Tell me in one sentence what a reverse proxy is. " * 8},
    ],
    "max_tokens": 16,
}).encode()  # fmt: skip


def _installed() -> Path | None:
    """LiteLLM's command, installing it when need be."""
    command = _ENVIRONMENT / "bin" / "litellm"
    if command.exists():
        return command
    print("installing LiteLLM's proxy into an environment of its own (once) ...", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(_ENVIRONMENT)], check=True)
    pip = [str(_ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", f"litellm[proxy]=={LITELLM_VERSION}"]
    done = subprocess.run(pip, check=False, stdout=sys.stderr)
    return command if done.returncode == 0 and command.exists() else None


def _free_port() -> int:
    import socket  # noqa: PLC0415  only for this

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _litellm(command: Path, stub_port: int) -> Iterator[Contender]:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        parameters = {"model": f"openai/{MODEL}", "api_base": f"http://127.0.0.1:{stub_port}/v1", "api_key": "none"}
        settings = {
            "model_list": [{"model_name": MODEL, "litellm_params": parameters}],
            "general_settings": {"master_key": _KEY},
        }
        config.write_text(json.dumps(settings))
        port = _free_port()
        log = Path(folder) / "log"
        with log.open("wb") as output:
            arguments = ["--config", str(config), "--port", str(port), "--host", "127.0.0.1", "--num_workers", "1"]
            process = subprocess.Popen([str(command), *arguments], stdout=output, stderr=output)
            try:
                wait_listening(port)
                yield Contender("litellm", port, process.pid, {"Authorization": f"Bearer {_KEY}"})
            finally:
                stop(process)


def run(options: Options) -> dict[str, object]:
    """``text.cpu_ratio_to_relay``, ``.cpu_ratio_to_litellm``, ``.added_p50_ms``; medians of one interleaved run."""
    rounds = options.rounds or 15
    command = _installed()
    with relay_and_gateway() as site, ExitStack() as stack:
        contenders = list(site.contenders)
        if command is not None:
            contenders.append(stack.enter_context(_litellm(command, site.stub_port)))
        pinned = pin_apart(site.stub_pid, contenders)
        costs = measure(contenders, _BODY, rounds=rounds, per_round=150, warm_up=150)
    return {
        "text": _ratios(costs),
        "pinned": pinned,
        "costs": {name: c.to_json() for name, c in costs.items()},
        "machine": machine_facts(),
    }


def _ratios(costs: dict[str, Cost]) -> dict[str, float | None]:
    relay, gateway, litellm = costs["relay"], costs["gateway"], costs.get("litellm")
    return {
        "cpu_ratio_to_relay": round(gateway.cpu_ms / relay.cpu_ms, 2),
        "cpu_ratio_to_litellm": None if litellm is None else round(gateway.cpu_ms / litellm.cpu_ms, 4),
        "added_p50_ms": round(gateway.p50_ms - relay.p50_ms, 3),
    }


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    costs = cast("dict[str, dict[str, float]]", report["costs"])
    ratios = cast("dict[str, float | None]", report["text"])
    lines = [f"{name:10} {cost['cpu_ms']:8.3f} CPU-ms  p50 {cost['p50_ms']:8.3f} ms" for name, cost in costs.items()]
    return [*lines, *(f"{name}: {value}" for name, value in ratios.items())]
