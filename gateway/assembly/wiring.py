"""From settings to what each part is told: the place that knows both vocabularies (beside ``sharing``).

Decided here: which setting becomes which argument. Not decided here: defaults (``config``), meaning (the parts).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from gateway.api.auth import Authenticator
from gateway.api.oidc import OidcSettings, Tokens
from gateway.assembly.finding import named_sources
from gateway.config.backends import BackendConfig
from gateway.config.model_files import read_model_files
from gateway.config.policies import Parsed, load_policies
from gateway.config.settings import ModelConfig, Settings
from gateway.media.codecs import default_backend
from gateway.media.confine import SandboxMode
from gateway.media.digest import engine_identity
from gateway.media.fetch import FetchSettings
from gateway.media.settings import MediaSettings, PoolSettings, cgroup_cpus, cgroup_memory_bytes, within
from gateway.models.book import ModelBook
from gateway.models.catalog import ModelOverride, shipped_catalog
from gateway.models.clips import FrameServing
from gateway.models.hub.describe import ModelFiles
from gateway.models.hub.reading import ConfigProblem
from gateway.policy.keys import Caller
from gateway.policy.policyset import PolicySet, build_policy_set
from gateway.policy.visible import ModelAlias
from gateway.prompts.service import Prompts
from gateway.record import RequestHead
from gateway.routing.ask import Profile, Weights
from gateway.stages.exchange import World
from gateway.stages.identities import Identify
from gateway.types import BackendRole, EngineKind, TaskName, TenantId
from gateway.upstream.kv_events.settings import KvEventsSettings
from gateway.upstream.outliers import OutlierRules
from gateway.upstream.settings import NO_KV_EVENTS, BackendSettings, UpstreamSettings

_SAME_FIELDS = {each.name for each in fields(BackendSettings)} - {"url", "name", "engine", "role"}

# What a process counts by itself, so that several get a part each.
_SPLIT_FIELDS = ("max_requests", "max_prefill_tokens")

# What a request is about, or how it is answered: the client's to say.
_NOT_PARAMETERS = frozenset({"model", "messages", "input", "prompt", "stream", "stream_options", "tools"})


def deployment_key(settings: Settings) -> bytes:
    """32 bytes behind every identity and salt: from the shared secret, or this process's own."""
    secret = settings.identity.secret
    return hashlib.sha256(secret.encode()).digest() if secret else os.urandom(32)


def cache_salt(key: bytes, tenant: TenantId, user: str | None) -> str:
    """A cache salt that names neither tenant nor user: HMAC-SHA-256 under the deployment's secret, in hex."""
    text = f"{len(tenant)}:{tenant}:{user or ''}"
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def identify_by(key: bytes) -> Identify:
    """How engines' image ids are made. A key of its own: image workers know the one behind the digests they make."""
    own = hmac.new(key, b"engine identities", hashlib.sha256).digest()
    return lambda scope, content, picture: engine_identity(content, scope=scope, picture=picture, key=own)


def _answers(text: str) -> tuple[tuple[str, ...], ...]:
    """``10.0.0.1,10.0.0.2;10.0.0.3``: successive answers by semicolon, the addresses of one by comma."""
    return tuple(tuple(a.strip() for a in answer.split(",") if a.strip()) for answer in text.split(";"))


def _override(config: ModelConfig) -> ModelOverride:
    return ModelOverride(
        checkpoint=config.checkpoint,
        family=config.family,
        max_tiles=config.max_tiles,
        max_pixels=config.max_pixels,
        min_pixels=config.min_pixels,
        context_tokens=config.context_tokens,
        frames=_frames(config),
    )


def _frames(config: ModelConfig) -> FrameServing:
    usual = FrameServing()
    frames = usual.frames if config.video_frames is None else config.video_frames
    rate = usual.frames_per_s if config.video_frames_per_s is None else config.video_frames_per_s
    return FrameServing(frames, rate)


def _admission(settings: Settings, policies: PolicySet, tokens: Tokens | None) -> Callable[[RequestHead], Caller]:
    authenticator = Authenticator(policies, secret=settings.identity.secret, tokens=tokens)
    return lambda head: authenticator.caller(head.headers)


def tokens_of(settings: Settings, on_failure: Callable[[str], None]) -> Tokens | None:
    """The check of signed tokens, where an issuer is configured. Raises ValueError for settings that cannot be used."""
    jwt = settings.jwt
    if jwt.issuer is None:
        return None
    oidc = OidcSettings(
        issuer=jwt.issuer,
        audience=jwt.audience,
        jwks_url=jwt.jwks_url,
        jwks_file=jwt.jwks_file,
        algorithms=jwt.algorithms,
        tenant_claim=jwt.tenant_claim,
        task_claim=jwt.task_claim,
        leeway_s=jwt.leeway_s,
        refresh_s=jwt.refresh_s,
    )
    return Tokens(oidc, on_failure)


