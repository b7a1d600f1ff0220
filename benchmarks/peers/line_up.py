"""Who is measured, and how each is started: as its own documentation says, with its defaults, quiet where it can be.

All stand in front of the same backends on the loopback interface. Backends and the asker run on the first CPU, every
contender on the last one: it is *started* there, so that whoever sizes its threads by the CPUs it has gets one.

* ``gateway``: ``vlm-gateway serve --backend ...`` in one process with the shipped settings and policies: metrics,
  access log (read by another process and kept in a file), budgets, routing, images prepared in its worker processes.
  Only the waits of ending it are shortened.
* ``relay``: ``benchmarks.relay``, a bare aiohttp relay.
* ``sglang-router``, ``vllm-router``: default policy (``cache_aware`` in both), log level ``warn`` and ``error`` (at
  ``info`` each prints lines per request). ``vllm-router-rr`` is the latter with ``round_robin``, its cheapest: with
  ``cache_aware`` it sends every text request to all backends once more, to have its prompt rendered.
* ``litellm``: the proxy with one worker, ``openai/`` provider, a master key (it does not start without), no database.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.contenders import Contender, module, started, stop
from benchmarks.peers.asking import ask_once
from benchmarks.peers.bodies import TEXT
from benchmarks.peers.environments import Environment, environment
from benchmarks.stub import MODEL

GATEWAY, RELAY, SGLANG, VLLM, VLLM_RR, LITELLM = (
    "gateway", "relay", "sglang-router", "vllm-router", "vllm-router-rr", "litellm",
)  # fmt: skip
EVERYBODY = (GATEWAY, RELAY, SGLANG, VLLM, VLLM_RR, LITELLM)
_KEY = "sk-bench"
_READY_LIMIT_S = 120.0
_OK = 200


@dataclass(frozen=True, slots=True)
class Variant:
    """A contender's name and what is said to it on the command line beyond what it needs."""

    name: str
    arguments: tuple[str, ...] = ()


@dataclass(slots=True)
class Site:
    """Backends and what stands in front of them. ``missing``: peers that could not be installed or started, and why."""

    backends: list[tuple[int, subprocess.Popen[bytes]]]
    contenders: list[Contender] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def cpus() -> tuple[int, int]:
    """The CPU of asker and backends, and that of the contenders; the same where there is only one."""
    found = sorted(os.sched_getaffinity(0))
    return found[0], found[-1]


@contextmanager
def on_cpu(cpu: int) -> Iterator[None]:
    """What is started in here stays on this CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def site(wanted: Sequence[Variant], backends: int = 1) -> Iterator[Site]:
    """So many backends and all the contenders that can be had, ready to answer. The caller runs on the first CPU."""
    with ExitStack() as stack:
        everywhere = os.sched_getaffinity(0)
        asking, contending = cpus()
        os.sched_setaffinity(0, {asking})
        stack.callback(os.sched_setaffinity, 0, everywhere)
        found = Site([stack.enter_context(backend()) for _ in range(backends)])
        urls = [f"http://127.0.0.1:{port}" for port, _ in found.backends]
        for variant in wanted:
            ours = _OURS.get(variant.name)
            with on_cpu(contending):
                if ours is not None:
                    found.contenders.append(stack.enter_context(ours(variant, urls)))
                    continue
                installed = environment(variant.name.removesuffix("-rr"))
                if installed.missing:
                    found.missing[variant.name] = installed.missing
                    continue
                found.contenders.append(stack.enter_context(_THEIRS[variant.name](variant, installed, urls)))
        for contender in list(found.contenders):
            reason = _not_ready(contender)
            if reason:
                found.missing[contender.name] = reason
                found.contenders.remove(contender)
        yield found


@contextmanager
def backend(port: int = 0) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """One backend process and its port."""
    with started(module("benchmarks.peers.backend", str(port))) as (process, told):
        yield int(str(told["port"])), process


def _not_ready(contender: Contender) -> str:
    """Wait until it answers a text request; why it does not."""
    deadline_s = time.monotonic() + _READY_LIMIT_S
    last = "nothing listens"
    while time.monotonic() < deadline_s:
        try:
            answer = ask_once(contender, TEXT)
            if answer.status == _OK:
                return ""
            last = f"status {answer.status}"
        except OSError as error:
            last = str(error)
        time.sleep(0.1)
    return f"did not get ready within {_READY_LIMIT_S:.0f} s: {last}"


@contextmanager
def _gateway(variant: Variant, backends: Sequence[str]) -> Iterator[Contender]:
    chosen = [word for url in backends for word in ("--backend", url)]
    arguments = ("serve", *chosen, "--port", "0", "--admin-port", "0", *variant.arguments)
    ending = {"VLMGW_SERVER_SETTLE_S": "0", "VLMGW_SERVER_DRAIN_TIMEOUT_S": "1"}
    with tempfile.TemporaryFile() as log, started(module("gateway", *arguments), **ending) as (process, ready):
        assert process.stdout is not None
        with on_cpu(cpus()[0]):
            reader = subprocess.Popen(["cat"], stdin=process.stdout, stdout=log)
        try:
            yield Contender(variant.name, int(str(ready["data_port"])), process.pid, {})
        finally:
            reader.kill()
            reader.wait()


@contextmanager
def _relay(variant: Variant, backends: Sequence[str]) -> Iterator[Contender]:
    with started(module("benchmarks.relay", backends[0])) as (process, told):
        yield Contender(variant.name, int(str(told["port"])), process.pid, {})


@contextmanager
def _sglang(variant: Variant, installed: Environment, backends: Sequence[str]) -> Iterator[Contender]:
    command = [str(installed.python), "-m", "sglang_router.launch_router", *_router(variant, backends)]
    with _quiet(variant.name, [*command, "--log-level", "warn"]) as contender:
        yield contender


@contextmanager
def _vllm(variant: Variant, installed: Environment, backends: Sequence[str]) -> Iterator[Contender]:
    policy = ("--policy", "round_robin") if variant.name == VLLM_RR else ()
    command = [str(installed.command), *_router(variant, backends), *policy, "--log-level", "error"]
    with _quiet(variant.name, command) as contender:
        yield contender


def _router(variant: Variant, backends: Sequence[str]) -> list[str]:
    """The arguments both Rust routers take; their metrics port is fixed unless told."""
    return ["--prometheus-port", str(_free_port()), "--worker-urls", *backends, *variant.arguments]


@contextmanager
def _litellm(variant: Variant, installed: Environment, backends: Sequence[str]) -> Iterator[Contender]:
    deployments = [
        {
            "model_name": MODEL,
            "litellm_params": {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": "none"},
        }
        for url in backends
    ]
    settings = {"model_list": deployments, "general_settings": {"master_key": _KEY}}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(json.dumps(settings), encoding="utf-8")
        command = [str(installed.command), "--config", str(config), "--num_workers", "1", *variant.arguments]
        with _quiet(variant.name, command) as contender:
            yield Contender(contender.name, contender.port, contender.pid, {"Authorization": f"Bearer {_KEY}"})


@contextmanager
def _quiet(name: str, command: Sequence[str]) -> Iterator[Contender]:
    """A process on a free port whose output is kept out of the way."""
    port = _free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            yield Contender(name, port, process.pid, {})
        finally:
            stop(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_OURS: dict[str, Callable[..., AbstractContextManager[Contender]]] = {GATEWAY: _gateway, RELAY: _relay}
_THEIRS: dict[str, Callable[..., AbstractContextManager[Contender]]] = {
    SGLANG: _sglang, VLLM: _vllm, VLLM_RR: _vllm, LITELLM: _litellm,
}  # fmt: skip
