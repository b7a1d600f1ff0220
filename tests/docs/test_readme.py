"""The README is true: every command and snippet it shows is executed, every number it prints is computed again.

A block is tagged with its name behind its language (``bash demo``); a block that nothing here runs fails a test. Ports
and the photograph are this test's own: two simulated engines, and a picture of the size that the README speaks of.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command import COMMANDS, draw_pictures
from tests.e2e.processes import Engine, Gateway
from tests.simulator import drawn

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = {
    match[2].strip(): (match[1], match[3])
    for match in re.finditer(r"^```(\w+)([^\n]*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    if match[1] != "text"
}
WIDTH, HEIGHT = 4032, 3024


@dataclass(frozen=True, slots=True)
class Site:
    """The user's folder as the README has it, and a gateway that serves from it."""

    folder: Path
    gateway: Gateway

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a snippet as a user would, with the ports of this test."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = ["bash", "-euo", "pipefail", "-c", script.replace("http://127.0.0.1:8080", self.gateway.url)]
        return subprocess.run(
            command, cwd=self.folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )


def arguments(block: str, command: str) -> list[str]:
    """The words of the line of a block that begins with these words."""
    line = next(line for line in BLOCKS[block][1].splitlines() if line.startswith(command))
    return shlex.split(line)[len(command.split()) :]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve exactly as the README says, apart from the ports."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "policies").mkdir()
    (folder / "policies/default.yaml").write_text(BLOCKS["policies/default.yaml"][1], encoding="utf-8")
    (folder / "photo.jpg").write_bytes(drawn.jpeg(WIDTH, HEIGHT))
    with ExitStack() as stack:
        given = arguments("policy", "vlm-gateway serve")
        given[given.index("policies")] = str(folder / "policies")
        for port in ("8000", "8001"):
            engine = stack.enter_context(Engine("--speed", "0"))
            given[given.index(f"http://127.0.0.1:{port}")] = engine.url
        yield Site(folder, stack.enter_context(Gateway(*given)))


def test_every_block_is_run_by_a_test_of_this_file() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{name}"' in source for name in BLOCKS), BLOCKS.keys()
    assert {"demo", "test", "serve", "client", "policies/default.yaml", "policy", "request", "headers"} == set(BLOCKS)


def test_the_two_commands(tmp_path: Path) -> None:
    assert BLOCKS["demo"][1] == "make demo\n"
    assert BLOCKS["test"][1] == "make test\n"
    pictures = draw_pictures(tmp_path)
    demo = ["make", "demo", f"ARGS=--once --images {pictures}"]
    shown = subprocess.run(demo, cwd=ROOT, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr[-2000:]
    assert "conforming: passed untouched" in shown.stdout
    # This very run is what `make test` does; only what it would do is looked at.
    planned = subprocess.run(["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "-m pytest" in planned.stdout


def test_serving_needs_nothing_but_backends(site: Site) -> None:
    given = arguments("serve", "vlm-gateway serve")
    assert given == ["--backend", "http://127.0.0.1:8000", "--backend", "http://127.0.0.1:8001"]
    assert len(site.gateway.line(lambda line: line.get("event") == "started", "the start")["backends"]) == 2


def test_the_client_gets_its_answer(site: Site) -> None:
    (site.folder / "client.py").write_text(
        BLOCKS["client"][1].replace("http://127.0.0.1:8080", site.gateway.url), encoding="utf-8"
    )
    ran = site.run("python client.py")
    assert ran.returncode == 0, ran.stderr
    assert "I see 1 image: 1312x960 (1230 tokens" in ran.stdout


def test_the_policy_has_the_effect_that_the_table_shows(site: Site) -> None:
    checked = site.run(next(line for line in BLOCKS["policy"][1].splitlines() if " check " in line))
    assert checked.returncode == 0, checked.stderr
    rows = re.findall(r"^\| (\w+) \| (\d+x\d+) \| (\d+) \| (\d+) \| ([\d.]+) \|$", README, re.MULTILINE)
    assert [row[0] for row in rows] == ["chat", "classify", "ocr"]
    for task, *numbers in rows:
        ran = site.run(f"vlm-gateway estimate {WIDTH}x{HEIGHT} --policies policies --task {task} --json")
        (told,) = json.loads(ran.stdout)
        assert numbers == [told["target"], str(told["tokens"]), str(told["tokens_original"]), str(told["kv_mb"])]


def test_the_response_says_what_the_readme_says(site: Site) -> None:
    ran = site.run(BLOCKS["request"][1])
    assert ran.returncode == 0, ran.stderr
    head, _, body = ran.stdout.replace("\r\n", "\n").partition("\n\n")
    got = dict(line.split(": ", 1) for line in head.splitlines()[1:])
    shown = dict(line.split(": ", 1) for line in BLOCKS["headers"][1].splitlines())
    assert shown.keys() <= got.keys()
    of_this_run = {"x-request-id", "x-vlmgw-backend", "x-vlmgw-image-digests", "Server-Timing"}
    assert {name: got[name] for name in shown.keys() - of_this_run} == {
        name: shown[name] for name in shown.keys() - of_this_run
    }
    timed = re.findall(r"(\w+);dur=", shown["Server-Timing"])
    assert set(timed) <= set(re.findall(r"(\w+);dur=", got["Server-Timing"]))
    assert json.loads(body)["usage"]["prompt_tokens_details"]["multimodal_tokens"]["image"] == 234


def test_the_commands_named_in_passing_exist() -> None:
    named = set(re.findall(r"vlm-gateway ([a-z-]+)", README)) | set(
        re.findall(r"[a-z-]+", re.search(r"All commands: `([^`]+)`", README)[1])  # type: ignore[index]  # asserted below
    )
    assert named <= COMMANDS


def test_every_link_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_five_minutes_are_enough() -> None:
    assert len(README.splitlines()) <= 160
