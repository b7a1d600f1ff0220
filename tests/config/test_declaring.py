"""A declaration carries what is said of a setting; mutable defaults are made anew."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gateway.config.declaring import setting


@dataclass(frozen=True, slots=True)
class _Part:
    size: int = setting(3, "Size.", minimum=1, unit="bytes")
    table: dict[str, int] = setting({}, "Table.")


def test_a_declaration_carries_help_bounds_and_unit() -> None:
    size, _ = fields(_Part)
    assert {key: size.metadata[key] for key in ("help", "minimum", "maximum", "unit", "secret")} == {
        "help": "Size.", "minimum": 1, "maximum": None, "unit": "bytes", "secret": False,
    }  # fmt: skip


def test_mutable_defaults_are_made_anew() -> None:
    assert _Part().table is not _Part().table
