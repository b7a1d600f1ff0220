"""What holds for every engine in the registry, whatever it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.types import EngineKind
from gateway.upstream.engines import ENGINES, asked_paths, engine_of, recognise
from gateway.upstream.engines.contract import Engine

JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def test_every_kind_has_one_engine_and_the_last_takes_anything() -> None:
    assert sorted(engine.kind for engine in ENGINES) == sorted(EngineKind)
    assert all(engine_of(kind).kind is kind for kind in EngineKind)
    assert recognise({}).kind is EngineKind.GENERIC
    assert len(set(asked_paths())) == len(asked_paths())


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.kind)
@given(document=st.binary(max_size=200) | JSON_LIKE.map(lambda value: repr(value).replace("'", '"').encode()))
def test_no_document_breaks_an_engine(engine: Engine, document: bytes) -> None:
    documents = dict.fromkeys(engine.facts_paths, document)
    recognise(documents)
    engine.facts(documents)
    for path in engine.load_paths:
        engine.load(path, document)
    assert engine.refusal(200, document) is None
    assert engine.refusal(400, document) is None


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.kind)
@pytest.mark.parametrize(
    "text",
    [
        b"Image size (180000000 pixels) exceeds limit of 178956970 pixels, could be decompression bomb DOS attack.",
        b"Only base64 data URLs are supported for now.",
        b'{"error":{"message":"Internal server error","type":"InternalServerError","code":500}}',
    ],
)
def test_a_5xx_that_is_the_clients_fault_is_no_refusal(engine: Engine, text: bytes) -> None:
    assert all(engine.refusal(status, text) is None for status in (500, 501, 503))
