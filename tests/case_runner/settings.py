"""Descriptive settings of the cases -> the gateway's own configuration: gateway.yaml and policy files.

Decided here: the whole mapping, one entry a setting, and FORMAT's defaults. An unknown name, or a value the gateway
cannot be told, raises UnknownSetting, which fails the case by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.case_runner.engine_answers import MODEL
from tests.case_runner.origin import ORIGIN_ADDRESS

DEFAULTS: dict[str, Any] = {
    "limits.max_images": 8,
    "limits.max_body_bytes": 33554432,
    "image.max_pixels": 1003520,
    "image.max_input_pixels": 64000000,
    "image.background": [255, 255, 255],
    "image.timeout_s": 10,
    "fetch.total_timeout_s": 5,
    "fetch.max_redirects": 3,
    "fetch.max_bytes": 20971520,
    "model.factor": 28,
    "model.max_ratio": 200,
    "model.max_model_len": 8192,
    "stream.keepalive_s": None,
    "stream.idle_timeout_s": 60,
    "backend.response_timeout_s": 60,
    "drain.timeout_s": 30,
    "auth.keys": None,
    "budget.kv_tokens": None,
    "isolation.salt": False,
    "isolation.per_user": False,
}
# One checkpoint of the catalogue for each patch x merge that a case may name.
_CHECKPOINTS = {28: "Qwen/Qwen2.5-VL-7B-Instruct", 32: "Qwen/Qwen3-VL-8B-Instruct"}
_MAX_RATIO = 200  # of both families' processors; not a setting of the gateway
_IMAGE_WORKERS = 2
_SETTLE_S = 0.2
_PROBE_INTERVAL_S = 1.0
_DISCOVERY_TIMEOUT_S = 20.0  # the stand-ins answer; a busy machine is no reason to begin without having heard them


class UnknownSetting(Exception):
    """A setting that this mapping does not know, or a value that the gateway cannot take."""


@dataclass(frozen=True, slots=True)
class GatewayFiles:
    """gateway.yaml and the policy files by name, each as what YAML (here: JSON, which YAML includes) says."""

    gateway: dict[str, Any]
    policies: dict[str, dict[str, Any]]


def effective(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A case's settings over FORMAT's defaults. Raises UnknownSetting."""
    unknown = settings.keys() - DEFAULTS.keys()
    if unknown:
        raise UnknownSetting(f"unknown setting {', '.join(sorted(unknown))}")
    whole = {**DEFAULTS, **settings}
    if whole["model.factor"] not in _CHECKPOINTS:
        raise UnknownSetting(f"model.factor {whole['model.factor']}: no checkpoint of that grid")
    if whole["model.max_ratio"] != _MAX_RATIO:
        raise UnknownSetting(f"model.max_ratio {whole['model.max_ratio']}: the families' own is {_MAX_RATIO}")
    return whole


def gateway_files(
    whole: Mapping[str, Any], backends: list[str], static_hosts: Mapping[str, str], store_url: str | None = None
) -> GatewayFiles:
    """Configuration for effective settings, the replicas' URLs and the names that do not come from DNS."""
    gateway: dict[str, Any] = {
        "server": {
            "host": "127.0.0.1",
            "port": 0,
            "admin_port": 0,
            "max_body_bytes": whole["limits.max_body_bytes"],
            "keepalive_comment_s": whole["stream.keepalive_s"],
            "settle_s": _SETTLE_S,
            "drain_timeout_s": whole["drain.timeout_s"],
        },
        "backends": [{"url": url, "name": f"replica-{number}"} for number, url in enumerate(backends)],
        "models": {MODEL: {"checkpoint": _CHECKPOINTS[whole["model.factor"]]}},
        "policies": "policies",
        "upstream": {
            "response_timeout_s": whole["backend.response_timeout_s"],
            "idle_timeout_s": whole["stream.idle_timeout_s"],
            "probe_interval_s": _PROBE_INTERVAL_S,
            "discovery_timeout_s": _DISCOVERY_TIMEOUT_S,
        },
        "media": {"workers": _IMAGE_WORKERS, "job_deadline_s": whole["image.timeout_s"]},
        "fetch": {
            "total_timeout_s": whole["fetch.total_timeout_s"],
            "max_redirects": whole["fetch.max_redirects"],
            "public_networks": [f"{ORIGIN_ADDRESS}/32"],
            "static_hosts": dict(static_hosts),
        },
    }
    if store_url is not None:
        gateway["redis"] = {"url": store_url}
    return GatewayFiles(gateway, _policies(whole))


def _policies(whole: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    default: dict[str, Any] = {
        "rules": {
            "max_images": whole["limits.max_images"],
            "max_pixels": whole["image.max_pixels"],
            "max_input_pixels": whole["image.max_input_pixels"],
            "max_image_bytes": whole["fetch.max_bytes"],
            "background": whole["image.background"],
        },
        "bytes_once": "never",  # the stand-in keeps no pictures, and cases look at what it gets
    }
    if whole["budget.kv_tokens"] is not None:
        default["kv_tokens_in_flight"] = whole["budget.kv_tokens"]
    if whole["isolation.salt"] or whole["isolation.per_user"]:
        default["isolation"] = {"cache_salt": "user" if whole["isolation.per_user"] else "tenant"}
    files = {"default.yaml": default}
    keys: dict[str, list[str]] = {}
    for key, tenant in (whole["auth.keys"] or {}).items():
        keys.setdefault(tenant, []).append(f"sha256:{hashlib.sha256(key.encode()).hexdigest()}")
    for number, (tenant, hashes) in enumerate(keys.items()):
        files[f"tenant-{number}.yaml"] = {"tenant": tenant, "keys": hashes}
    return files


def fingerprint(whole: Mapping[str, Any]) -> str:
    """Equal for settings that one gateway process can serve."""
    return json.dumps(dict(whole), sort_keys=True)
