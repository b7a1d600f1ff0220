"""What the transport's tests share: an open transport, requests, whole responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from gateway.ports import UpstreamRequest
from gateway.types import EngineKind
from gateway.upstream.registry import Backend
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.transport.exchange import Transport
from gateway.upstream.transport.response import EngineResponse

LARGE_BYTES = 24 * 1024 * 1024
JSON = (("Content-Type", "application/json"),)


@asynccontextmanager
async def opened(
    url: str,
    *,
    engine: EngineKind = EngineKind.VLLM,
    api_key: str | None = None,
    response_timeout_s: float = 10.0,
    idle_timeout_s: float = 10.0,
    keepalive_s: float = 3.0,
    forward_authorization: bool = False,
    lend_affinity: str | None = None,
) -> AsyncIterator[tuple[Transport, Backend]]:
    backend_settings = BackendSettings(url, engine=engine, api_key=api_key, lend_affinity=lend_affinity)
    settings = UpstreamSettings(
        (backend_settings,),
        response_timeout_s=response_timeout_s,
        idle_timeout_s=idle_timeout_s,
        keepalive_s=keepalive_s,
        forward_authorization=forward_authorization,
    )
    transport = Transport(settings)
    await transport.open()
    try:
        yield transport, Backend(backend_settings, settings, lambda: None)
    finally:
        await transport.close()


def post(
    *chunks: bytes | memoryview,
    headers: Sequence[tuple[str, str]] = JSON,
    path: str = "/v1/chat/completions",
    query: str = "",
    method: str = "POST",
) -> UpstreamRequest:
    return UpstreamRequest(method, path, query, headers, chunks, sum(len(chunk) for chunk in chunks))


async def whole(response: EngineResponse) -> bytes:
    received = b""
    while chunk := await response.chunk():
        received += chunk
    response.close()
    return received
