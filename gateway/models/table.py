"""The packaged table of checkpoints, read and checked.

Decided here: the shape of `checkpoints.toml` and that a wrong key or value stops the import with the place named. Not
decided here: the numbers themselves, and which served model is which checkpoint (`catalog`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeVar

from gateway.models.checkpoint import Checkpoint
from gateway.models.cost import DecoderShape, EncoderShape
from gateway.models.families import FAMILIES
from gateway.models.grounding import CoordinateForm
from gateway.models.kv import CrossLayers, KvShape, LinearLayers, WindowLayers
from gateway.models.text import ChatTemplate
from gateway.models.tiling import TileShape

_Shape = TypeVar("_Shape")


class TableError(ValueError):
    """`checkpoints.toml` does not hold what it should; the message names the entry and the key."""


@dataclass(frozen=True, slots=True)
class Series:
    """What all sizes of a model share. `patterns` and `excludes` are looked for in a reduced served name."""

    name: str
    patterns: tuple[str, ...]
    excludes: tuple[str, ...]
    prototype: Checkpoint


@dataclass(frozen=True, slots=True)
class Table:
    """All series, and all checkpoints with the series each belongs to."""

    series: Mapping[str, Series]
    checkpoints: tuple[tuple[Checkpoint, Series], ...]


def read_table(text: str) -> Table:
    """Parse and check a table. Raises `TableError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"checkpoints.toml: {error}") from None
    sections = {"templates", "encoders", "series", "checkpoints"}
    _only(data, "checkpoints.toml", sections)
    for section in sorted(sections - set(data)):
        raise TableError(f"checkpoints.toml: {section} is missing")
    templates = {name: _built(ChatTemplate, raw, f"templates.{name}") for name, raw in data["templates"].items()}
    series = {name: _series(name, raw, templates) for name, raw in data["series"].items()}
    encoders = data["encoders"]
    checkpoints = tuple(_checkpoint(raw, series, encoders) for raw in data["checkpoints"])
    return Table(MappingProxyType(series), checkpoints)


def packaged_table() -> Table:
    """The table that is shipped with the package."""
    return read_table(files("gateway.models").joinpath("checkpoints.toml").read_text(encoding="utf-8"))


def _series(name: str, raw: dict[str, Any], templates: Mapping[str, ChatTemplate]) -> Series:
    place = f"series.{name}"
    numbers = {"patch", "merge", "min_pixels", "max_pixels", "max_ratio", "bytes_per_text_token"}
    optional = {"longest_side"} & set(raw)
    _only(
        raw,
        place,
        {
            "family",
            "patterns",
            "excludes",
            "template",
            "longest_side",
            "sglang_family",
            "coordinates",
            "tiles",
            *numbers,
        },
    )
    for key in ("family", "template", *sorted(numbers)):
        if key not in raw:
            raise TableError(f"{place}: {key} is missing")
    for key in ("family", "sglang_family"):
        if key in raw and raw[key] not in {family.name for family in FAMILIES}:
            raise TableError(f"{place}.{key}: no family is called {raw[key]!r}")
    if raw.get("coordinates", "") not in set(CoordinateForm):
        raise TableError(
            f"{place}.coordinates: {raw['coordinates']!r} is none of {', '.join(filter(None, CoordinateForm))}"
        )
    if raw["template"] not in templates:
        raise TableError(f"{place}.template: no template is called {raw['template']!r}")
    for key in numbers | optional:
        _check_number(raw[key], f"{place}.{key}")
    prototype = Checkpoint(
        name=name,
        family=raw["family"],
        patch=raw["patch"],
        merge=raw["merge"],
        min_pixels=raw["min_pixels"],
        max_pixels=raw["max_pixels"],
        max_ratio=raw["max_ratio"],
        kv=None,
        bytes_per_text_token=raw["bytes_per_text_token"],
        template=templates[raw["template"]],
        tiles=_tiles(raw["tiles"], f"{place}.tiles") if "tiles" in raw else None,
        sglang_family=raw.get("sglang_family", ""),
        coordinates=CoordinateForm(raw.get("coordinates", "")),
        **{key: raw[key] for key in optional},
    )
    return Series(name, tuple(raw.get("patterns", ())), tuple(raw.get("excludes", ())), prototype)


def _checkpoint(
    raw: dict[str, Any], series: Mapping[str, Series], encoders: Mapping[str, dict[str, Any]]
) -> tuple[Checkpoint, Series]:
    place = f"checkpoints.{raw.get('name', '?')}"
    _only(raw, place, {"name", "series", "kv", "linear", "windows", "cross", "encoder", "decoder"})
    try:
        of = series[raw["series"]]
        decoder = dict(raw["decoder"])
        active, hidden = decoder.pop("active_billion"), decoder.pop("hidden")
        kv = dict(raw["kv"])
        tower = dict(encoders[raw["encoder"]]) if "encoder" in raw else None
        name = raw["name"]
    except KeyError as error:
        raise TableError(f"{place}: {error.args[0]} is missing or not defined") from None
    _check_number(active, f"{place}.decoder.active_billion")
    if "linear" in raw:
        kv["linear"] = _built(LinearLayers, raw["linear"], f"{place}.linear")
    if "windows" in raw:
        windows = enumerate(raw["windows"])
        kv["window_layers"] = tuple(_built(WindowLayers, window, f"{place}.windows.{at}") for at, window in windows)
    if "cross" in raw:
        kv["cross"] = _built(CrossLayers, raw["cross"], f"{place}.cross")
    decoder["active_parameters"] = round(active * 1e9)
    base = of.prototype
    encoder = None
    if tower is not None:
        tower |= {"out_hidden": hidden, "merge": base.merge}
        encoder = _built(EncoderShape, tower, f"{place}.encoder")
    checkpoint = replace(
        base,
        name=name,
        kv=_built(KvShape, kv, f"{place}.kv"),
        encoder=encoder,
        decoder=_built(DecoderShape, decoder, f"{place}.decoder"),
    )
    return checkpoint, of


def _tiles(raw: Mapping[str, Any], place: str) -> TileShape:
    """A tiling; its pins are pairs of whole numbers above 0."""
    pins = raw.get("pins", [])
    for at, pin in enumerate(pins):
        if not isinstance(pin, list) or [isinstance(tiles, int) and tiles > 0 for tiles in pin] != [True, True]:
            raise TableError(f"{place}.pins.{at}: not rows and columns: {pin!r}")
    numbers = {key: value for key, value in raw.items() if key not in ("pins", "engine")}
    return replace(_built(TileShape, numbers, place), pins=tuple((rows, columns) for rows, columns in pins))


def _built(shape: type[_Shape], raw: Mapping[str, Any], place: str) -> _Shape:
    """A dataclass of numbers from a table of the same keys."""
    known = {item.name: item for item in fields(shape)}  # type: ignore[arg-type]  # every shape here is a dataclass
    _only(raw, place, set(known))
    for name, item in known.items():
        if name not in raw and item.default is MISSING:
            raise TableError(f"{place}: {name} is missing")
    for name, value in raw.items():
        if not isinstance(value, (CrossLayers, LinearLayers, tuple)):
            _check_number(value, f"{place}.{name}")
    return shape(**raw)


def _only(raw: Mapping[str, Any], place: str, known: set[str]) -> None:
    for key in raw:
        if key not in known:
            raise TableError(f"{place}: unknown key {key}; known are {', '.join(sorted(known))}")


def _check_number(value: Any, place: str) -> None:
    if not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise TableError(f"{place}: not a number of at least 0: {value!r}")
