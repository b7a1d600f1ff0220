"""Words that must not be in the project: work put off, switched-off tests, the paths of somebody's machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT, project_files, shown

# Cases hold hostile bytes on purpose; this file has to spell what it looks for.
EXEMPT = (ROOT / "tests" / "cases", Path(__file__))

PUT_OFF = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")
SWITCHED_OFF = re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b|unittest\.skip")
MACHINE_PATH = re.compile(r"(?<![\w.}])/(root|work|home/\w+|opt/(pypi|wheels)[\w-]*|tmp/team)(/|\b(?!-))")


def _lines(suffixes: set[str] | None = None) -> Iterator[tuple[str, str]]:
    for path in project_files():
        if any(path == exempt or exempt in path.parents for exempt in EXEMPT):
            continue
        if suffixes is not None and path.suffix not in suffixes:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            yield f"{shown(path)}:{number}", line


def test_no_work_is_put_off() -> None:
    found = [place for place, line in _lines({".py", ".toml", ".yaml", ".lua", ".js"}) if PUT_OFF.search(line)]
    assert not found, "\n".join(found)


def test_no_test_is_switched_off() -> None:
    found = [place for place, line in _lines({".py"}) if SWITCHED_OFF.search(line)]
    assert not found, "\n".join(found)


def test_no_path_of_one_machine_is_written_down() -> None:
    found = [f"{place} {line.strip()}" for place, line in _lines() if MACHINE_PATH.search(line)]
    assert not found, "\n".join(found)
