"""Where traces go: the settings, what is wrong with them, and what their spellings mean.

Decided here: how a collector's address and its headers are written (as in OTEL_EXPORTER_OTLP_ENDPOINT and
OTEL_EXPORTER_OTLP_HEADERS). Not decided here: what is traced (``telemetry``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gateway.config.declaring import setting

_TRACES_PATH = "/v1/traces"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """Spans of requests for a collector of OpenTelemetry; needs the extra otel. Off without an address."""

    otlp_endpoint: str | None = setting(
        None, "The collector (OTLP over HTTP, protobuf), e.g. http://collector:4318; /v1/traces is added."
    )
    headers: str | None = setting(
        None, "What the collector asks for, as in Authorization=Basic%20...,X-Scope=a (percent-encoded).", secret=True
    )
    sample_ratio: float = setting(
        1.0, "Share of requests traced, where the client does not say (traceparent).", minimum=0, maximum=1
    )
    service_name: str = setting("vlm-gateway", "The service's name in traces.")
    timeout_s: float = setting(10.0, "Longest wait for the collector, retries included.", minimum=0.1, unit="s")


def traces_url(endpoint: str) -> str:
    """``http://collector:4318`` -> ``http://collector:4318/v1/traces``."""
    bare = endpoint.rstrip("/")
    return bare if bare.endswith(_TRACES_PATH) else bare + _TRACES_PATH


def header_pairs(written: str | None) -> dict[str, str]:
    """``a=1,b=two%20words`` -> a mapping. Raises ValueError, without repeating what may be a secret."""
    pairs: dict[str, str] = {}
    for place, part in enumerate(filter(None, (written or "").split(",")), 1):
        name, equals, value = part.strip().partition("=")
        text = unquote(value.strip())
        if not equals or not _HEADER_NAME.fullmatch(name.strip()) or not text.isprintable() or not text.isascii():
            raise ValueError(f"header {place} must be name=value, percent-encoded")
        pairs[name.strip()] = text
    return pairs


def tracing_problems(tracing: TracingConfig) -> list[str]:
    """One line each, as ``settings: where: what``."""
    problems = []
    if tracing.otlp_endpoint is not None:
        try:
            parts = urlsplit(tracing.otlp_endpoint)
        except ValueError:  # brackets that do not close
            parts = urlsplit("")
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            problems.append("otlp_endpoint: must be http://host[:port] or https://...")
        elif parts.username is not None:
            problems.append("otlp_endpoint: takes no credentials; put them into headers")
    elif tracing.headers is not None:
        problems.append("headers: needs otlp_endpoint")
    try:
        header_pairs(tracing.headers)
    except ValueError as error:
        problems.append(f"headers: {error}")
    return [f"settings: tracing.{problem}" for problem in problems]
