"""Files: each has its test, none grows past the ceiling, none has a name that says nothing, registries are complete."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.tree import (
    PACKAGE,
    ROOT,
    imported_names,
    module_name,
    project_files,
    shown,
    source_files,
    syntax,
)

LINE_CEILING = 400

# File -> the ADR that argues for its length.
LONG_BY_DECISION: dict[str, str] = {}

# Source file -> why it has no test file of its own.
TESTED_ELSEWHERE = {
    "gateway/__main__.py": "two lines; tests/cli/test_main.py starts the program through it",
    "gateway/media/remote.py": "one Protocol; mypy checks the fit where the service is made",
    "gateway/ports.py": "Protocols only; mypy checks the fit where app.py wires them",
    "gateway/legwork.py": "a Protocol and its values; mypy checks the fit where app.py wires it",
    "gateway/stages/trip.py": "two dataclasses without a method; tests/journey drives whoever reads them",
}

EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "base"}
EMPTY_IN_IDENTIFIERS = re.compile(r"(Utils?|Helpers?|Common|Manager|Misc)$|^(Base|Abstract)[A-Z]")

# Folder whose __init__ holds an explicit registry -> files in it that are no members, with the reason.
REGISTRIES: dict[str, dict[str, str]] = {
    "dialects": {
        "answers": "walks through answers of any API",
        "fields": "single members of a request, read alike everywhere",
        "inputs": "prompts that are no conversation, which several dialects share",
        "natives": "media as SGLang's own routes take them",
        "parts": "content parts, which OpenAI's two chat APIs share",
        "sse": "reads event streams",
        "text": "how much text a template will see",
        "usage": "the usage object, which several dialects share",
    },
    "models/families": {
        "anyres": "what two families of LLaVA share",
        "covering": "planning for the families that cover an image with cells",
        "grid": "planning for the families that resize to a grid",
        "tiled": "planning for the families that cut images into tiles",
    },
    "policy/rules": {},
    "routing/filters": {},
    "routing/scorers": {},
    "upstream/engines": {
        "kv_events": "where engines publish KV events",
        "reading": "reads the documents that engines answer with",
        "vllm_documents": "what vLLM's documents say of its start",
    },
}


def _has_test(path: Path) -> bool:
    folder = ROOT / "tests" / path.relative_to(PACKAGE).parent
    names = (f"test_{path.stem}.py", f"test_{path.stem}_*.py", f"{path.stem}/test_*.py")
    return any(next(folder.glob(name), None) is not None for name in names)


def test_every_source_file_has_its_test_file() -> None:
    untested = [
        shown(path)
        for path in source_files()
        if path.name != "__init__.py" and shown(path) not in TESTED_ELSEWHERE and not _has_test(path)
    ]
    assert not untested, "\n".join(untested)


def test_exceptions_are_still_needed() -> None:
    stale = [name for name in TESTED_ELSEWHERE if not (ROOT / name).is_file() or _has_test(ROOT / name)]
    assert not stale, "\n".join(stale)


def test_no_file_outgrows_the_ceiling() -> None:
    lengths = {
        shown(path): path.read_bytes().count(b"\n")
        for path in project_files()
        if path.suffix == ".py" and shown(path) not in LONG_BY_DECISION
    }
    assert {name: length for name, length in lengths.items() if length > LINE_CEILING} == {}


def test_a_long_file_is_argued_for_where_the_table_says() -> None:
    for name, decision in LONG_BY_DECISION.items():
        assert f"`{name}`" in (ROOT / decision).read_text(encoding="utf-8")


def test_every_folder_with_code_is_a_package() -> None:
    """Import contracts see packages only."""
    folders = {path.parent for path in source_files()}
    assert [shown(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_names_say_something() -> None:
    files = [
        shown(path)
        for path in project_files()
        if path.suffix == ".py" and EMPTY_NAMES & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
    ]
    classes = [
        f"{shown(path)}:{node.lineno} {node.name}"
        for path in source_files()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.ClassDef) and EMPTY_IN_IDENTIFIERS.search(node.name)
    ]
    assert not files + classes, "\n".join(files + classes)


@pytest.mark.parametrize("folder", REGISTRIES)
def test_a_registry_names_every_file_of_its_folder(folder: str) -> None:
    init = PACKAGE / folder / "__init__.py"
    package = module_name(init)
    members = {path.stem for path in init.parent.glob("*.py")} - {"__init__"} - REGISTRIES[folder].keys()
    registered = {
        member
        for _, name in imported_names(init)
        for member in members
        if name == f"{package}.{member}" or name.startswith(f"{package}.{member}.")
    }
    assert registered == members
