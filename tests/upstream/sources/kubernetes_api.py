"""The part of a Kubernetes API server that lists and watches EndpointSlices, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

PATH = "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"


def endpoint(pod: str, *addresses: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": list(addresses), "conditions": conditions, "targetRef": {"kind": "Pod", "name": pod}}


def endpoint_slice(name: str, *endpoints: dict[str, Any], port: int = 8000, **changes: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "vllm"}},
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    } | changes


@dataclass
class KubernetesApi:
    """``put`` and ``delete`` change slices and tell who watches. ``tokens`` that are accepted: none = anyone's."""

    slices: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    version: int = 100
    page: int = 500
    lists: int = 0
    watches: list[dict[str, str]] = field(default_factory=list)
    shown: list[str | None] = field(default_factory=list)
    refuse_watches_with: int | None = None
    context: ssl.SSLContext | None = None
    _open: set[asyncio.Queue[bytes | None]] = field(default_factory=set)

    async def __aenter__(self) -> KubernetesApi:
        app = web.Application()
        app.router.add_get(PATH, self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.context)
        await site.start()
        self.url = f"{'http' if self.context is None else 'https'}://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end_watches()
        await self._runner.cleanup()

    def put(self, each: dict[str, Any]) -> None:
        self.version += 1
        name = each["metadata"]["name"]
        kind = "MODIFIED" if name in self.slices else "ADDED"
        each["metadata"]["resourceVersion"] = str(self.version)
        self.slices[name] = each
        self.tell(kind, each)

    def delete(self, name: str) -> None:
        self.version += 1
        self.tell("DELETED", self.slices.pop(name))

    def bookmark(self) -> None:
        self.version += 1
        self.tell("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def tell(self, kind: str, item: dict[str, Any]) -> None:
        for queue in self._open:
            queue.put_nowait(json.dumps({"type": kind, "object": item}).encode() + b"\n")

    def end_watches(self) -> None:
        for queue in self._open:
            queue.put_nowait(None)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        shown = request.headers.get("Authorization")
        self.shown.append(shown)
        if self.tokens and shown not in {f"Bearer {token}" for token in self.tokens}:
            return web.json_response({"message": "Unauthorized", "code": 401}, status=401)
        return await (self._watch(request) if "watch" in request.query else self._list(request))

    async def _list(self, request: web.Request) -> web.Response:
        self.lists += 1
        start = int(request.query.get("continue", 0))
        items = list(self.slices.values())
        more = str(start + self.page) if len(items) > start + self.page else ""
        metadata = {"resourceVersion": str(self.version), "continue": more}
        return web.json_response({"items": items[start : start + self.page], "metadata": metadata})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watches.append(dict(request.query))
        if self.refuse_watches_with is not None:
            return web.json_response({"code": self.refuse_watches_with}, status=self.refuse_watches_with)
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._open.add(queue)
        try:
            while (line := await queue.get()) is not None:
                await response.write(line)
        finally:
            self._open.discard(queue)
        return response
