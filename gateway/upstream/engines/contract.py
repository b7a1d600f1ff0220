"""What an engine's file offers: where to ask, how to read the answers, and which refusals mean *not taken*.

Documents are the bodies of answers with status 200, by the path they were asked from. Whatever is missing or has an
unexpected shape is ``None``: engines of other versions must not break discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from gateway.types import EngineKind, KvEventSource

Documents: TypeAlias = Mapping[str, bytes]

MODELS_PATH = "/v1/models"
# An error body worth reading in full before it is relayed; a refusal's text is a few hundred bytes.
ERROR_HEAD_BYTES = 16 * 1024

REFUSED = "refused"
DRAINING = "draining"
ABORTED = "aborted"
# What an engine says itself; the other reasons of NotTaken are what the connection says.
REFUSALS = frozenset({REFUSED, DRAINING, ABORTED})


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What rarely changes. ``models`` empty = not known, so it may serve any.

    ``kv_event_sources`` are as the engine announces them: a wildcard host means the engine's own.
    """

    version: str | None = None
    models: tuple[str, ...] = ()
    model_root: str | None = None
    context_tokens: int | None = None
    kv_capacity_tokens: int | None = None
    kv_block_tokens: int | None = None
    max_pixels: int | None = None
    max_images: int | None = None
    vision: bool | None = None
    prefix_hash: str | None = None
    encoder_cache_tokens: int | None = None
    prefill_chunk_tokens: int | None = None
    api_servers: int | None = None
    ranks: int | None = None
    kv_event_sources: tuple[KvEventSource, ...] | None = None


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What changes all the time, summed over the engine's data-parallel ranks; the use is the fullest rank's.

    ``waiting_tokens`` are prompt tokens that wait and are in no cache: what a new request's prefill stands behind.
    """

    running: int | None = None
    waiting: int | None = None
    kv_use_ratio: float | None = None
    waiting_tokens: int | None = None


class Engine(Protocol):
    """One engine's contract."""

    @property
    def kind(self) -> EngineKind: ...
    @property
    def identity_paths(self) -> tuple[str, ...]:
        """Cheap documents that tell this engine from others; asked of every engine nobody has named."""
        ...

    @property
    def facts_paths(self) -> tuple[str, ...]:
        """All that its facts are in, asked once per discovery round of an engine that is known."""
        ...

    @property
    def waking_path(self) -> str | None:
        """A costly probe that the cheap ones need now and then, since they only repeat its last verdict."""
        ...

    @property
    def reports_load(self) -> bool:
        """Whether its responses can carry a load report (the header ``endpoint-load-metrics``)."""
        ...

    def report(self, header: str, /) -> EngineLoad | None:
        """The load in that header's value; what it does not tell is ``None``."""
        ...

    @property
    def health_paths(self) -> tuple[str, ...]:
        """Cheap probes, best first; one that the engine does not have (404, 405) passes to the next."""
        ...

    @property
    def load_paths(self) -> tuple[str, ...]:
        """Load reports, best first."""
        ...

    def recognises(self, documents: Documents, /) -> bool: ...
    def facts(self, documents: Documents, /) -> EngineFacts: ...
    def load(self, path: str, document: bytes, /) -> EngineLoad: ...
    def refusal(self, status: int, head: bytes, /) -> str | None:
        """``refused`` or ``draining`` when this answer proves that the request was not taken, else ``None``.

        ``head`` holds the whole body, or its first ERROR_HEAD_BYTES.
        """
        ...

    @property
    def refuses_in_streams(self) -> bool:
        """Whether it says inside an event stream what others say by a status, so that the first event is looked at."""
        ...

    def stream_refusal(self, event: bytes, /) -> str | None:
        """The same as ``refusal``, of the data of a stream's first event."""
        ...
