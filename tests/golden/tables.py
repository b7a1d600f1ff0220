"""Tables of the oracle's kinds in a directory, recognised by their header row whatever the files are called."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SHIPPED = Path(__file__).parent / "oracle"

Row = Mapping[str, str]


class Kind(StrEnum):
    """What a table tells; the columns that its header must have."""

    IMAGES = "family checkpoint params_json width height n_images tokens"
    KV = "model config_json bytes_per_token bytes_per_token_global vllm_block_tokens"
    POSITIONS = "family grid_thw_patches image_tokens position_advance_of_images"
    VIDEOS = "family checkpoint params duration_s fps total_frames sampled_frames grid_t tokens"
    CLOSED = "family model params width height n_images tokens"


@dataclass(frozen=True)
class Group:
    """Rows of one table that belong together: one family and checkpoint with one set of parameters."""

    kind: Kind
    file: str
    name: str
    rows: tuple[Row, ...]

    @property
    def first(self) -> Row:
        return self.rows[0]


def groups_in(directory: Path) -> list[Group]:
    """All groups of all tables of a directory; none where no file is such a table."""
    found: list[Group] = []
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    for path in files:
        if path.suffix.lower() == ".csv" and path.is_file():
            found += _groups_of(path)
    return found


def _groups_of(path: Path) -> list[Group]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8: {error}") from None
    reader = csv.DictReader(lines)
    reader.fieldnames = [column.strip() for column in reader.fieldnames or ()]
    kind = _kind(reader.fieldnames)
    if kind is None:
        return []
    rows = list(reader)
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise ValueError(f"{path}: row {number} has not as many cells as the header")
    return _grouped(kind, path.name, rows)


def _kind(columns: Iterable[str]) -> Kind | None:
    present = set(columns)
    return next((kind for kind in Kind if present.issuperset(kind.value.split())), None)


def _grouped(kind: Kind, file: str, rows: list[dict[str, str]]) -> list[Group]:
    keys = {
        Kind.IMAGES: ("family", "checkpoint", "params_json", "source"),
        Kind.KV: ("model",),
        Kind.POSITIONS: ("family",),
        Kind.VIDEOS: ("family", "checkpoint", "params"),
        Kind.CLOSED: ("family", "model", "params"),
    }[kind]
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(" ".join(row.get(key, "") for key in keys), []).append(row)
    return [Group(kind, file, name, tuple(members)) for name, members in by_name.items()]


def numbers(row: Row, *columns: str) -> tuple[int | None, ...]:
    """Cells as whole numbers; ``None`` where a cell is empty or the table does not have the column."""
    return tuple(int(text) if (text := (row.get(column) or "").strip()) else None for column in columns)


def parameters(row: Row) -> dict[str, object]:
    """The processor's parameters of an image row."""
    found = json.loads(row["params_json"])
    assert isinstance(found, dict), row["params_json"]
    return found
