"""The systemd unit: what it starts exists, it waits for the drain, and its walls leave room for the workers' own."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.config.settings import Settings
from tests.docker.dockerfile import ROOT, shipped
from tests.docker.unit import UNIT, sections

FOUND = sections()
SERVICE = FOUND["Service"]
RUNTIME = shipped()[1][-1]


def one(key: str) -> str:
    (value,) = SERVICE[key]
    return value


def test_it_starts_what_the_image_starts() -> None:
    program, *words = one("ExecStart").split()
    assert program == f"/opt/vlm-gateway/bin/{RUNTIME.last('ENTRYPOINT').words[0]}"
    assert tuple(words) == RUNTIME.last("CMD").words
    assert one("Environment") == f"MALLOC_ARENA_MAX={RUNTIME.environment({})['MALLOC_ARENA_MAX']}"


def test_it_waits_for_the_drain_and_only_the_gateway_is_told() -> None:
    server = Settings().server
    assert int(one("TimeoutStopSec")) > server.settle_s + server.drain_timeout_s + 10
    assert (one("KillMode"), one("KillSignal")) == ("mixed", "SIGTERM")
    assert one("ExecReload") == "/bin/kill -HUP $MAINPID"
    assert one("Type") == "exec"


def test_it_may_open_as_many_files_as_the_doctor_asks_for() -> None:
    asked = re.search(r"if files < (\d+)", (ROOT / "gateway/cli/inspect.py").read_text(encoding="utf-8"))
    assert asked is not None
    assert int(one("LimitNOFILE")) >= int(asked[1])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DynamicUser", "yes"), ("NoNewPrivileges", "yes"), ("ProtectSystem", "strict"), ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"), ("PrivateDevices", "yes"), ("CapabilityBoundingSet", ""), ("RestrictNamespaces", "yes"),
    ],
)  # fmt: skip
def test_it_is_locked_up(key: str, value: str) -> None:
    assert one(key) == value


def test_workers_may_build_their_own_walls() -> None:
    allowed = {word for line in SERVICE["SystemCallFilter"] for word in line.split()}
    used = set(
        re.findall(r'"(landlock_\w+)"', (ROOT / "gateway/media/confine/landlock.py").read_text(encoding="utf-8"))
    )
    assert used <= {*allowed, "landlock_add_rule"}
    assert {"@system-service", "seccomp"} <= allowed


def test_systemd_itself_finds_nothing_wrong(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        # Bare machines and containers have none; what it would see of a unit's form is in `sections` and above.
        assert FOUND.keys() == {"Unit", "Service", "Install"}
        return
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/vlm-gateway/bin/vlm-gateway", "/bin/true"))
    ran = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
