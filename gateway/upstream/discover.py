"""Ask a backend what it is: one round of small GETs, answered or not within the client's time limit.

Not on the path of any request. An engine that answers chat completions only is ``generic`` and serves whatever model
it is asked for; one that does not answer at all raises Unanswered.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress

import httpx

from gateway.types import EngineKind
from gateway.upstream.engines import asked_paths, engine_of, recognise
from gateway.upstream.engines.contract import Engine, EngineFacts
from gateway.upstream.settings import BackendSettings
from gateway.upstream.tls import TlsContexts

# A document of facts is a few hundred kilobytes at most (vLLM's metrics); more is not what we asked for.
_DOCUMENT_LIMIT_BYTES = 8 * 1024 * 1024


def probe_client(
    timeout_s: float, context: ssl.SSLContext | None = None, unix_path: str | None = None
) -> httpx.AsyncClient:
    """A client for probes. It keeps no connection: one the engine has closed would be a false alarm."""
    limits = httpx.Limits(max_keepalive_connections=0)
    verify = True if context is None and unix_path is None else context or False
    return httpx.AsyncClient(
        timeout=timeout_s,
        trust_env=False,
        follow_redirects=False,
        transport=httpx.AsyncHTTPTransport(verify=verify, limits=limits, uds=unix_path, trust_env=False),
    )


class ProbeClients:
    """One client for all engines of http, one for each set of certificate files or socket; closed together."""

    def __init__(self, timeout_s: float, contexts: TlsContexts) -> None:
        self._timeout_s = timeout_s
        self._contexts = contexts
        self._made: dict[tuple[ssl.SSLContext | None, str | None], httpx.AsyncClient] = {}

    def of(self, settings: BackendSettings) -> httpx.AsyncClient:
        """Raises ValueError for certificate files that cannot be used."""
        key = (self._contexts.of(settings) if settings.is_https else None, settings.unix_path)
        client = self._made.get(key)
        if client is None:
            client = self._made[key] = probe_client(self._timeout_s, *key)
        return client

    async def close(self) -> None:
        """No probe may be under way."""
        await asyncio.gather(*(client.aclose() for client in self._made.values()))


class Unanswered(Exception):
    """No HTTP answer. ``refused`` tells that nothing listens there, else it was slow or broke off."""

    def __init__(self, detail: str, *, refused: bool) -> None:
        self.refused = refused
        super().__init__(detail)


async def fetch(
    client: httpx.AsyncClient, settings: BackendSettings, path: str, *, timeout_s: float | None = None
) -> tuple[int, bytes]:
    """One GET with the backend's key: status and body. Raises Unanswered."""
    headers = {} if settings.api_key is None else {"Authorization": f"Bearer {settings.api_key}"}
    try:
        async with client.stream(
            "GET",
            settings.root + path,
            headers=headers,
            extensions=_sni(settings),
            timeout=httpx.USE_CLIENT_DEFAULT if timeout_s is None else timeout_s,
        ) as response:
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _DOCUMENT_LIMIT_BYTES:
                    raise Unanswered(f"{path}: the answer does not end", refused=False)
            return response.status_code, bytes(body)
    except httpx.ConnectError as error:
        raise Unanswered(f"{path}: {error}", refused=True) from error
    except httpx.HTTPError as error:
        raise Unanswered(f"{path}: {type(error).__name__}", refused=False) from error


def _sni(settings: BackendSettings) -> dict[str, str] | None:
    return None if settings.tls_server_name is None else {"sni_hostname": settings.tls_server_name}


async def discover(client: httpx.AsyncClient, settings: BackendSettings) -> tuple[Engine, EngineFacts]:
    """Engine and facts of one backend. Raises Unanswered when not a single path got an answer.

    An engine that nobody has named is first asked who it is: no engine gets another one's costly questions.
    """
    documents: dict[str, bytes] = {}
    if settings.engine != "auto":
        engine = engine_of(EngineKind(settings.engine))
        await _ask(client, settings, engine.facts_paths, documents)
        return engine, engine.facts(documents)
    await _ask(client, settings, asked_paths(), documents)
    engine = recognise(documents)
    further = tuple(path for path in engine.facts_paths if path not in asked_paths())
    if further:
        with suppress(Unanswered):  # it answers: a document that takes too long tells nothing this time
            await _ask(client, settings, further, documents)
    return engine, engine.facts(documents)


async def _ask(
    client: httpx.AsyncClient, settings: BackendSettings, paths: Sequence[str], documents: dict[str, bytes]
) -> None:
    """Put what exists of these paths into ``documents``. Raises Unanswered when none got an answer."""
    # One goes ahead: where nobody listens that is enough to know it, and a fleet may have hundreds of those.
    first, *others = paths
    answers = [await _answer(client, settings, first)]
    if not (isinstance(answers[0], Unanswered) and answers[0].refused):
        answers += await asyncio.gather(*(_answer(client, settings, path) for path in others))
    for path, answer in zip(paths, answers, strict=False):
        if not isinstance(answer, Unanswered) and answer[0] == httpx.codes.OK:
            documents[path] = answer[1]
    failures = [answer for answer in answers if isinstance(answer, Unanswered)]
    if len(failures) == len(answers):
        raise failures[0]


async def _answer(client: httpx.AsyncClient, settings: BackendSettings, path: str) -> tuple[int, bytes] | Unanswered:
    try:
        return await fetch(client, settings, path)
    except Unanswered as failure:
        return failure
