"""docker/README.md is true: each of its commands is run where it can be, and held against what it names where not."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import __version__
from gateway.config.settings import Settings
from gateway.config.sources import environment_name, leaf_paths
from tests.cli.command import run
from tests.docker.compose import services
from tests.docker.dockerfile import ROOT, shipped
from tests.docker.test_lock import EXTRAS
from tests.docker.unit import UNIT, sections

README = (ROOT / "docker/README.md").read_text(encoding="utf-8")
BLOCKS = {match[1]: match[2] for match in re.finditer(r"^```bash (\S+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)}
ARGUMENTS, (BUILD, RUNTIME) = shipped()
IMAGE = f"vlm-gateway:{__version__}"


def commands(block: str) -> list[list[str]]:
    """The commands of a block as words, comments and continued lines put away."""
    return [
        words for line in BLOCKS[block].replace("\\\n", " ").splitlines() if (words := shlex.split(line, comments=True))
    ]


def values(words: list[str], flag: str) -> Iterator[str]:
    return (words[index + 1] for index, word in enumerate(words) if word == flag)


def test_every_block_is_looked_at_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in BLOCKS if f'"{name}"' not in source] == []
    assert README.count("```bash") == len(BLOCKS)


@pytest.mark.parametrize("block", ["build", "avx2"])
def test_images_are_built_from_what_there_is(block: str) -> None:
    (words,) = commands(block)
    assert words[:2] == ["docker", "build"]
    assert (ROOT / next(values(words, "--file"))).is_file()
    assert next(values(words, "--tag")).startswith(IMAGE)
    known = {step.text.split("=")[0] for step in [*BUILD.all("ARG"), *RUNTIME.all("ARG")]} | ARGUMENTS.keys()
    assert {given.split("=")[0] for given in values(words, "--build-arg")} <= known
    assert words[-1] == "."


def test_the_table_of_build_arguments_is_the_dockerfiles() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|", README, re.MULTILINE)
    known = {step.text.split("=")[0] for step in [*BUILD.all("ARG"), *RUNTIME.all("ARG")]} | ARGUMENTS.keys()
    assert set(rows) == known


@pytest.mark.parametrize("block", ["run", "run-config"])
def test_containers_are_locked_up_and_may_drain(block: str) -> None:
    (words,) = commands(block)
    server = Settings().server
    assert {"--read-only", "ALL", "no-new-privileges", IMAGE} <= set(words)
    assert int(next(values(words, "--stop-timeout"))) > server.settle_s + server.drain_timeout_s + 10
    assert [entry.split(":")[-1] for entry in values(words, "--publish")] == [str(server.port), str(server.admin_port)]
    known = {environment_name(path) for path in leaf_paths()}
    assert {given.split("=")[0] for given in values(words, "--env")} <= known


def test_other_commands_are_the_programs() -> None:
    for words in commands("commands"):
        given = [
            word.replace("/etc/vlm-gateway/gateway.yaml", str(ROOT / "docker/config/image.yaml")) for word in words
        ]
        ran = run(*given[given.index(IMAGE) + 1 :])
        assert ran.code == 0, (words, ran.out, ran.err)


def test_the_digest_that_is_looked_up_is_the_bases() -> None:
    (words,) = commands("digest")
    assert words[-1] == ARGUMENTS["BASE"].split("@")[0]


def test_compose_is_started_with_profiles_that_exist() -> None:
    known = {profile for service in services().values() for profile in service.get("profiles", ())}
    told = [words[words.index("docker") :] for words in commands("compose")]
    assert all((ROOT / next(values(words, "--file"))).is_file() for words in told)
    assert {profile for words in told for profile in values(words, "--profile")} == known
    assigned = dict(words[0].split("=", 1) for words in commands("compose") if "=" in words[0])
    assert assigned == {"VLMGW_BACKENDS": "http://vllm:8000"}


def test_the_service_is_installed_where_the_unit_looks() -> None:
    lines = commands("systemd")
    installed = [words[-2:] for words in lines if words[0] == "install"]
    assert all((ROOT / source).exists() or source == "/dev/null" for source, _ in installed)
    service = sections()["Service"]
    targets = {target for _, target in installed}
    assert service["ExecStart"][0].split()[-1] in targets
    assert service["EnvironmentFile"][0].removeprefix("-") in targets
    assert f"/etc/systemd/system/{UNIT.name}" in targets
    (install,) = [words for words in lines if words[0].endswith("/pip")]
    assert install[0] == f"{Path(service['ExecStart'][0].split()[0]).parent}/pip"
    assert set(re.findall(r"\w+", install[-1])) <= EXTRAS.keys()


@pytest.mark.parametrize("block", ["lock", "supply"])
def test_scripts_are_there(block: str) -> None:
    for words in commands(block):
        if words[0] == "make":
            planned = subprocess.run(
                ["make", "--dry-run", "--no-print-directory", words[1]],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            words = planned.stdout.splitlines()[-1].split()  # noqa: PLW2901  # what make would run
        assert (ROOT / words[0]).stat().st_mode & 0o111
