"""The program's source tree as the architecture tests see it: files, module names, syntax trees, imported names."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gateway"


def source_files() -> list[Path]:
    """Every Python file of the program."""
    return sorted(PACKAGE.rglob("*.py"))


def shown(path: Path) -> str:
    """Return a path as people name it: from the project's root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """Return the dotted name under which a source file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def syntax(path: Path) -> ast.Module:
    """Parse a source file once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of all that a file imports anywhere, under TYPE_CHECKING and in functions too.

    `import a.b` gives `a.b`, `from a import b` gives `a.b`, and an attribute of an imported library (`a.c` after
    `import a`) gives `a.c`: otherwise one import of the top package would open every room behind it.
    """
    aliases: dict[str, str] = {}
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                aliases[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield node.lineno, f"{aliases[node.value.id]}.{node.attr}"


def project_files() -> list[Path]:
    """Every file git tracks or would track, those deleted in the working tree left out."""
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted({path for name in listing.split("\0") if name and (path := ROOT / name).is_file()})
