"""The import contracts of pyproject.toml hold, and they still name every package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.architecture.tree import PACKAGE, ROOT, imported_names, module_name, source_files


def _contracts() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return {contract["id"]: contract for contract in tomllib.load(file)["tool"]["importlinter"]["contracts"]}


def _top_level() -> set[str]:
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    return modules | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_arrows_point_down() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_simulator_is_kept_from_every_module_but_types() -> None:
    forbidden = {name.removeprefix("gateway.") for name in _contracts()["simulator"]["forbidden_modules"]}
    assert forbidden == _top_level() - {"types", "simulator"}


def test_only_the_command_line_starts_a_simulator() -> None:
    importers = {
        module_name(path)
        for path in source_files()
        for _, name in imported_names(path)
        if name.startswith("gateway.simulator") and not module_name(path).startswith("gateway.simulator")
    }
    assert all(name == "gateway.cli" or name.startswith("gateway.cli.") for name in importers), importers
