"""The walks of docs/extending.md lead where they say: taken in a copy of the project, where every check is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import DOCS, Block, blocks

ROOT = DOCS.parent
BLOCKS = blocks("extending.md")
TITLES = re.findall(r"^## (.+)$", (DOCS / "extending.md").read_text(encoding="utf-8"), re.MULTILINE)
# Each check begins anew; all of them in one process, since what takes time is to start.
_RUN = """
import json, sys, traceback
import gateway
found = [gateway.__file__]
for text in json.load(sys.stdin):
    try:
        exec(compile(text, "check", "exec"), {"__name__": "check"})
        found.append("")
    except BaseException:
        found.append(traceback.format_exc())
print(json.dumps(found))
"""


def patched(text: str, patch: str) -> str:
    """The text with every hunk of a patch in its place, which must be one place."""
    for hunk in patch.split("@@\n"):
        lines = hunk.splitlines()
        old = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        new = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        assert text.count(old) == 1, f"{text.count(old)} places for\n{hunk}"
        text = text.replace(old, new)
    return text


def take(block: Block, root: Path) -> None:
    place = root / block.name
    if block.language == "diff":
        place.write_text(patched(place.read_text(encoding="utf-8"), block.text), encoding="utf-8")
    elif block.name != "check":
        assert not place.exists(), place
        place.write_text(block.text, encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, its bytecode too, with all walks taken."""
    root = tmp_path_factory.mktemp("extended")
    for name in ("gateway", "docs", "policies"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "pyproject.toml", root)
    for block in BLOCKS:
        take(block, root)
    return root


def test_every_walk_is_checked_once_and_listed() -> None:
    checks = [block for block in BLOCKS if block.name == "check"]
    assert len(checks) == len(TITLES) == 8
    page = (DOCS / "extending.md").read_text(encoding="utf-8")
    for title in TITLES:
        assert f"* [{title}](#{title.lower().replace(' ', '-')})" in page


def test_all_checks_hold(extended: Path) -> None:
    checks = [block.text for block in BLOCKS if block.name == "check"]
    environment = {**os.environ, "PYTHONPATH": str(extended)}
    ran = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=extended, env=environment, input=json.dumps(checks), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    where, *problems = json.loads(ran.stdout)
    assert Path(where).is_relative_to(extended)
    assert {title: said for title, said in zip(TITLES, problems, strict=True) if said} == {}


def test_what_is_written_is_in_the_projects_style(extended: Path) -> None:
    files = [block.name for block in BLOCKS if block.language in {"python", "diff"} and block.name.endswith(".py")]
    for command in (("check",), ("format", "--check")):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *files], cwd=extended, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout
