"""The page of the architecture knows every room at the top of the package, and names none that is gone."""

from __future__ import annotations

import re

from tests.architecture.tree import PACKAGE, ROOT

PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ROOMS = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}


def test_every_room_is_on_the_page() -> None:
    words = set(re.findall(r"(?:`|\*\*)(\w+)(?:`|\*\*)", PAGE)) | set(re.findall(r"`(\w+)[./]", PAGE))
    assert ROOMS - words - {"__init__", "__main__"} == set()


def test_the_tables_of_rooms_name_every_room_and_none_that_is_gone() -> None:
    tables = [table.split("\n\n", 1)[0] for table in PAGE.split("| module | what is decided there |")[1:]]
    named = {
        name for table in tables for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    inner = {path.stem for room in ("stages", "assembly") for path in (PACKAGE / room).glob("*.py")} - {"__init__"}
    assert named - ROOMS - inner == set()
    assert inner - named == set()


def test_files_that_are_named_exist() -> None:
    named = re.findall(r"`((?:\w+/)+\w+)`", PAGE)
    missing = [
        name
        for name in named
        if not any((root / name).exists() or (root / f"{name}.py").is_file() for root in (PACKAGE, ROOT))
    ]
    assert missing == []
