"""Backends that come from elsewhere than gateway.yaml: a file of them, or options written beside a Service.

Decided here: that both are held to the rules of ``gateway.yaml``, and which options a cluster may set. Not decided
here: when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gateway.config.backends import BackendConfig
from gateway.config.documents import SettingsProblems, plain_values
from gateway.config.fleet_problems import backend_problems
from gateway.config.sources import Reader

# Who may write labels in a namespace is not who runs the gateway: no keys, no files, no addresses from there.
OPTIONS = frozenset({
    "api_servers", "bootstrap_port", "context_tokens", "encoder_cache_tokens", "encoder_tokens", "engine",
    "image_cache_bytes", "kv_block_tokens", "kv_tokens", "max_images", "max_pixels", "max_prefill_tokens",
    "max_requests", "models", "prefill_chunk_tokens",
    "prefix_hash", "priorities", "role", "takes_ids", "vision",
})  # fmt: skip


def read_backends(text: bytes, origin: str, base: BackendConfig) -> tuple[BackendConfig, ...]:
    """A YAML or JSON list of backends (or a mapping with ``backends``), what an entry leaves out taken from ``base``.

    Raises SettingsProblems with every problem.
    """
    try:
        found = plain_values(text.decode("utf-8"), origin)
    except UnicodeDecodeError as error:
        raise SettingsProblems([f"{origin}: is not UTF-8"]) from error
    if isinstance(found, dict) and set(found) == {"backends"}:
        found = found["backends"]
    if not isinstance(found, list):
        raise SettingsProblems([f"{origin}: must be a list of backends"])
    reader = Reader(origin)
    made: list[BackendConfig] = []
    for index, entry in enumerate(found):
        raw = {"url": entry} if isinstance(entry, str) else entry
        made.append(reader.record(BackendConfig, raw, f"backends.{index}", base))
    problems = reader.problems or backend_problems(made, f"{origin}: backends")
    if problems:
        raise SettingsProblems(problems)
    return tuple(made)


def with_options(base: BackendConfig, options: Mapping[str, str], origin: str) -> BackendConfig:
    """``base`` with options (``max-pixels``) set over it. Raises SettingsProblems for what is wrong or not allowed."""
    if not options:
        return base
    named = {key.replace("-", "_"): value for key, value in options.items()}
    unknown = sorted(named.keys() - OPTIONS)
    if unknown:
        raise SettingsProblems([f"{origin}: {key}: may not be set there" for key in unknown])
    reader = Reader(origin)
    made: BackendConfig = reader.record(BackendConfig, dict(named), "", replace(base))
    if reader.problems:
        raise SettingsProblems(reader.problems)
    return made
