"""Where steps are replayed: paths are moved, and nothing of the test's environment comes in but its network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.docker.dockerfile import ROOT, stages_of
from tests.docker.places import Folder, network_environment
from tests.docker.replay import build


def test_the_images_folders_are_moved_and_no_others(tmp_path: Path) -> None:
    place = Folder(tmp_path, tmp_path / "cache")
    (tmp_path / "opt/vlm-gateway/bin").mkdir(parents=True)
    script = "echo /opt/vlm-gateway/bin a/build /build/tools:/etc/vlm-gateway /builder > /build/told"
    place.run(script, {}, "/build")
    told = (tmp_path / "build/told").read_text(encoding="utf-8").split()
    assert told == [
        f"{tmp_path}/opt/vlm-gateway/bin", "a/build", f"{tmp_path}/build/tools:{tmp_path}/etc/vlm-gateway", "/builder",
    ]  # fmt: skip


def test_a_step_that_fails_fails(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        Folder(tmp_path, tmp_path).run("false; true", {}, "/build")


def test_a_command_gets_the_images_environment_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLMGW_SERVER_PORT", "1")
    monkeypatch.setenv("https_proxy", "http://proxy")
    assert network_environment()["https_proxy"] == "http://proxy"
    place = Folder(tmp_path, tmp_path)
    words, environment = place.command(["env", "/etc/vlm-gateway/a"], {"PATH": "/opt/vlm-gateway/bin:/usr/bin"}, "7:7")
    assert environment == {"PATH": f"{tmp_path}/opt/vlm-gateway/bin:/usr/bin"}
    assert words[-1] == f"{tmp_path}/etc/vlm-gateway/a"
    assert ("--reuid=7" in words) == (os.geteuid() == 0)


def test_steps_are_done_in_their_order_with_arguments_and_variables(tmp_path: Path) -> None:
    text = (
        "FROM base AS first\nARG A=1\nARG GIVEN=no\nARG UNSET\nENV B=$A-two\nRUN apt-get install nothing\n"
        "WORKDIR /build\nCOPY LICENSE README.md kept/\nCOPY docker/lock/ lock/\n"
        'RUN echo "$A $B $GIVEN ${UNSET-unset}" > told && ls kept lock > seen\n'
        "FROM base\nCOPY --from=first /build/told /etc/vlm-gateway/told\n"
    )
    place = Folder(tmp_path, tmp_path)
    first, second = stages_of(text)[1]
    assert build(place, first, {"GIVEN": "yes"}, {}).environment == {"B": "1-two"}
    build(place, second, {}, {"first": place})
    assert (tmp_path / "etc/vlm-gateway/told").read_text(encoding="utf-8") == "1 1-two yes unset\n"
    assert {"LICENSE", "README.md", "gateway.txt"} <= set((tmp_path / "build/seen").read_text().split())
    assert (tmp_path / "build/kept/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
