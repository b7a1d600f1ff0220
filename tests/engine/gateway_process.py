"""One real gateway, `python -m gateway serve`, in front of the given engines."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from tests.engine.vllm import wait_until

ROOT = Path(__file__).parents[2]
SERVING = re.compile(r"Serving .* on (http://\S+:\d+), admin on port (\d+)")


class GatewayProcess:
    """Context manager; `url` is the data port, `admin_url` the other. `models`: how many of them the backends serve."""

    def __init__(
        self,
        folder: Path,
        backends: Sequence[Mapping[str, object]],
        policy: Mapping[str, object],
        settings: Mapping[str, object],
        *,
        models: int | None = None,
    ) -> None:
        self._log = folder / "gateway.log"
        policies = folder / "policies"
        policies.mkdir()
        (policies / "default.yaml").write_text(json.dumps(policy))
        server = {"port": 0, "admin_port": 0, "settle_s": 0.0}
        upstream = {"probe_interval_s": 1.0, "probe_timeout_s": 20.0, "discovery_timeout_s": 30.0}
        config = {
            "server": server, "upstream": upstream, "backends": list(backends), "policies": str(policies),
            "models": dict(settings),
        }  # fmt: skip
        self._config = folder / "gateway.yaml"
        self._config.write_text(json.dumps(config))
        self._expected_models = len(backends) if models is None else models
        self.url = self.admin_url = ""

    def __enter__(self) -> GatewayProcess:
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(self._config), "--pool", "1"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until(self._knows_its_models, 60, "the gateway knows its engines' models")
        except AssertionError as error:
            self._end()
            raise AssertionError(f"{error}\n{self.said()[-3000:]}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait()

    def said(self) -> str:
        """All that it printed so far."""
        return self._log.read_text(errors="replace")

    def _knows_its_models(self) -> bool:
        assert self._process.poll() is None, f"the gateway ended with {self._process.returncode}"
        found = SERVING.search(self.said())
        if found is None:
            return False
        self.url, self.admin_url = found[1], f"http://127.0.0.1:{found[2]}"
        models = httpx.get(f"{self.url}/v1/models", timeout=20, trust_env=False)
        return models.status_code == httpx.codes.OK and len(models.json()["data"]) == self._expected_models