def _aliases(settings: Settings) -> dict[str, ModelAlias]:
    """The deployment's names for models. Raises ValueError for one that leads nowhere, or says what is the model's."""
    made: dict[str, ModelAlias] = {}
    for name, config in settings.models.items():
        if config.alias_of is None:
            if config.task is not None or config.parameters:
                raise ValueError(f"models.{name}: task and parameters are an alias's; give it alias_of")
            continue
        aliased = settings.models.get(config.alias_of)
        if config.alias_of == name or (aliased is not None and aliased.alias_of is not None):
            raise ValueError(f"models.{name}.alias_of: {config.alias_of} is an alias itself")
        own = replace(config, alias_of=None, task=None, parameters={})
        if own != ModelConfig():
            raise ValueError(f"models.{name}: an alias has task and parameters; the rest is said of {config.alias_of}")
        task = None if config.task is None else TaskName(config.task)
        made[name] = ModelAlias(config.alias_of, task, _parameters(name, config.parameters))
    return made


def _parameters(name: str, given: Mapping[str, object]) -> tuple[tuple[tuple[str, ...], str], ...]:
    found: list[tuple[tuple[str, ...], str]] = []
    for key, value in given.items():
        if key in _NOT_PARAMETERS:
            raise ValueError(f"models.{name}.parameters.{key}: no request may be given this")
        if key.startswith("max_") and key.endswith("_tokens") and (type(value) is not int or value < 1):
            raise ValueError(f"models.{name}.parameters.{key}: must be a whole number of at least 1")
        if isinstance(value, dict) and value:
            found += [((key, str(inner)), json.dumps(each)) for inner, each in value.items()]
        else:
            found.append(((key,), json.dumps(value)))
    return tuple(found)


def kv_events_settings(settings: Settings) -> KvEventsSettings | None:
    """How engines' KV events are followed; ``None`` where they are not: by setting, or since nobody could use them.

    Who says where events are has to have the library, which the upstream side then says.
    """
    u = settings.upstream
    has_tokens = any(config.tokenizer is not None for config in settings.models.values())
    is_told = u.kv_events_listen is not None or any(b.kv_events not in {None, NO_KV_EVENTS} for b in settings.backends)
    if u.kv_events == "off" or not has_tokens or (find_spec("zmq") is None and not is_told):
        return None
    return KvEventsSettings(u.kv_events_listen, u.kv_events_blocks)


def _prompts(settings: Settings, earlier: World | None) -> Prompts:
    tokenizers = {name: Path(c.tokenizer) for name, c in settings.models.items() if c.tokenizer is not None}
    loaded = earlier.prompts if earlier is not None and isinstance(earlier.prompts, Prompts) else None
    return Prompts(tokenizers, loaded, keeps_tokens=kv_events_settings(settings) is not None)


def routing_profile(settings: Settings) -> Profile:
    """The decision's weights and bounds."""
    r = settings.routing
    weights = Weights(r.queue_weight, r.work_weight, r.running_weight, r.home_weight)
    return Profile(load_factor=r.load_factor, spare_requests=max(1.0, r.spare_requests), weights=weights)


def load_world(
    settings: Settings,
    key: bytes,
    earlier: World | None = None,
    tokens: Tokens | None = None,
    parsed: Parsed | None = None,
) -> World:
    """A complete snapshot. Raises PolicyProblems, or ValueError for a model override or tokenizer that cannot be used.

    Tokenizers that ``earlier`` has loaded are taken over, and so is what ``parsed`` has of the policies.
    """
    policies: PolicySet = (
        load_policies(Path(settings.policies), parsed) if settings.policies else build_policy_set(())[0]
    )
    policies = replace(policies, aliases=_aliases(settings), resolved={})
    overrides = {name: _override(config) for name, config in settings.models.items() if config.alias_of is None}
    catalog = shipped_catalog()
    files: dict[str, ModelFiles] = {}
    for name, config in settings.models.items():
        if config.alias_of is not None:
            continue
        try:
            if config.path is None:
                catalog.find(name, override=overrides[name])
            else:
                files[name] = read_model_files(Path(config.path))
                catalog.find_described(name, files[name], override=overrides[name])
        except ConfigProblem as error:
            raise ValueError(f"models.{name}.path: {error}") from None
        except ValueError as error:
            raise ValueError(f"models.{name}.{error}") from None
    return World(
        policies=policies,
        book=ModelBook(catalog, overrides, files),
        admit=_admission(settings, policies, tokens),
        has_tenants=policies.has_keys or tokens is not None,
        max_body_bytes=settings.server.max_body_bytes,
        media_deadline_s=settings.media.job_deadline_s + settings.fetch.total_timeout_s,
        may_fetch=settings.fetch.enabled,
        keepalive_comment_s=settings.server.keepalive_comment_s,
        cache_salt=lambda tenant, user: cache_salt(key, tenant, user),
        identify=identify_by(key),
        prompts=_prompts(settings, earlier),
        routing=routing_profile(settings),
    )


