"""Every setting of the server, once: flags, environment names, JSON schema and docs/configuration.md derive from here.

Decided here: name, type, default, unit, bounds and help of each setting. Not decided here: where values come from
(``sources``). Policies are documents of their own. Byte settings take plain numbers or units (``64MiB``), durations are
seconds. Settings marked ``reload`` take effect on reload, the others when the process starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.config.backends import BackendConfig, SourceConfig
from gateway.config.declaring import setting
from gateway.config.routes import RouteConfig
from gateway.config.routing import RoutingConfig
from gateway.config.server import ServerSettings
from gateway.config.tracing import TracingConfig

__all__ = [
    "BackendConfig",
    "FetchConfig",
    "IdentityConfig",
    "JwtConfig",
    "LogConfig",
    "MediaConfig",
    "ModelConfig",
    "RedisConfig",
    "RouteConfig",
    "RoutingConfig",
    "ServerSettings",
    "Settings",
    "SourceConfig",
    "TracingConfig",
    "UpstreamConfig",
    "setting",
]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What the operator knows better than the catalogue about one served model name."""

    checkpoint: str | None = setting(None, "Checkpoint of the catalogue that this model is, e.g. Qwen3-VL-8B.")
    path: str | None = setting(
        None, "Folder with the model's config.json and preprocessor_config.json: what it is and how it counts."
    )
    family: str | None = setting(None, "Family of the catalogue whose rule counts its images.")
    max_tiles: int | None = setting(
        None, "The most tiles as served: max_dynamic_patch, num_crops, max_slice_nums ...", minimum=1
    )
    max_pixels: int | None = setting(None, "The processor's max_pixels as served.", minimum=1, unit="pixels")
    min_pixels: int | None = setting(None, "The processor's min_pixels as served.", minimum=1, unit="pixels")
    context_tokens: int | None = setting(None, "Context length as served.", minimum=1, unit="tokens")
    video_frames: int | None = setting(
        None,
        "Frames that the engine takes of a video sent as frames (--media-io-kwargs num_frames); 32 by default.",
        minimum=2,
        maximum=768,
    )
    video_frames_per_s: float | None = setting(
        None,
        "How many of them a second it takes them to be (--media-io-kwargs fps); 1 by default.",
        minimum=0.01,
        maximum=240,
    )
    alias_of: str | None = setting(
        None, "Another served model's name, for which this one stands; the settings above are that model's then."
    )
    task: str | None = setting(None, "The task of requests for this alias that name none, where the tenant has it.")
    parameters: dict[str, object] = setting(
        {},
        "Members that requests for this alias get where they have none, as in {max_tokens: 512, chat_template_kwargs: "
        "{enable_thinking: false}}; objects are joined.",
    )
    tokenizer: str | None = setting(
        None,
        "Folder with the model's tokenizer.json and chat template: text is then counted exactly (extra tokenizers).",
    )


@dataclass(frozen=True, slots=True)
class UpstreamConfig:
    """How engines are spoken to."""

    connect_timeout_s: float = setting(2.0, "Longest wait for a connection to an engine.", minimum=0.05, unit="s")
    response_timeout_s: float = setting(600.0, "Longest wait for an engine's response head.", minimum=0.1, unit="s")
    idle_timeout_s: float = setting(300.0, "Longest silence inside an engine's response.", minimum=0.1, unit="s")
    probe_interval_s: float = setting(5.0, "Time between probes of a healthy engine.", minimum=0.1, unit="s")
    probe_timeout_s: float = setting(2.0, "Longest wait for a probe.", minimum=0.05, unit="s")
    discovery_timeout_s: float = setting(1.5, "At start, how long the first discovery may take.", minimum=0, unit="s")
    kv_fill: float | None = setting(
        1.0,
        "How much of the backends' KV caches, as a share, requests may reserve before further ones wait here "
        "(queue_timeout_s of their policy); null: they never wait.",
        minimum=0.1,
        maximum=100,
    )
    leg_timeout_s: float = setting(
        30.0, "Longest wait for an encoder or a prefill; then the request goes whole.", minimum=0.1, unit="s"
    )
    encodings_kept_s: float = setting(
        0.0,
        "How long what an encoder wrote surely stays where consumers read it: until then it is not asked again for a "
        "picture. 0: ask every time; consumers end when an encoding is gone.",
        minimum=0,
        unit="s",
    )
    retry_ratio: float = setting(0.2, "Resends allowed per request, over time.", minimum=0, maximum=1)
    kv_events: str = setting(
        "auto",
        "Follow what engines publish about their KV caches (extra kv-events; for models with a tokenizer), or not.",
        choices=("auto", "off"),
    )
    kv_events_listen: str | None = setting(
        None, "Where engines that connect by themselves publish to (tcp://0.0.0.0:5557), told apart by topic."
    )
    kv_events_blocks: int = setting(1 << 20, "KV blocks kept in mind per backend, up to 80 bytes each.", minimum=1)
    index_entries: int = setting(
        1 << 20,
        "Images kept in mind as held by backends, and as many links of prefixes, over all of them; 37 bytes each. A "
        "backend's caches hold some 150 images and 1,000 links.",
        minimum=1024,
    )
    revival_interval_s: float = setting(0.5, "Time between probes of one that is down.", minimum=0.05, unit="s")
    keepalive_s: float = setting(3.0, "How long idle connections are kept; engines keep them 5.", minimum=0, unit="s")
    gone_grace_s: float = setting(10.0, "Longest silence once nobody listens there.", minimum=0.1, unit="s")
    slow_start_s: float = setting(30.0, "How long the share of one that came back grows.", minimum=0, unit="s")
    breaker_failures: int = setting(5, "Lost or silent exchanges in a row after which an engine rests.", minimum=1)
    breaker_open_s: float = setting(2.0, "The first such rest; doubles up to 30.", minimum=0.1, maximum=30, unit="s")
    eject_share: float = setting(0.1, "Share of engines that may be ejected, or one; 0: none.", minimum=0, maximum=1)
    eject_s: float = setting(30.0, "First ejection; the n-th in a row lasts n times as long.", minimum=0.1, unit="s")
    eject_limit_s: float = setting(300.0, "Longest ejection.", minimum=0.1, unit="s")
    eject_interval_s: float = setting(10.0, "How often engines are compared.", minimum=0.1, unit="s")
    eject_volume: int = setting(20, "Requests that an engine must have met to be compared.", minimum=1)
    eject_failure_ratio: float = setting(0.5, "Share of failures that ejects.", minimum=0.01, maximum=1)
    eject_latency_factor: float | None = setting(5.0, "So many times as late as others ejects.", minimum=1.5)


