"""The shipped front as a process: TLS and HTTP/2 before a gateway, on a port of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tests.certificates import make_authority
from tests.e2e.processes import until
from tests.ports import free_port

FOLDER = Path(__file__).parents[2] / "docker" / "front"


class Front:
    """``docker/front/start`` before the gateway at ``address``; ``url`` is where it listens, ``trust`` who vouches."""

    def __init__(self, address: str, folder: Path, **settings: str) -> None:
        self._state = folder / "state"
        self.papers = make_authority(folder, "front", "renewed")
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        self.trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        self.certificate, self.key = folder / "used.pem", folder / "used.key"
        self.use("front")
        self._environment = {
            **os.environ,
            "GATEWAY_ADDRESS": address,
            "FRONT_LISTEN": f"127.0.0.1:{self.port}",
            "FRONT_CERTIFICATE": str(self.certificate),
            "FRONT_KEY": str(self.key),
            "FRONT_STATE": str(self._state),
            "FRONT_WORKERS": "1",
            **settings,
        }

    def use(self, name: str) -> None:
        """Put another certificate where the front reads it."""
        shutil.copy(self.papers / f"{name}.pem", self.certificate)
        shutil.copy(self.papers / f"{name}.key", self.key)

    def __enter__(self) -> Front:
        self.process = subprocess.Popen([str(FOLDER / "start")], env=self._environment, stderr=subprocess.PIPE)
        until(self._listens, "a listening front")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def reload(self) -> None:
        """As after renewed certificates."""
        self.process.send_signal(signal.SIGHUP)

    def shown(self) -> str:
        """The common name on the certificate that a new connection is shown."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=30) as plain,
            self.trust.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            found = secured.getpeercert()
        assert found is not None
        return next(str(pair[1]) for group in found["subject"] for pair in group if pair[0] == "commonName")

    def _listens(self) -> bool:
        assert self.process.poll() is None, "the front ended at once"
        with suppress(OSError):
            return bool(self.shown())
        return False