def codec_backend(settings: Settings) -> str:
    """The configured codec backend, or the best that is installed. Raises CodecBackendMissing when there is none."""
    configured = settings.media.codec_backend
    return default_backend() if configured == "auto" else configured


def media_settings(settings: Settings, key: bytes) -> MediaSettings:
    """The image pipeline's own settings. Raises CodecBackendMissing where no codec backend can be used."""
    m = settings.media
    pool = PoolSettings(
        workers=max(1, (m.workers or cgroup_cpus()) // settings.server.processes),
        spare_workers=m.spare_workers,
        codec_backend=codec_backend(settings),
        job_deadline_s=m.job_deadline_s,
        worker_memory_bytes=m.worker_memory_bytes,
        worker_nice=m.worker_nice,
        max_queue_jobs=m.max_queue_jobs,
        sandbox=cast("SandboxMode", m.sandbox),  # the setting's choices
        sandbox_user=m.sandbox_user,
    )
    pool = within(pool, cgroup_memory_bytes(), settings.server.processes)
    # A key of its own, since workers are told it: what they know must not make another tenant's cache salts.
    content_key = hmac.new(key, b"image identities", hashlib.sha256).digest()
    return MediaSettings(
        content_key=content_key,
        seed=int.from_bytes(key[:8], "little"),
        pool=pool,
        slab_bytes=m.slab_bytes,
        prepared_cache_bytes=m.prepared_cache_bytes,
        max_prepared_bytes=m.max_prepared_bytes,
        facts_cache_entries=m.facts_cache_entries,
    )


def fetch_settings(settings: Settings) -> FetchSettings:
    """The fetcher's own settings."""
    f = settings.fetch
    return FetchSettings(
        total_timeout_s=f.total_timeout_s,
        max_redirects=f.max_redirects,
        cache_bytes=f.cache_bytes,
        cache_max_age_s=f.cache_max_age_s,
        ca_file=f.ca_file,
        public_networks=f.public_networks,
        static_hosts={name: _answers(text) for name, text in f.static_hosts.items()},
    )


def backend_settings(config: BackendConfig, processes: int = 1) -> BackendSettings:
    """One backend as one of ``processes`` may use it. Raises ValueError for a URL that is none."""
    same = {name: getattr(config, name) for name in _SAME_FIELDS}
    for limit in _SPLIT_FIELDS:
        if same[limit] is not None:
            same[limit] = max(1, same[limit] // processes)
    return BackendSettings(
        url=config.url,
        name=config.name or "",
        engine="auto" if config.engine == "auto" else EngineKind(config.engine),
        role=BackendRole(config.role),
        **same,
    )


def kv_fill(settings: Settings) -> float | None:
    """How much of the backends' KV caches one process may reserve."""
    fill = settings.upstream.kv_fill
    return None if fill is None else fill / settings.server.processes


def has_limits(settings: Settings) -> bool:
    """Whether some backend has limits of its own."""
    fixed = any(b.max_requests is not None or b.max_prefill_tokens is not None for b in settings.backends)
    return fixed or bool(settings.sources)  # whose backends may have limits, too


def upstream_settings(settings: Settings) -> UpstreamSettings:
    """Backends and time limits. Raises ValueError for a URL that is none, or two backends of one name."""
    u = settings.upstream
    make = partial(backend_settings, processes=settings.server.processes)
    backends = tuple(make(each) for each in settings.backends)
    return UpstreamSettings(
        backends=backends,
        kv_events=kv_events_settings(settings),
        sources=named_sources(settings.sources, make),
        connect_timeout_s=u.connect_timeout_s,
        response_timeout_s=u.response_timeout_s,
        idle_timeout_s=u.idle_timeout_s,
        probe_interval_s=u.probe_interval_s,
        probe_timeout_s=u.probe_timeout_s,
        discovery_timeout_s=u.discovery_timeout_s,
        retry_ratio=u.retry_ratio,
        leg_timeout_s=u.leg_timeout_s,
        encodings_kept_s=u.encodings_kept_s,
        index_entries=u.index_entries,
        revival_interval_s=u.revival_interval_s,
        keepalive_s=u.keepalive_s,
        gone_grace_s=u.gone_grace_s,
        slow_start_s=u.slow_start_s,
        breaker_failures=u.breaker_failures,
        breaker_open_s=u.breaker_open_s,
        outliers=OutlierRules(
            interval_s=u.eject_interval_s,
            volume=u.eject_volume,
            failure_ratio=u.eject_failure_ratio,
            latency_factor=u.eject_latency_factor,
            base_s=u.eject_s,
            limit_s=u.eject_limit_s,
            share=u.eject_share,
        ),
        forward_authorization=True,  # the journey takes it away once tenants have keys
    )
