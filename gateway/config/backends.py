"""The settings of one engine, and of a place where engines are found.

Decided here: name, type, default and help, as in ``settings``. Not decided here: how a source is asked
(``upstream.sources``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from gateway.config.declaring import setting


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """One engine. What is not given is discovered."""

    url: str = setting("", "Base URL of the engine, without /v1.")
    name: str | None = setting(None, "Name in headers, logs and metrics; host:port by default.")
    engine: str = setting("auto", "The serving software.", choices=("auto", "vllm", "sglang", "generic"))
    role: str = setting(
        "full",
        "The part of a request it computes: all of it, pictures for consumers, or a prompt for decoders.",
        choices=("full", "encoder", "consumer", "prefill", "decode"),
    )
    lend_affinity: str | None = setting(
        None,
        "Where a router stands there: sglang-router, vllm-router, or the header by which it hashes; it is sent the "
        "first image's identity.",
    )
    max_requests: int | None = setting(
        None, "Most requests of ours there at once; further ones wait here (queue_timeout_s).", minimum=1
    )
    max_prefill_tokens: int | None = setting(
        None,
        "Most prompt tokens of ours there without a first token yet; one request may exceed it alone.",
        minimum=1,
        unit="tokens",
    )
    priorities: bool = setting(
        False,
        "It schedules by priority (vLLM's --scheduling-policy priority, SGLang's --enable-priority-scheduling): it is "
        "told that of the policy.",
    )
    bootstrap_port: int = setting(
        8998, "Where SGLang's prefill meets its decoders (--disaggregation-bootstrap-port).", minimum=1, maximum=65535
    )
    api_key: str | None = setting(None, "Sent to this engine as a bearer token.", secret=True)
    max_pixels: int | None = setting(None, "The engine's effective pixel cap per image.", minimum=1, unit="pixels")
    context_tokens: int | None = setting(None, "Context length; discovered by default.", minimum=1, unit="tokens")
    kv_tokens: int | None = setting(None, "KV capacity; discovered by default.", minimum=1, unit="tokens")
    vision: bool | None = setting(None, "Whether it takes images; discovered by default, else assumed.")
    models: tuple[str, ...] = setting((), "Names it serves; discovered by default.")
    max_images: int | None = setting(
        None, "Images it takes per prompt (vLLM --limit-mm-per-prompt); discovered where it tells.", minimum=1
    )
    kv_block_tokens: int | None = setting(
        None, "Tokens of one KV block; discovered by default.", minimum=1, unit="tokens"
    )
    prefix_hash: str | None = setting(
        None, "How it hashes KV blocks (vLLM --prefix-caching-hash-algo); discovered by default."
    )
    encoder_tokens: int | None = setting(
        None,
        "The most embeddings one image may have there, where that is less than its cap allows.",
        minimum=1,
        unit="tokens",
    )
    encoder_cache_tokens: int | None = setting(
        None, "Embeddings that its encoder cache holds; discovered where it tells.", minimum=1, unit="tokens"
    )
    prefill_chunk_tokens: int | None = setting(
        None, "Prompt tokens of one step (vLLM --max-num-batched-tokens); discovered where it tells.",
        minimum=1, unit="tokens",
    )  # fmt: skip
    api_servers: int | None = setting(
        None, "Front-end processes, each with a multimodal cache of its own; discovered by default.", minimum=1
    )
    kv_events: str | None = setting(
        None, "Where it publishes KV events (tcp://host:port), or off; discovered by default (all its ranks)."
    )
    kv_events_replay: str | None = setting(None, "Where it repeats them, beside kv_events.")
    takes_ids: bool | None = setting(
        None,
        "Whether images that it holds may go as their id alone; by default to vLLM, unless it is known to have several "
        "API server processes, each of which has a cache of its own.",
    )
    image_cache_bytes: int | None = setting(
        None, "Its --mm-processor-cache-gb (vLLM), 4 GiB by default; 0: it keeps no images.", minimum=0, unit="bytes"
    )
    kv_hash_seed: str | None = setting(
        None,
        "Its PYTHONHASHSEED (vllm-none-hash where it has none), if prefix_hash is sha256_cbor: its own block hashes "
        "are then used, for a third of the memory; by default blocks go by what events say is in them.",
    )
    tls_ca_file: str | None = setting(None, "Authorities (PEM) that sign for this engine, instead of the system's.")
    tls_cert_file: str | None = setting(None, "Our certificate (PEM, with its chain) towards this engine: mutual TLS.")
    tls_server_name: str | None = setting(None, "The name on its certificate, where that is not the URL's host.")
    tls_key_file: str | None = setting(None, "The certificate's key (PEM), where it is not in the same file.")


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """A place where engines are found while the gateway runs: a file, DNS, or a Kubernetes Service's endpoints."""

    url: str = setting(
        "",
        "file:PATH (a YAML or JSON list as under backends), dns://HOST:PORT (every address is an engine), "
        "srv://_SERVICE._PROTO.HOST (ports too), or kubernetes://NAMESPACE/SERVICE:PORT (its EndpointSlices; PORT is a "
        "name or a number; namespace and port may be left out).",
    )
    name: str | None = setting(None, "Name in logs and metrics; the address by default.")
    refresh_s: float = setting(
        10.0,
        "How often the file is looked at, at most how long a DNS answer is used (a shorter TTL counts), and how long "
        "after a failure Kubernetes is asked again.",
        minimum=0.05,
        unit="s",
    )
    hold_s: float = setting(
        60.0, "How long an empty answer is disbelieved; failures take no engine away at all.", minimum=0, unit="s"
    )
    tls: bool = setting(False, "Whether the engines found speak https; their certificates must hold the DNS name.")
    nameservers: tuple[str, ...] = setting((), "DNS servers (address or address:port) instead of the system's.")
    selector: str | None = setting(
        None, "Label selector of EndpointSlices, instead of the one for SERVICE, which is then left out."
    )
    api_server: str | None = setting(None, "The Kubernetes API; that of the cluster we run in by default.")
    token_file: str | None = setting(
        None, "Bearer token for it, read anew each time; the service account's by default."
    )
    ca_file: str | None = setting(None, "Authorities (PEM) that sign for it; the service account's by default.")
    backend: BackendConfig = setting(
        BackendConfig(), "What holds for every engine found here, unless it says otherwise: as under backends, no url."
    )

    def below(self, folder: Path) -> SourceConfig:
        """The same; a relative file is taken to lie in ``folder``."""
        scheme, _, path = self.url.partition(":")
        return replace(self, url=f"file:{folder / path}") if scheme == "file" else self
