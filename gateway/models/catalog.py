"""From what a backend calls its model to the checkpoint we count with.

Decided here: how names match, that the operator's word wins, and that an unknown model is priced conservatively and
says so. Not decided here: the checkpoints' numbers (`checkpoints.toml`), what a backend really runs, and how often
this is asked (callers keep the answer per served model; a look-up costs some tens of microseconds).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.clips import FrameServing
from gateway.models.families import FAMILIES
from gateway.models.hub.describe import ModelFiles, described
from gateway.models.hub.layers import kv_shape
from gateway.models.kv import KvShape
from gateway.models.table import Series, Table, packaged_table

__all__ = ["Catalog", "CatalogMatch", "Checkpoint", "MatchHow", "ModelOverride", "shipped_catalog"]

# What may follow a text-only checkpoint's name without making it another model.
_PLAIN_TAIL: Final = re.compile(
    r"(?:instruct|hf|awq|gptq|gguf|fp8|nvfp4|mxfp4|bf16|int[48]|w\d+a\d+|[48]bit|bnb|quantized)*"
)


class MatchHow(StrEnum):
    """How sure the catalogue is, surest first."""

    OVERRIDE = "override"  # the operator named the checkpoint or the family
    FILES = "files"  # the model's own configuration files
    EXACT = "exact"  # the published name
    PATTERN = "pattern"  # a name that contains a known one; `note` says what is not known
    UNKNOWN = "unknown"  # counts are upper estimates


@dataclass(frozen=True, slots=True)
class ModelOverride:
    """What the operator says of a served model; `None` keeps the catalogue's value. `checkpoint` is one its names."""

    checkpoint: str | None = None
    family: str | None = None
    patch: int | None = None
    merge: int | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    max_ratio: float | None = None
    max_tiles: int | None = None
    kv: KvShape | None = None
    bytes_per_text_token: float | None = None
    context_tokens: int | None = None
    frames: FrameServing | None = None


@dataclass(frozen=True, slots=True)
class CatalogMatch:
    """A checkpoint to count with, how it was found, and for people what that means (empty when nothing to say)."""

    checkpoint: Checkpoint
    how: MatchHow
    note: str

    @property
    def known(self) -> bool:
        """Whether image counts are exact (of the shipped or overridden limits) rather than upper estimates."""
        return self.how is not MatchHow.UNKNOWN


@dataclass(frozen=True, slots=True)
class _Found:
    checkpoint: Checkpoint
    series: Series
    how: MatchHow
    sized: bool