@dataclass(frozen=True, slots=True)
class MediaConfig:
    """The image pool, its limits and its caches."""

    workers: int | None = setting(
        None, "Image worker processes; by default the CPUs of the cgroup.", minimum=1, maximum=256
    )
    spare_workers: int = setting(
        1,
        "Further workers that stand ready (some 60 MB each) to take over at once where one is lost.",
        minimum=0,
        maximum=16,
    )
    codec_backend: str = setting(
        "auto",
        "Resizer and encoder. A fleet runs one; start-up refuses when a named one is missing.",
        choices=("auto", "pillow-simd", "vips"),
    )
    slab_bytes: int = setting(
        512 << 20,
        "Shared memory for bodies in flight; fetched images may take as much beside it.",
        minimum=1 << 20,
        unit="bytes",
    )
    job_deadline_s: float = setting(
        10.0, "Longest work on one image; then its worker is replaced.", minimum=0.1, unit="s"
    )
    worker_memory_bytes: int = setting(
        2 << 30,
        "Memory limit of one worker; half of the cgroup's memory, if that is less.",
        minimum=128 << 20,
        unit="bytes",
    )
    sandbox: str = setting(
        "auto",
        "Walls around workers: all that the kernel has (auto), all or no start (require), limits alone (off).",
        choices=("auto", "require", "off"),
    )
    sandbox_user: str = setting("nobody", "Who workers are when the gateway runs as root: a name, uid or uid:gid.")
    worker_nice: int = setting(
        10,
        "How much image workers yield to the loop.",
        minimum=0,
        maximum=19,
    )
    max_queue_jobs: int = setting(256, "Images that may wait for a worker; more are 503.", minimum=1)
    prepared_cache_bytes: int = setting(
        256 << 20,
        "Prepared images kept in memory; sampled videos may take a quarter of it beside them.",
        minimum=0,
        unit="bytes",
    )
    max_prepared_bytes: int = setting(
        128 << 20, "Prepared images of one request together; more are 400.", minimum=1 << 20, unit="bytes"
    )
    facts_cache_entries: int = setting(65536, "Image sources remembered.", minimum=0)
    shared_cache_bytes: int = setting(
        0, "Prepared images kept in Redis for all replicas; 0 is none.", minimum=0, unit="bytes"
    )
    shared_cache_url: str | None = setting(
        None, "Another Redis for them, as redis.url is written; by default that one.", secret=True
    )
    shared_cache_ttl_s: float = setting(3600.0, "How long they stay there.", minimum=1, unit="s")
    shared_cache_deadline_s: float = setting(
        0.1, "Longest look-up there; then the image is made anew.", minimum=0.001, unit="s"
    )


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Remote images, fetched by the gateway so that engines need no way out."""

    enabled: bool = setting(True, "Whether http(s) image URLs are fetched at all.")
    total_timeout_s: float = setting(10.0, "Longest fetch, redirects included.", minimum=0.1, unit="s")
    max_redirects: int = setting(3, "Redirects followed.", minimum=0, maximum=20)
    cache_bytes: int = setting(64 << 20, "Fetched files kept where their origin allows.", minimum=0, unit="bytes")
    cache_max_age_s: float = setting(
        300.0, "Longest use of a kept file without asking its origin again.", minimum=0.0, unit="s"
    )
    ca_file: str | None = setting(None, "Authorities (PEM) trusted beside the system's, for origins of your own.")
    public_networks: tuple[str, ...] = setting((), "Networks to treat as public although they are not (CIDR).")
    static_hosts: dict[str, str] = setting({}, "Addresses for names, instead of DNS; successive answers by semicolon.")


@dataclass(frozen=True, slots=True)
class JwtConfig:
    """Signed tokens (JWT, OpenID Connect) instead of, or beside, API keys; needs the extra jwt."""

    issuer: str | None = setting(None, "Whose tokens are believed (claim iss); none by default.")
    audience: str = setting("", "What they must be made out to (claim aud).")
    jwks_url: str | None = setting(None, "Where the issuer publishes its keys.")
    jwks_file: str | None = setting(None, "A file with the issuer's keys, instead of jwks_url.")
    algorithms: tuple[str, ...] = setting(("RS256", "ES256", "EdDSA"), "Signatures accepted.")
    tenant_claim: str = setting("tenant", "The claim that names the tenant; a.b looks inside an object.")
    task_claim: str | None = setting(None, "The claim that names the task, where there is one.")
    leeway_s: float = setting(30.0, "By how much clocks may differ.", minimum=0.0, unit="s")
    refresh_s: float = setting(300.0, "How often the issuer's keys are fetched.", minimum=1.0, unit="s")


@dataclass(frozen=True, slots=True)
class IdentityConfig:
    """Who calls, and the deployment's secret behind image identities, cache salts and stored keys."""

    secret: str | None = setting(None, "Shared by all replicas; by default each process makes its own.", secret=True)


