"""The locks are what pyproject.toml asks for, complete, by hash, and without a Pillow that would cover pillow-simd."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from dataclasses import dataclass

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.docker.dockerfile import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
# What of pyproject.toml each lock holds; together all of it.
PARTS = {
    "gateway": ("tokenizers", "pdf", "jwt", "kv-events", "otel"),
    "media": ("heif", "video"),
    "pillow": ("pillow",),
}
# Debian 12's, which images have.
IMAGE = {"python_version": "3.11", "python_full_version": "3.11.2", "sys_platform": "linux"}


@dataclass(frozen=True, slots=True)
class Pin:
    version: Version
    hashes: int


def pins(name: str) -> dict[str, Pin]:
    """What a lock installs into the image's Python."""
    text = (ROOT / f"docker/lock/{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, Pin] = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if line.startswith("#"):
            continue
        requirement = Requirement(line.split("--hash")[0])
        (exact,) = requirement.specifier
        assert exact.operator == "==", line
        if requirement.marker is None or requirement.marker.evaluate(IMAGE):
            hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line)
            found[canonicalize_name(requirement.name)] = Pin(Version(exact.version), len(hashes))
    return found


def asked(name: str) -> list[Requirement]:
    direct = PROJECT["project"]["dependencies"] if name == "gateway" else []
    return [Requirement(line) for line in [*direct, *(line for extra in PARTS[name] for line in EXTRAS[extra])]]


def test_every_extra_has_its_lock() -> None:
    assert sorted(extra for extras in PARTS.values() for extra in extras) == sorted(EXTRAS)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_every_direct_dependency_is_locked_within_its_range(name: str) -> None:
    locked = pins(name)
    wrong = [
        f"{requirement}: {locked.get(canonicalize_name(requirement.name))}"
        for requirement in asked(name)
        if (pin := locked.get(canonicalize_name(requirement.name))) is None
        or not requirement.specifier.contains(pin.version, prereleases=True)
    ]
    assert wrong == [], "docker/lock/renew"


@pytest.mark.parametrize("name", [*sorted(PARTS), "build"])
def test_every_file_is_known_by_its_hash(name: str) -> None:
    locked = pins(name)
    assert locked
    assert [package for package, pin in locked.items() if not pin.hashes] == []


def test_pillow_stands_where_only_the_vips_backend_looks() -> None:
    assert pins("pillow").keys() == {"pillow"}
    for name in ("gateway", "media", "build"):
        assert not pins(name).keys() & {"pillow", "pillow-simd"}


def test_what_builds_is_locked() -> None:
    build = [Requirement(line) for line in PROJECT["build-system"]["requires"]]
    locked = pins("build")
    assert all(requirement.specifier.contains(locked[requirement.name].version) for requirement in build)
    assert {"setuptools", "pybind11", "cffi", "pkgconfig"} <= locked.keys()  # pillow-simd's, pyvips's


def test_no_host_of_packages_is_named() -> None:
    for path in (ROOT / "docker/lock").glob("*.txt"):
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", path.read_text(encoding="utf-8")), path


def test_pillow_simd_is_held_against_its_hash_and_its_choices_are_checked() -> None:
    script = (ROOT / ".ci/pillow").read_text(encoding="utf-8")
    assert re.search(r"^simd_sha256=[0-9a-f]{64}$", script, re.MULTILINE)
    environment = {**os.environ, "PILLOW_SIMD": "avx512"}
    ran = subprocess.run(
        ["bash", ROOT / ".ci/pillow", "pillow-simd"], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "unknown instruction set 'avx512' (sse4 or avx2)" in ran.stderr


@pytest.mark.parametrize("script", [".ci/pillow", ".ci/image", "docker/lock/renew", "docker/supply"])
def test_scripts_can_be_read_by_their_shell(script: str) -> None:
    ran = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_supply_script_says_how_it_is_used() -> None:
    source = (ROOT / "docker/supply").read_text(encoding="utf-8")
    assert "usage: docker/supply sbom|audit" in source
    assert "audit: not checked:" in source


def test_the_sdist_holds_all_that_is_tracked() -> None:
    include = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    ran = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {f"/{path.split('/')[0]}" for path in ran.stdout.splitlines()}
    assert tracked - include == {"/pyproject.toml", "/.gitignore"}  # hatchling takes these by itself
