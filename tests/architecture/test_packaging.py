"""What is installed: no package brings a Pillow of its own, and every dependency says why it is there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.tree import ROOT

PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
TABLES = tomllib.loads(PYPROJECT)
# pillow is for environments that pip alone makes; heif's pillow-heif requires it, and the comment beside it says more.
EXTRAS = sorted(TABLES["project"]["optional-dependencies"].keys() - {"heif", "pillow"})


def _requirements() -> list[Requirement]:
    lines = list(TABLES["project"]["dependencies"])
    for extra in EXTRAS:
        lines += TABLES["project"]["optional-dependencies"][extra]
    for group in TABLES["dependency-groups"].values():
        lines += [line for line in group if isinstance(line, str)]
    return [Requirement(line) for line in lines]


def _closure(wanted: Iterable[Requirement]) -> set[str]:
    """Names of all distributions that these requirements pull in here, by the metadata of what is installed."""
    seen: set[tuple[str, str]] = set()
    pending = [(requirement, extra) for requirement in wanted for extra in ("", *requirement.extras)]
    while pending:
        requirement, extra = pending.pop()
        key = (canonicalize_name(requirement.name), extra)
        if key in seen:
            continue
        seen.add(key)
        try:
            lines = requires(requirement.name) or []
        except PackageNotFoundError:
            continue
        for line in lines:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                pending += [(needed, inner) for inner in ("", *needed.extras)]
    return {name for name, _ in seen}


def test_no_dependency_puts_pillow_over_the_chosen_one() -> None:
    assert _closure(_requirements()) & {"pillow", "pillow-simd"} == set()


def test_every_dependency_says_why() -> None:
    wanted = [*TABLES["project"]["dependencies"], *TABLES["dependency-groups"]["bench"]]
    wanted += [line for extra in TABLES["project"]["optional-dependencies"].values() for line in extra]
    silent = [line for line in wanted if not re.search(rf'"{re.escape(line)}"[],]+ *# \S', PYPROJECT)]
    assert not silent, "\n".join(silent)


def test_every_debian_package_says_why() -> None:
    lines = (ROOT / ".ci" / "packages").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not re.fullmatch(r"(#.*|[a-z0-9.+-]+ +# \S.*)", line)] == []


def test_decisions_are_short_and_numbered() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [path.name[:5] for path in decisions] == [f"{number:04d}-" for number in range(1, len(decisions) + 1)]
    assert [path.name for path in decisions if path.read_bytes().count(b"\n") > 60] == []


def test_change_fragments_have_a_known_type() -> None:
    types = {entry["directory"] for entry in TABLES["tool"]["towncrier"]["type"]}
    fragments = [path for path in (ROOT / "docs" / "changes").glob("*.md") if path.name != "README.md"]
    assert [path.name for path in fragments if path.name.split(".")[-2] not in types] == []
