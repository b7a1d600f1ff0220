"""``docker/{front,haproxy,envoy}/start`` as commands: what they say of themselves, and what they refuse."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRONTS = ["front", "haproxy", "envoy"]


def run(front: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "docker" / front / "start", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("front", FRONTS)
def test_help_names_every_variable_and_starts_nothing(front: str) -> None:
    done = run(front, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    script = (ROOT / "docker" / front / "start").read_text()
    head = script[script.index("\n") + 1 : script.index("\nset ")]
    assert done.stdout == "".join(line.removeprefix("#").removeprefix(" ") + "\n" for line in head.split("\n"))
    assert "FRONT_LISTEN" in done.stdout


@pytest.mark.parametrize("front", FRONTS)
def test_an_argument_is_refused_not_ignored(front: str) -> None:
    done = run(front, "--listen", "443")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{front}: no arguments")
