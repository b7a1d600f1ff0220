"""Configuration wins over what engines tell, fact by fact."""

from __future__ import annotations

from dataclasses import fields

from gateway.types import KvEventSource
from gateway.upstream.engines.contract import EngineFacts
from gateway.upstream.overrides import told
from gateway.upstream.settings import BackendSettings

LEARNT = EngineFacts(
    version="1", models=("m",), model_root="/m", context_tokens=1, kv_capacity_tokens=2, kv_block_tokens=3,
    max_pixels=4, max_images=5, vision=True, prefix_hash="sha256", encoder_cache_tokens=6, prefill_chunk_tokens=7,
    api_servers=8, ranks=9, kv_event_sources=(KvEventSource(0, "tcp://*:1", None, "kv"),),
)  # fmt: skip


def test_nothing_configured_changes_nothing_but_the_host() -> None:
    facts = told(BackendSettings("http://engine:8000"), LEARNT)
    assert facts.kv_event_sources == (KvEventSource(0, "tcp://engine:1", None, "kv"),)
    assert all(
        getattr(facts, each.name) == getattr(LEARNT, each.name)
        for each in fields(LEARNT)
        if each.name != "kv_event_sources"
    )


def test_everything_configured() -> None:
    settings = BackendSettings(
        "http://engine", models=("n",), context_tokens=11, kv_tokens=12, kv_block_tokens=13, max_pixels=14,
        max_images=15, vision=False, prefix_hash="sha256_cbor", encoder_cache_tokens=16, prefill_chunk_tokens=17,
        api_servers=18, kv_events="tcp://other:5", kv_events_replay="tcp://other:6",
    )  # fmt: skip
    assert told(settings, LEARNT) == EngineFacts(
        version="1", models=("n",), model_root="/m", context_tokens=11, kv_capacity_tokens=12, kv_block_tokens=13,
        max_pixels=14, max_images=15, vision=False, prefix_hash="sha256_cbor", encoder_cache_tokens=16,
        prefill_chunk_tokens=17, api_servers=18, ranks=9,
        kv_event_sources=(KvEventSource(0, "tcp://other:5", "tcp://other:6"),),
    )  # fmt: skip


def test_events_may_be_switched_off() -> None:
    assert told(BackendSettings("http://engine", kv_events="off"), LEARNT).kv_event_sources == ()