@dataclass(frozen=True, slots=True)
class RedisConfig:
    """The store that replicas share: tenants' budgets and rates, the registry of replicas. Redis >= 6.2 or Valkey."""

    url: str | None = setting(
        None,
        "Address redis://, rediss:// (TLS) or unix://, with or without credentials; without it budgets stay in memory.",
        secret=True,
    )
    mode: str = setting(
        "standalone",
        "What the address leads to: one server (or a proxy), a cluster's nodes, or sentinels.",
        choices=("standalone", "cluster", "sentinel"),
    )
    nodes: tuple[str, ...] = setting((), "More nodes of the cluster, or more sentinels, as host:port.")
    sentinel_service: str = setting("mymaster", "The sentinels' name of the master.")
    username: str | None = setting(None, "ACL user; overrides the address.")
    password: str | None = setting(None, "Its password; overrides the address.", secret=True)
    password_file: str | None = setting(None, "File with the password, read anew at every connection (rotation).")
    sentinel_username: str | None = setting(None, "ACL user of the sentinels themselves.")
    sentinel_password: str | None = setting(None, "Password of the sentinels themselves.", secret=True)
    tls_ca_file: str | None = setting(None, "CA certificates that sign the server's; the system's by default.")
    tls_certificate_file: str | None = setting(None, "Client certificate, where the server asks for one.")
    tls_key_file: str | None = setting(None, "Private key of the client certificate.")
    prefix: str = setting("vlmgw", "First word of every key; deployments that share a Redis need one each.")
    deadline_s: float = setting(
        0.05, "Longest wait for an answer on a request's path; then local shares.", minimum=0.001, unit="s"
    )
    connect_timeout_s: float = setting(
        1.0, "Longest wait for a connection, off requests' path.", minimum=0.01, unit="s"
    )
    retry_s: float = setting(1.0, "Longest pause between attempts while it is away.", minimum=0.05, unit="s")
    lease_s: float = setting(
        15.0,
        "How long what a crashed replica held stays taken; living ones renew thrice as often.",
        minimum=1,
        unit="s",
    )
    share_hints: bool = setting(
        True, "Whether replicas tell each other, once a second, which backend was given which image."
    )
    min_replicas: int = setting(
        1, "Replicas assumed at least when limits are shared out while Redis is away.", minimum=1, maximum=10_000
    )


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Structured logs on standard output."""

    access: bool = setting(True, "One JSON line per request.", reload=True)
    level: str = setting("info", "Lowest level logged.", choices=("debug", "info", "warning", "error"), reload=True)


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole of gateway.yaml."""

    server: ServerSettings = field(default_factory=ServerSettings)
    backends: tuple[BackendConfig, ...] = setting((), "The engines.")
    sources: tuple[SourceConfig, ...] = setting((), "Where further engines are found while running.")
    routes: tuple[RouteConfig, ...] = setting((), "Paths beside the gateway's own that pass to a backend unread.")
    models: dict[str, ModelConfig] = setting({}, "Overrides per served model name.", reload=True)
    policies: str | None = setting(None, "Directory of policy files; built-in defaults without it.", reload=True)
    upstream: UpstreamConfig = field(default_factory=UpstreamConfig)
    routing: RoutingConfig = field(default_factory=RoutingConfig)
    media: MediaConfig = field(default_factory=MediaConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    identity: IdentityConfig = field(default_factory=IdentityConfig)
    jwt: JwtConfig = field(default_factory=JwtConfig)
    redis: RedisConfig = field(default_factory=RedisConfig)
    log: LogConfig = field(default_factory=LogConfig)
    tracing: TracingConfig = field(default_factory=TracingConfig)
