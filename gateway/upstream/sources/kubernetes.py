"""Backends of a Kubernetes Service: its EndpointSlices, listed once and then watched, over plain HTTP.

Decided here: the life of list and watch. A list gives everything and a version; a watch from that version gives
changes, and bookmarks that move it on; 410 Gone, an error or a lost connection lead back to a list. The token is read
anew for each call and the authorities whenever their file changed, since a cluster rotates both. Not decided here:
what a slice means (``slices``), what is believed (``membership``).
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from gateway.upstream.engines.reading import JsonValue, inner_object, json_object, words
from gateway.upstream.settings import Found
from gateway.upstream.sources.slices import endpoints
from gateway.upstream.sources.template import Template

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CALL_S = 10.0
# The server ends a watch after this; a connection that died in silence is noticed soon after.
_WATCH_S = 60
_SHORT_WATCH_S = 1.0
_PAGE = 500
_LINE_LIMIT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the API is and how it is spoken to."""

    api_server: str
    token_file: Path | None
    ca_file: Path | None

    @staticmethod
    def around() -> Cluster | None:
        """The cluster we run in, by what it puts into every pod; ``None`` outside of one."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            return None
        place = f"[{host}]" if ":" in host else host
        return Cluster(f"https://{place}:{port}", SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which slices, and which of their ports (name or number; empty = the only one)."""

    namespace: str
    selector: str
    port: str = ""

    @property
    def path(self) -> str:
        return f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"


class Gone(Exception):
    """The version is too old to watch from: list again."""


class Unavailable(Exception):
    """The API did not do what was asked, with the reason."""


class KubernetesSource:
    """``again_s``: how long after a failure the API is asked again."""

    def __init__(self, cluster: Cluster, selection: Selection, template: Template, again_s: float) -> None:
        self._cluster = cluster
        self._selection = selection
        self._template = template
        self._again_s = again_s
        self._slices: dict[str, dict[str, JsonValue]] = {}

    async def watch(self, found: Callable[[Found], None], failed: Callable[[str], None]) -> None:
        while True:
            try:
                async with self._client() as client:
                    version = await self._list(client, found)
                    while True:
                        version = await self._paced(self._follow(client, version, found))
            except Gone:
                continue
            except (Unavailable, httpx.HTTPError, OSError, ValueError) as error:
                failed(str(error) or type(error).__name__)
            await asyncio.sleep(self._again_s * (0.5 + random.random()))  # noqa: S311 - so that replicas come one by one

    async def _paced(self, watch: Coroutine[None, None, str]) -> str:
        """A watch that ends at once is not begun again at once."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        version = await watch
        if loop.time() - began_s < _SHORT_WATCH_S:
            await asyncio.sleep(min(self._again_s, _SHORT_WATCH_S))
        return version

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Made anew for each list, so that rotated authorities are taken up."""
        verify: bool | ssl.SSLContext = True
        if self._cluster.ca_file is not None:
            verify = await asyncio.to_thread(ssl.create_default_context, cafile=str(self._cluster.ca_file))
        async with httpx.AsyncClient(
            base_url=self._cluster.api_server, verify=verify, trust_env=False, follow_redirects=False, timeout=_CALL_S
        ) as client:
            yield client

    async def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self._cluster.token_file is not None:
            token = await asyncio.to_thread(self._cluster.token_file.read_text, encoding="utf-8")
            headers["Authorization"] = f"Bearer {_one_word(token.strip())}"
        return headers

    async def _list(self, client: httpx.AsyncClient, found: Callable[[Found], None]) -> str:
        """Everything; returns the version from which to watch."""
        slices: dict[str, dict[str, JsonValue]] = {}
        page = ""
        while True:
            query = {"labelSelector": self._selection.selector, "limit": str(_PAGE)} | (
                {"continue": page} if page else {}
            )
            answer = await client.get(self._selection.path, params=query, headers=await self._headers())
            try:
                _check(answer)
            except Gone:  # a page of a list that took too long; from the beginning, but not at once
                raise Unavailable("list: expired on the way") from None
            document = json_object(answer.content)
            items = document.get("items")
            if not isinstance(items, list):
                raise Unavailable(f"{self._selection.path}: the answer is no list")
            slices |= {_name(item): item for entry in items if (item := inner_object(entry))}
            metadata = inner_object(document.get("metadata"))
            page = words(metadata.get("continue")) or ""
            if not page:
                break
        self._slices = slices
        self._tell(found)
        return words(metadata.get("resourceVersion")) or ""

    async def _follow(self, client: httpx.AsyncClient, version: str, found: Callable[[Found], None]) -> str:
        """Changes until the server ends the watch; returns the version from which to go on."""
        query = {
            "labelSelector": self._selection.selector, "watch": "1", "resourceVersion": version,
            "allowWatchBookmarks": "true", "timeoutSeconds": str(_WATCH_S),
        }  # fmt: skip
        limits = httpx.Timeout(_CALL_S, read=_WATCH_S + _CALL_S)
        async with client.stream(
            "GET", self._selection.path, params=query, headers=await self._headers(), timeout=limits
        ) as answer:
            if answer.status_code != httpx.codes.OK:
                await answer.aread()
                _check(answer)
            async for line in _lines(answer):
                version = self._apply(line, found) or version
        return version

    def _apply(self, line: bytes, found: Callable[[Found], None]) -> str | None:
        event = json_object(line)
        item = inner_object(event.get("object"))
        match event.get("type"):
            case "ADDED" | "MODIFIED":
                self._slices[_name(item)] = item
                self._tell(found)
            case "DELETED":
                self._slices.pop(_name(item), None)
                self._tell(found)
            case "ERROR":
                if item.get("code") == httpx.codes.GONE:
                    raise Gone
                raise Unavailable(f"watch: {words(item.get('message')) or 'failed'}")
            case _:
                pass  # BOOKMARK: its version alone is news
        return words(inner_object(item.get("metadata")).get("resourceVersion"))

    def _tell(self, found: Callable[[Found], None]) -> None:
        listed = endpoints(self._slices.values(), self._selection.port)
        found([self._template.at(each.host, each.port, each.name, options=each.options) for each in listed])


def _one_word(token: str) -> str:
    """The token, where a header can hold it: the HTTP client would quote any other in its refusal, for the log."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Unavailable("token_file: does not hold one token")
    return token


def _name(item: dict[str, JsonValue]) -> str:
    return words(inner_object(item.get("metadata")).get("name")) or ""


def _check(answer: httpx.Response) -> None:
    """Raises Gone or Unavailable for anything but success."""
    if answer.status_code == httpx.codes.GONE:
        raise Gone
    if answer.status_code != httpx.codes.OK:
        told = words(json_object(answer.content).get("message")) or answer.reason_phrase
        raise Unavailable(f"{answer.request.url.path}: {answer.status_code}: {told}")


async def _lines(answer: httpx.Response) -> AsyncIterator[bytes]:
    """The lines of a watch; the last one may be cut off and is then no event."""
    rest = b""
    async for piece in answer.aiter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > _LINE_LIMIT_BYTES:
            raise Unavailable("watch: an event does not end")
        for line in whole:
            if line.strip():
                yield line
