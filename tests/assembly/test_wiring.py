"""Every setting reaches the part it is for, and nothing is translated into something else."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.api.auth import hash_key
from gateway.assembly.wiring import (
    cache_salt,
    codec_backend,
    deployment_key,
    fetch_settings,
    kv_events_settings,
    kv_fill,
    load_world,
    media_settings,
    upstream_settings,
)
from gateway.config.policies import PolicyProblems
from gateway.config.settings import ModelConfig, Settings
from gateway.config.sources import leaf_paths, load_settings
from gateway.errors import Unauthenticated
from gateway.policy.keys import Caller
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.prompts.service import Prompts
from gateway.types import EngineKind, TenantId
from gateway.upstream.kv_events.settings import KvEventsSettings
from tests.journey.fakes import head
from tests.prompts.examples import write_files

KEY = bytes(range(32))


def given(**flags: object) -> Settings:
    return load_settings(environment={}, flags={path.replace("__", "."): value for path, value in flags.items()})


def test_a_shared_secret_gives_a_shared_key_and_none_gives_one_of_its_own() -> None:
    shared = given(identity__secret="of-this-test-0123456789")
    assert deployment_key(shared) == deployment_key(shared)
    assert deployment_key(shared) != deployment_key(given(identity__secret="another-0123456789"))
    assert b"s3cret" not in deployment_key(shared)
    assert deployment_key(Settings()) != deployment_key(Settings())
    assert len(deployment_key(Settings())) == len(deployment_key(shared)) == 32


def test_a_salt_separates_tenants_and_users_and_names_nobody() -> None:
    owners: list[tuple[str, str | None]] = [("acme", None), ("acme", "u1"), ("acme1", "u"), ("acme", "1u"), ("b", "u1")]
    salts = {cache_salt(KEY, TenantId(tenant), user) for tenant, user in owners}
    assert len(salts) == len(owners)
    assert all(len(salt) == 64 for salt in salts)
    assert cache_salt(KEY, TenantId("a:b"), "c") != cache_salt(KEY, TenantId("a"), "b:c")
    assert cache_salt(KEY, TenantId("acme"), "\ud800")
    assert cache_salt(bytes(32), TenantId("acme"), None) not in salts


def test_the_world_is_what_settings_say(tmp_path: Path) -> None:
    (tmp_path / "acme.yaml").write_text(f"tenant: acme\nkeys: ['{hash_key('k1')}']\n")
    settings = given(
        policies=str(tmp_path), server__max_body_bytes=2048, media__job_deadline_s=3, fetch__enabled=False,
        fetch__total_timeout_s=4, server__keepalive_comment_s=7,
    )  # fmt: skip
    world = load_world(settings, KEY)
    assert (world.max_body_bytes, world.media_deadline_s, world.may_fetch, world.keepalive_comment_s) == (
        2048,
        7.0,  # one job and one fetch
        False,
        7.0,
    )
    assert world.has_tenants
    assert world.admit(head(("Authorization", "Bearer k1"))) == Caller(TenantId("acme"))
    with pytest.raises(Unauthenticated):
        world.admit(head())
    assert world.cache_salt(TenantId("acme"), None) == cache_salt(KEY, TenantId("acme"), None)


def test_without_policies_everybody_is_the_default_tenant() -> None:
    world = load_world(Settings(), KEY)
    assert not world.has_tenants
    assert world.admit(head(("Authorization", "Bearer anything"))) == Caller(DEFAULT_TENANT)


def test_policies_that_cannot_be_used_are_told_and_so_are_overrides(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("tenant: a\nmax_imges: 1\n")
    with pytest.raises(PolicyProblems):
        load_world(given(policies=str(tmp_path)), KEY)
    settings = dataclasses.replace(Settings(), models={"m": read_model(checkpoint="nothing-like-it")})
    with pytest.raises(ValueError, match="nothing-like-it"):
        load_world(settings, KEY)


def read_model(**known: Any) -> Any:
    return load_settings(environment={}, flags={"models": {"m": known}}).models["m"]


def test_an_override_reaches_the_book() -> None:
    model = read_model(checkpoint="Qwen/Qwen3-VL-8B-Instruct", max_pixels=500_000, min_pixels=70_000, context_tokens=99)
    served = load_world(dataclasses.replace(Settings(), models={"m": model}), KEY).book.serve("m", [])
    assert (served.checkpoint.max_pixels, served.checkpoint.min_pixels, served.context_tokens) == (500_000, 70_000, 99)


def test_a_models_own_files_say_what_it_is(tmp_path: Path) -> None:
    language = {"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 64, "max_position_embeddings": 99}
    config = {"model_type": "qwen3_vl", "text_config": language}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "preprocessor_config.json").write_text('{"max_pixels": 262144}')
    world = load_world(given(models={"m": {"path": str(tmp_path)}}), KEY)
    served = world.book.serve("m", [])
    assert (served.family.name, served.checkpoint.max_pixels, served.match.how) == ("qwen3_vl", 262_144, "files")
    told = load_world(given(models={"m": {"path": str(tmp_path), "max_pixels": 524_288}}), KEY)
    assert told.book.serve("m", []).checkpoint.max_pixels == 524_288
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_vl"}')
    with pytest.raises(ValueError, match=r"models\.m\.path: config\.json: num_hidden_layers: is missing"):
        load_world(given(models={"m": {"path": str(tmp_path)}}), KEY)
    with pytest.raises(ValueError, match=r"models\.Qwen3-VL-8B\.max_tiles: 4 is no number of tiles"):
        load_world(given(models={"Qwen3-VL-8B": {"max_tiles": 4}}), KEY)


def test_a_tokenizer_is_loaded_once_and_faults_name_its_setting(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "files")
    settings = given(models={"m": {"tokenizer": str(folder)}})
    world = load_world(settings, KEY)
    again = load_world(settings, KEY, world)
    assert isinstance(world.prompts, Prompts)
    assert isinstance(again.prompts, Prompts)
    assert world.prompts.covers("m", "openai_chat")
    assert [each.files for each in again.prompts.loaded] == [each.files for each in world.prompts.loaded]
    with pytest.raises(ValueError, match=r"models\.m\.tokenizer: .*there is no such file"):
        load_world(given(models={"m": {"tokenizer": str(tmp_path)}}), KEY)


def test_media_settings() -> None:
    made = media_settings(
        given(media__workers=3, media__spare_workers=2, media__slab_bytes=1 << 27, media__job_deadline_s=4,
              media__worker_memory_bytes=1 << 28,
              media__max_queue_jobs=5, media__worker_nice=3, media__prepared_cache_bytes=6,
              media__max_prepared_bytes=1 << 21, media__facts_cache_entries=7), KEY,
    )  # fmt: skip
    pool = made.pool
    assert (pool.workers, pool.job_deadline_s, pool.worker_memory_bytes, pool.max_queue_jobs) == (3, 4.0, 1 << 28, 5)
    assert (made.slab_bytes, made.prepared_cache_bytes, made.facts_cache_entries) == (1 << 27, 6, 7)
    assert (made.max_prepared_bytes, pool.worker_nice, pool.spare_workers) == (1 << 21, 3, 2)
    assert len(made.content_key) == 32
    assert made.content_key != KEY, "workers are told it, and must not be able to make cache salts"
    assert made.content_key == media_settings(Settings(), KEY).content_key
    assert (pool.sandbox, pool.sandbox_user) == ("auto", "nobody")
    assert media_settings(Settings(), KEY).pool.workers >= 1


def test_the_codec_backend_is_the_configured_one() -> None:
    assert codec_backend(given(media__codec_backend="vips")) == "vips"
    assert codec_backend(Settings()) in {"pillow-simd", "vips"}


def test_fetch_settings_split_answers_and_addresses() -> None:
    settings = dataclasses.replace(
        Settings(),
        fetch=load_settings(
            environment={},
            flags={
                "fetch.static_hosts": {"a": "10.0.0.1, 10.0.0.2;10.0.0.3"},
                "fetch.total_timeout_s": 3,
                "fetch.max_redirects": 1,
                "fetch.public_networks": ["10.0.0.0/8"],
            },
        ).fetch,
    )
    made = fetch_settings(settings)
    assert made.static_hosts == {"a": (("10.0.0.1", "10.0.0.2"), ("10.0.0.3",))}
    assert (made.total_timeout_s, made.max_redirects, made.public_networks) == (3.0, 1, ("10.0.0.0/8",))


def test_upstream_settings() -> None:
    backend = {"url": "http://a:1/v1", "name": "n", "engine": "sglang", "api_key": "k", "max_pixels": 1, "vision": True,
               "context_tokens": 2, "kv_tokens": 3}  # fmt: skip
    made = upstream_settings(
        given(backends=[backend, "http://b:2"], upstream__connect_timeout_s=1, upstream__response_timeout_s=2,
              upstream__idle_timeout_s=3, upstream__probe_interval_s=4, upstream__probe_timeout_s=5,
              upstream__discovery_timeout_s=6, upstream__retry_ratio=0.5)
    )  # fmt: skip
    first, second = made.backends
    assert (first.root, first.backend_name, first.engine, first.api_key) == ("http://a:1", "n", EngineKind.SGLANG, "k")
    assert (first.max_pixels, first.context_tokens, first.kv_tokens, first.vision) == (1, 2, 3, True)
    assert (second.backend_name, second.engine) == ("b:2", "auto")
    assert (made.connect_timeout_s, made.response_timeout_s, made.idle_timeout_s) == (1.0, 2.0, 3.0)
    assert (made.probe_interval_s, made.probe_timeout_s, made.discovery_timeout_s) == (4.0, 5.0, 6.0)
    assert made.retry_ratio == 0.5


def test_every_setting_is_read_somewhere() -> None:
    """A setting that nothing reads is a promise nobody keeps."""
    root = Path(__file__).parents[2] / "gateway"
    readers = "".join(path.read_text() for path in root.rglob("*.py") if path.name not in {"settings.py", "sources.py"})
    assert [path for path in leaf_paths() if f".{path.rsplit('.', 1)[-1]}" not in readers] == []


def _with(models: dict[str, dict[str, object]]) -> Settings:
    return dataclasses.replace(Settings(), models={name: ModelConfig(**given) for name, given in models.items()})  # type: ignore[arg-type]


def test_aliases_reach_the_policies() -> None:
    settings = _with({"fast": {"alias_of": "big", "task": "ocr", "parameters": {"max_tokens": 5, "a": {"b": [1]}}}})
    found = load_world(settings, KEY).policies.aliases["fast"]
    assert (found.model, found.task) == ("big", "ocr")
    assert found.parameters == ((("max_tokens",), "5"), (("a", "b"), "[1]"))


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        ({"a": {"alias_of": "a"}}, "models.a.alias_of"),
        ({"a": {"alias_of": "b"}, "b": {"alias_of": "c"}}, "models.a.alias_of: b is an alias itself"),
        ({"a": {"alias_of": "b", "max_pixels": 5}}, "the rest is said of b"),
        ({"a": {"task": "ocr"}}, "give it alias_of"),
        ({"a": {"alias_of": "b", "parameters": {"model": "c"}}}, "parameters.model"),
        ({"a": {"alias_of": "b", "parameters": {"max_tokens": "5"}}}, "parameters.max_tokens"),
    ],
)
def test_an_alias_that_leads_nowhere_is_refused_by_name(models: dict[str, dict[str, object]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        load_world(_with(models), KEY)


def test_kv_events_are_followed_where_somebody_can_use_them(tmp_path: Path) -> None:
    models = {"m": {"tokenizer": str(write_files(tmp_path))}}
    assert kv_events_settings(given()) is None
    followed = given(models=models, upstream__kv_events_listen="tcp://127.0.0.1:5557", upstream__kv_events_blocks=7)
    assert kv_events_settings(followed) == KvEventsSettings("tcp://127.0.0.1:5557", 7)
    assert upstream_settings(followed).kv_events == kv_events_settings(followed)
    assert kv_events_settings(given(models=models)) == KvEventsSettings()
    assert kv_events_settings(given(models=models, upstream__kv_events="off")) is None


def test_one_of_several_processes_gets_its_part_of_what_it_counts_by_itself() -> None:
    backend = {"url": "http://a", "max_requests": 9, "max_prefill_tokens": 1}
    split = given(server__processes=4, backends=[backend], media__workers=9, upstream__kv_fill=2.0)
    (made,) = upstream_settings(split).backends
    assert (made.max_requests, made.max_prefill_tokens) == (2, 1)
    assert kv_fill(split) == 0.5
    assert media_settings(split, b"\0" * 32).pool.workers == 2
    assert media_settings(given(server__processes=4, media__workers=1), b"\0" * 32).pool.workers == 1
    whole = given(backends=[backend], upstream__kv_fill=None)
    assert upstream_settings(whole).backends[0].max_requests == 9
    assert kv_fill(whole) is None
