"""Ways not to start several processes: said once, with the exit codes that one process has."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import command
from tests.cli.command import NOBODY, Ran

pytestmark = pytest.mark.slow


def run(*arguments: str) -> Ran:
    """As a process: what its processes say is theirs to say."""
    line = [sys.executable, "-m", "gateway", *arguments]
    environment = {**os.environ, "VLMGW_MEDIA_SPARE_WORKERS": "0"}
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60, env=environment)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_a_port_of_somebody_else_is_not_shared_with_him() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        ran = run("serve", "--backend", NOBODY, "--processes", "2", "--port", port, "--admin-port", "0")
    assert ran.code == 1
    assert "Cannot listen: Address already in use (--port and --admin-port choose others)" in ran.err


def test_what_cannot_be_used_is_said_by_one(tmp_path: Path) -> None:
    (tmp_path / "default.yaml").write_text("rules: {max_image: 3}", encoding="utf-8")
    policies = ("--policies", str(tmp_path))
    ran = run("serve", "--backend", NOBODY, "--processes", "3", "--port", "0", "--admin-port", "0", *policies)
    assert ran.code == 2
    assert ran.err.count("did you mean max_images?") == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ((), {"VLMGW_SERVER_UNIX_SOCKET": "/tmp/x.sock"}, "processes: only one can listen on a unix_socket"),
        (("--admin-port", "65534"), {}, "would have an admin port above 65535"),
        (("--port", "9465"), {}, "9465 is the data port and an admin port (9464 to 9466)"),
        ((), {"VLMGW_UPSTREAM_KV_EVENTS_LISTEN": "tcp://127.0.0.1:5557"}, "only one of server.processes can listen"),
    ],
)
def test_what_several_cannot_share_is_refused(
    arguments: tuple[str, ...], environment: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ran = command.run("serve", "--backend", NOBODY, "--processes", "2", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
