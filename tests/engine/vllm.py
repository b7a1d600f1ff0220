"""One real `vllm serve` with a tiny model: starting, waiting, ending. Each leads a session of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

START_DEADLINE_S = 1500.0
END_DEADLINE_S = 10.0
PLUGINS = Path(__file__).with_name("plugins")

# 160 blocks of 128 tokens hold one prompt of full length; more than that would only cost memory.
FLAGS = (
    "--dtype=float32",
    "--enforce-eager",
    "--max-model-len=20480",
    "--num-gpu-blocks-override=176",
    "--max-num-seqs=16",
    "--enable-prefix-caching",
    "--enable-prompt-tokens-details",
    "--logits-processors=pace:Pace",
)


def wait_until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Poll until it holds; fails with `what` after the deadline."""
    give_up_at = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < give_up_at, f"{what}: still not so after {deadline_s:g} s"
        time.sleep(0.05)


class VllmServer:
    """`begin` returns at once, so that several start side by side; `url` answers after `wait_healthy`."""

    def __init__(self, engine_dir: Path, model: str, served_name: str, *flags: str, dev_mode: bool = False) -> None:
        self._model = engine_dir / "models" / model
        self._program = engine_dir / "venv" / "bin" / "python"
        self._flags = (*FLAGS, *flags)
        self._dev_mode = dev_mode
        self._process: subprocess.Popen[bytes] | None = None
        # Sockets between its processes lie here: their paths must stay below 108 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="vllm-"))
        self._log = self._folder / "log"
        self._port_holder = socket.socket()
        self._port_holder.bind(("127.0.0.1", 0))
        self.served_name = served_name
        self.url = f"http://127.0.0.1:{self._port_holder.getsockname()[1]}"

    def begin(self) -> None:
        """Start the processes."""
        port = self.url.rpartition(":")[2]
        self._port_holder.close()
        command = [str(self._program), str(self._program.with_name("vllm")), "serve", str(self._model)]
        command += ["--served-model-name", self.served_name, "--host=127.0.0.1", f"--port={port}", *self._flags]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        caches = {name: str(self._folder) for name in ("HF_HOME", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT")}
        silent = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        processor = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
        # Eager mode covers the model only: counting ranks for logprobs would still call a C++ compiler.
        rest = {"TORCH_COMPILE_DISABLE": "1", "VLLM_HOST_IP": "127.0.0.1", "VLLM_RPC_BASE_PATH": str(self._folder)}
        rest["PYTHONPATH"] = str(PLUGINS)
        # The endpoints that empty caches are there in this mode only.
        dev = {"VLLM_SERVER_DEV_MODE": "1"} if self._dev_mode else {}
        return kept | caches | silent | processor | rest | dev

    def wait_healthy(self) -> None:
        """Return when /health is 200; fails with the end of its log when it ends before or takes too long."""
        try:
            wait_until(self._is_healthy, START_DEADLINE_S, f"{self.served_name} is healthy")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._log.read_text(errors='replace')[-3000:]}") from None

    def _is_healthy(self) -> bool:
        assert self._process is not None, "begin() first"
        assert self._process.poll() is None, f"{self.served_name} ended with {self._process.returncode}"
        try:
            return httpx.get(f"{self.url}/health", timeout=10, trust_env=False).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def ask_to_end(self) -> None:
        """Return at once, so that several end side by side."""
        if self._process is not None:
            self._process.terminate()

    def end(self) -> None:
        """Ask it to end, then insist. With requests in flight vLLM does not end by being asked."""
        if self._process is not None:
            self.ask_to_end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_DEADLINE_S)
            # Its engine and its resource tracker may outlive it for a moment; the tracker frees the shared memory.
            with contextlib.suppress(AssertionError):
                wait_until(lambda: not self._has_group(), END_DEADLINE_S, "its processes end")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _has_group(self) -> bool:
        assert self._process is not None, "begin() first"
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def running_requests(self) -> int:
        """`vllm:num_requests_running` now."""
        return int(self.metric("vllm:num_requests_running"))

    def generated_tokens(self) -> int:
        """`vllm:generation_tokens_total` now."""
        return int(self.metric("vllm:generation_tokens_total"))

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples, of those with these labels."""
        lines = httpx.get(f"{self.url}/metrics", timeout=30, trust_env=False).text.splitlines()
        named = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        samples = [float(line.rpartition(" ")[2]) for line in named if all(pair in line for pair in wanted)]
        assert samples or labels, f"no metric {name}"
        return sum(samples)

    @property
    def pid(self) -> int:
        """Of its API server process; the engine's core is another."""
        assert self._process is not None, "begin() first"
        return self._process.pid
