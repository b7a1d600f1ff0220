"""What we know of each engine, one file per engine. Pure: documents in, facts out.

A new engine is one file and one line in ``ENGINES``; its order is the order of recognition.
"""

from __future__ import annotations

from gateway.types import EngineKind
from gateway.upstream.engines.contract import Documents, Engine
from gateway.upstream.engines.generic import Generic
from gateway.upstream.engines.sglang import Sglang
from gateway.upstream.engines.vllm import Vllm

# SGLang first: it is told by documents of its own; Generic last: it takes whatever is left.
ENGINES: tuple[Engine, ...] = (Sglang(), Vllm(), Generic())


def engine_of(kind: EngineKind) -> Engine:
    """The contract of one kind of engine."""
    return next(engine for engine in ENGINES if engine.kind is kind)


def recognise(documents: Documents) -> Engine:
    """The first engine that knows these documents as its own."""
    return next(engine for engine in ENGINES if engine.recognises(documents))


def asked_paths() -> tuple[str, ...]:
    """Every path whose document may tell an engine from another, each once."""
    return tuple(dict.fromkeys(path for engine in ENGINES for path in engine.identity_paths))


__all__ = ["ENGINES", "asked_paths", "engine_of", "recognise"]