class Catalog:
    """All known checkpoints, by name."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._unknown = table.series["unknown"].prototype
        self._exact = {_reduced(_last(c.name)): (c, series) for c, series in table.checkpoints}
        # Longest first, so that a longer name is never taken for a shorter one it begins with.
        self._keys = sorted(
            ((_reduced(_last(c.name).removesuffix("-Instruct")), c, series) for c, series in table.checkpoints),
            key=lambda entry: (-len(entry[0]), entry[0]),
        )
        self._patterns = sorted(
            ((pattern, series) for series in table.series.values() for pattern in series.patterns),
            key=lambda entry: (-len(entry[0]), entry[0]),
        )
        self.checkpoints: Final[tuple[Checkpoint, ...]] = tuple(c for c, _ in table.checkpoints)

    def find(self, served_name: str, *, root: str | None = None, override: ModelOverride | None = None) -> CatalogMatch:
        """The checkpoint behind a served name. `root` is what the backend says it loaded (a hub name or a path).

        An alias tells less than the root, so where both are known and disagree the root wins. Raises `ValueError`
        naming the field when an override names no checkpoint or family, or a number that cannot be.
        """
        if override is None:
            return self._by_names(served_name, root)
        if override.checkpoint is None:
            return _overridden(self._by_names(served_name, root), override)
        named = self._by_name(override.checkpoint)
        if named is None:
            raise ValueError(f"checkpoint: the catalogue has no {override.checkpoint!r}")
        return _overridden(CatalogMatch(named.checkpoint, MatchHow.OVERRIDE, ""), override)

    def find_described(self, name: str, files: ModelFiles, *, override: ModelOverride | None = None) -> CatalogMatch:
        """The checkpoint that a model's own files describe; an image family that is not ours is unknown, and says so.

        Raises `ConfigProblem` (a `ValueError`) naming file and field, `ValueError` as `find` does.
        """
        if override is not None and override.checkpoint is not None:
            return self.find(name, override=override)
        found = described(name, files, self._table)
        if found is None:
            kind = files.config.text("model_type")
            note = f"{name} is of type {kind}, which no family counts: image tokens are an upper estimate"
            checkpoint = replace(self._unknown, name=name, kv=kv_shape(files.config))
            match = CatalogMatch(checkpoint, MatchHow.UNKNOWN, note)
        else:
            match = CatalogMatch(found[0], MatchHow.FILES, found[1])
        return match if override is None else _overridden(match, override)

    def _by_names(self, served_name: str, root: str | None) -> CatalogMatch:
        by_root = None if root is None else self._by_name(root)
        by_name = self._by_name(served_name)
        if by_root is not None and by_name is not None and by_root.series is not by_name.series:
            return _match(by_root, f"served as {served_name}, but loaded from {root}")
        best = min((f for f in (by_root, by_name) if f is not None), key=_doubt, default=None)
        if best is not None:
            return _match(best)
        note = (
            f"{served_name} is not in the catalogue: image tokens are an upper estimate; name its checkpoint or family"
        )
        return CatalogMatch(replace(self._unknown, name=served_name), MatchHow.UNKNOWN, note)

    def _by_name(self, name: str) -> _Found | None:
        """The best that one name or path tells, from its last part backwards."""
        for part in _parts(name):
            found = self._by_part(part)
            if found is not None:
                return found
        return None

    def _by_part(self, part: str) -> _Found | None:
        reduced = _reduced(part)
        if reduced in self._exact:
            checkpoint, series = self._exact[reduced]
            return _Found(checkpoint, series, MatchHow.EXACT, sized=True)
        for key, checkpoint, series in self._keys:
            if _names(key, reduced, series):
                return _Found(checkpoint, series, MatchHow.PATTERN, sized=True)
        for pattern, series in self._patterns:
            if pattern in reduced and not any(word in reduced for word in series.excludes):
                return _Found(replace(series.prototype, name=part), series, MatchHow.PATTERN, sized=False)
        return None


def shipped_catalog() -> Catalog:
    """The catalogue of the packaged table."""
    return _SHIPPED


def _names(key: str, reduced: str, series: Series) -> bool:
    """Whether a reduced name holds a checkpoint's key, and "4b" is not the beginning of "4bit"."""
    if key not in reduced or any(word in reduced for word in series.excludes):
        return False
    tail = reduced.split(key, 1)[1]
    if tail.startswith("it"):
        return False
    return bool(series.patterns) or _PLAIN_TAIL.fullmatch(tail) is not None


def _doubt(found: _Found) -> int:
    return 0 if found.how is MatchHow.EXACT else 1 if found.sized else 2


def _match(found: _Found, note: str = "") -> CatalogMatch:
    if not found.sized:
        what = f"{found.series.name} by its name, the size is not known: KV bytes and cost are not either"
        note = f"{note}; {what}" if note else what
    elif found.how is MatchHow.PATTERN and not note:
        note = f"taken for {found.checkpoint.name} by its name"
    return CatalogMatch(found.checkpoint, found.how, note)


def _overridden(match: CatalogMatch, override: ModelOverride) -> CatalogMatch:
    base = match.checkpoint
    if override.family is not None and override.family not in {family.name for family in FAMILIES}:
        known = ", ".join(family.name for family in FAMILIES)
        raise ValueError(f"family: no family is called {override.family!r}; known are {known}")
    given = {
        "family": override.family,
        "patch": override.patch,
        "merge": override.merge,
        "min_pixels": override.min_pixels,
        "max_pixels": override.max_pixels,
        "max_ratio": override.max_ratio,
        "bytes_per_text_token": override.bytes_per_text_token,
        "context_tokens": override.context_tokens,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    for name, value in changes.items():
        if not isinstance(value, str) and not 0 < value < float("inf"):
            raise ValueError(f"{name}: must be a number above 0, not {value}")
    if override.kv is not None:
        changes["kv"] = override.kv  # type: ignore[assignment]  # the one shape among numbers
    checkpoint = replace(base, **changes)  # type: ignore[arg-type]  # keys and types are those of the fields above
    if override.max_tiles is not None:
        checkpoint = checkpoint.with_tiles(override.max_tiles)
    how = match.how if override.family is None else MatchHow.OVERRIDE
    return CatalogMatch(checkpoint, how, match.note if how is match.how else "")


def _reduced(name: str) -> str:
    """Lower-case letters and digits only: `Qwen2.5-VL` and `qwen25vl` are the same name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _last(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _parts(name: str) -> Iterator[str]:
    """The parts of a name or path, last first; a hub cache's folder (`models--owner--name`) gives its name."""
    for part in reversed(re.split(r"[/\\]", name)):
        if part:
            yield part.rsplit("--", 1)[-1] if part.startswith("models--") else part


_SHIPPED: Final = Catalog(packaged_table())
