"""A real redis-server of a test's own: on a free port and a unix socket, killed, frozen, restarted empty at will.

Nothing is written to disk, so a restart is a loss of data. Every start is waited for by asking; nothing sleeps blindly.
"""

from __future__ import annotations

import io
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.ports import HOST, free_port
from tests.redis_program import redis_program

_START_S = 30.0


class RedisServer:
    """One server process. ``options`` are further words of its command line, ``program`` another than redis-server."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        tls: Path | None = None,
        password: str | None = None,
        program: str | None = None,
    ) -> None:
        self.folder = folder
        self._options = options
        self._tls = tls
        self._password = password
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.socket_path = folder / f"{self.port}.sock"

    @property
    def url(self) -> str:
        return f"{'rediss' if self._tls else 'redis'}://{HOST}:{self.port}/0"

    @property
    def unix_url(self) -> str:
        return f"unix://{self.socket_path}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        for _ in range(5):
            self._process = subprocess.Popen(
                self._command(), executable=self._executable(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if self._answers():
                return
            self.kill()
            self.port = free_port()
            self.socket_path = self.folder / f"{self.port}.sock"
        raise AssertionError("redis-server did not start")

    def _executable(self) -> str:
        program = self._program or redis_program("redis-server")
        assert program is not None, "redis-server is missing: .ci/setup installs it (redis-tools)"
        return program

    def _command(self) -> list[str]:
        command = [
            self._program or "redis-server", "--bind", HOST, "--save", "", "--appendonly", "no",
            "--dir", str(self.folder), "--unixsocket", str(self.socket_path), "--daemonize", "no", *self._options,
        ]  # fmt: skip
        if self._tls is None:
            return [*command, "--port", str(self.port)]
        files = (("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "ca.pem"))
        named = [word for what, name in files for word in (f"--tls-{what}-file", str(self._tls / name))]
        return [*command, "--port", "0", "--tls-port", str(self.port), *named]

    def _answers(self) -> bool:
        assert self._process is not None
        stop_at = time.monotonic() + _START_S
        while self._process.poll() is None and time.monotonic() < stop_at:
            with suppress(OSError):
                if self.ask("PING").startswith((b"+PONG", b"-NOAUTH", b"-NOPERM")):
                    return True
            time.sleep(0.01)
        return False

    def ask(self, *words: str) -> bytes:
        """One inline command over the unix socket; the whole answer as it came."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(self.socket_path))
            if self._password is not None:
                _exchange(connection, ("AUTH", self._password))
            return _exchange(connection, words)

    def calls(self, command: str) -> int:
        """How often a command was carried out, by INFO commandstats."""
        for line in self.ask("INFO", "commandstats").decode().splitlines():
            name, _, facts = line.partition(":")
            if name == f"cmdstat_{command.lower()}":
                return int(facts.split(",")[0].removeprefix("calls="))
        return 0

    def hash(self, key: str) -> dict[str, str]:
        """HGETALL, read; empty for a key that is not there."""
        answer = self.ask("HGETALL", key).decode().split("\r\n")[1:-1]
        words = [word for word in answer if not word.startswith("$")]
        return dict(zip(words[::2], words[1::2], strict=True))

    def keys(self) -> list[str]:
        """All keys."""
        answer = self.ask("KEYS", "*").decode().split("\r\n")[1:-1]
        return sorted(word for word in answer if not word.startswith("$"))

    def kill(self) -> None:
        """Kill -9; what it knew is gone."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def freeze(self) -> None:
        """It accepts connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Kill it and start it again on the same port, empty."""
        self.kill()
        self.start()


def _exchange(connection: socket.socket, words: Sequence[str]) -> bytes:
    request = b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words)])
    connection.sendall(request)
    with connection.makefile("rb") as stream:
        return _whole_answer(stream)


def _whole_answer(stream: io.BufferedReader) -> bytes:
    line = stream.readline()
    if line.startswith(b"$") and line != b"$-1\r\n":
        return stream.read(int(line[1:]) + 2)
    if line.startswith(b"*"):
        return line + b"".join(_bulk(_whole_answer(stream)) for _ in range(int(line[1:])))
    return line


def _bulk(answer: bytes) -> bytes:
    """An element of a list: one line for its length, so that lists are read by lines."""
    return answer if answer.startswith((b":", b"$", b"*", b"+", b"-")) else b"$\r\n" + answer


@contextmanager
def running(
    *options: str, tls: Path | None = None, password: str | None = None, program: str | None = None
) -> Iterator[RedisServer]:
    """A started server, ended afterwards; its folder is short because socket paths may not be long."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = RedisServer(Path(folder), *options, tls=tls, password=password, program=program)
        try:
            server.start()
            yield server
        finally:
            server.kill()
