"""Remote images: the only place that connects to where a client points.

Decided here: how one image is fetched so that it cannot reach what is not public, cannot cost more bytes or time than
allowed, and tells the origin nothing about the client. Not decided here: which addresses are public (``netguard``),
which hosts a policy allows, and what the bytes are.

Each hop resolves its name once, and the connection goes to the addresses that were checked; the address is checked once
more where the socket is made. Private addresses get one uniform refusal, whether or not anything listens there.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from gateway.errors import BadMedia, GatewayError, Rejected, SourceBlocked, SourceFailed, SourceTooLarge
from gateway.media import netguard
from gateway.media.cache import SingleFlight, Work
from gateway.media.kept_files import Kept, KeptFiles
from gateway.media.room import REQUEST_RULE

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NOT_MODIFIED = 304
_LOOPBACK = "127.0.0.1"
_NOT_IN_TIME = "The image did not arrive in time from its address."
# Codings that leave the bytes as they are; aws-chunked is a left-over of uploads that S3 hands out with the object.
_PLAIN_CODINGS = frozenset({"", "identity", "aws-chunked"})

# How a fetch ended, by the code of its error; any other is a limit's.
_RESULTS = {SourceBlocked.code: "blocked", SourceFailed.code: "failed", SourceTooLarge.code: "too_large"}

_FlightKey = tuple[str, str, tuple[str, ...] | None, int]


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How remote images are fetched.

    ``public_networks`` (CIDR) are declared public although the registries say otherwise: an origin in the operator's
    own network. ``static_hosts`` answers names without DNS (split-horizon names, tests): each value lists successive
    answers, the last one repeats. ``ca_file`` (PEM) adds to the system's authorities. ``cache_bytes`` of fetched files
    are kept, each at most ``cache_max_age_s`` without asking its origin; 0 keeps none.
    """

    total_timeout_s: float = 5.0
    max_redirects: int = 3
    max_concurrent: int = 64
    user_agent: str = "vlm-gateway/1 (image fetcher)"
    cache_bytes: int = 64 * 1024 * 1024
    cache_max_age_s: float = 300.0
    ca_file: str | None = None
    public_networks: tuple[str, ...] = ()
    static_hosts: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetchFacts:
    """For whoever counts: what kept files take, and fetches by how they ended."""

    kept_bytes: int
    results: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Asked:
    """On whose behalf a file is fetched, and what it may cost."""

    tenant: str
    hosts: tuple[str, ...] | None
    max_bytes: int
    take: Callable[[int], None]

    def check(self, byte_count: int) -> None:
        """Raises SourceTooLarge above the limit."""
        if byte_count > self.max_bytes:
            raise SourceTooLarge(f"The image at this address is larger than {self.max_bytes} bytes.")

    def admit(self, file: bytes) -> bytes:
        """A file that is there already counts like one that has just come."""
        self.check(len(file))
        self.take(len(file))
        return file


class _BlockedError(OSError):
    """Raised inside the HTTP client, which lets only OSError through its connecting code."""


class _GuardedResolver(AbstractResolver):
    """Answers only with addresses that may be dialled; one that may not spoils the whole answer."""

    def __init__(self, settings: FetchSettings) -> None:
        self._public = netguard.networks(settings.public_networks)
        self._static = {name.lower(): answers for name, answers in settings.static_hosts.items()}
        self._asked: dict[str, int] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = await self._addresses(host, family)
        if not addresses:
            raise OSError("the name has no address")
        if not all(netguard.is_public(address, self._public) for address in addresses):
            raise _BlockedError("an address that is not public")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def _addresses(self, host: str, family: socket.AddressFamily) -> list[str]:
        name = host.lower().removesuffix(".")
        answers = self._static.get(name)
        if answers is not None:
            nth = self._asked.get(name, 0)
            self._asked[name] = nth + 1
            return list(answers[min(nth, len(answers) - 1)])
        try:
            infos = await asyncio.get_running_loop().getaddrinfo(host, None, family=family, type=socket.SOCK_STREAM)
        except OSError:
            if not netguard.is_this_machine(name):
                raise
            return [_LOOPBACK]
        return list(dict.fromkeys(str(info[4][0]) for info in infos))

    def socket_for(self, info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        """Make the socket for one address, at the last moment at which it can still be refused."""
        family, kind, proto, _, address = info
        if not netguard.is_public(str(address[0]), self._public):
            raise _BlockedError("an address that is not public")
        return socket.socket(family, kind, proto)

    async def close(self) -> None:
        """Holds nothing."""


class Fetcher:
    """Fetches images. ``start`` and ``stop`` frame its life; ``fetch`` may be cancelled at any time."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._public = netguard.networks(settings.public_networks)
        self._slots = asyncio.Semaphore(settings.max_concurrent)
        self._session: aiohttp.ClientSession | None = None
        self._kept = KeptFiles(settings.cache_bytes, settings.cache_max_age_s)
        self._flights: SingleFlight[_FlightKey, bytes] = SingleFlight(_is_about_the_file)
        self._results = dict.fromkeys(("ok", *_RESULTS.values(), "refused"), 0)

    def facts(self) -> FetchFacts:
        """Cheap, in any thread."""
        return FetchFacts(self._kept.held_bytes, self._results)

    async def start(self) -> None:
        """Open the client. No connection is kept between fetches, so none is shared between tenants.

        Raises ValueError for a ``ca_file`` that cannot be used.
        """
        resolver = _GuardedResolver(self._settings)
        connector = aiohttp.TCPConnector(
            resolver=resolver,
            socket_factory=resolver.socket_for,
            ssl=_trust(self._settings.ca_file),
            use_dns_cache=False,
            force_close=True,
            limit=self._settings.max_concurrent,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "image/*", "Accept-Encoding": "identity", "User-Agent": self._settings.user_agent},
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            trust_env=False,
        )

    async def stop(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def fetch(
        self,
        url: str,
        *,
        tenant: str,
        hosts: tuple[str, ...] | None,
        max_bytes: int,
        deadline_s: float,
        take: Callable[[int], None],
    ) -> bytes:
        """The bytes behind a URL, at most ``max_bytes``.

        ``hosts`` None = any public host. ``deadline_s`` is a moment of the loop's clock (monotonic seconds); the
        settings' total time counts as well, over all hops. ``take`` is told of all bytes before they are kept, and may
        raise. Raises BadMedia (no http(s) URL), SourceBlocked (not public, not allowed), SourceTooLarge, SourceFailed
        (anything else that went wrong).
        """
        target = netguard.parse_target(url)
        asked = _Asked(tenant, hosts, max_bytes, take)
        leads = False

        def begin() -> Work[bytes]:
            nonlocal leads
            leads = True
            return Work(self._counted(target, asked, deadline_s), _hold_nothing)

        key = (tenant, target.url, hosts, max_bytes)
        try:
            # Whoever joins has a deadline of its own, and the time of the one who began counts for all.
            async with asyncio.timeout_at(deadline_s):
                file = await self._flights.get(key, begin)
        except TimeoutError:
            raise SourceFailed(_NOT_IN_TIME) from None
        if not leads:
            take(len(file))
        return file

    async def _counted(self, target: netguard.Target, asked: _Asked, deadline_s: float) -> bytes:
        try:
            file = await self._fetch(target, asked, deadline_s)
        except GatewayError as error:
            self._results[_RESULTS.get(error.code, "refused")] += 1
            raise
        self._results["ok"] += 1
        return file

    async def _fetch(self, target: netguard.Target, asked: _Asked, deadline_s: float) -> bytes:
        limit_s = min(deadline_s, asyncio.get_running_loop().time() + self._settings.total_timeout_s)
        try:
            async with asyncio.timeout_at(limit_s), self._slots:
                return await self._follow(target, asked)
        except TimeoutError:
            raise SourceFailed(_NOT_IN_TIME) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if _blocked(error):
                raise SourceBlocked(detail=repr(error)) from None
            raise SourceFailed(detail=repr(error)) from None

    async def _follow(self, target: netguard.Target, asked: _Asked) -> bytes:
        for _ in range(self._settings.max_redirects + 1):
            self._check(target, asked.hosts)
            answer = await self._hop(target, asked)
            if isinstance(answer, bytes):
                return answer
            target = answer
        raise SourceFailed("The image's address redirects too often.")

    async def _hop(self, target: netguard.Target, asked: _Asked) -> bytes | netguard.Target:
        """One hop: the image's bytes, kept or fetched, or where a redirect points."""
        key = (asked.tenant, target.url)
        kept = self._kept.get(key)
        now_s = asyncio.get_running_loop().time()
        if kept is not None and kept.is_fresh(now_s):
            return asked.admit(kept.file)
        answer, headers = await self._get(target, asked, kept)
        if answer is None:
            assert kept is not None, "only a conditional request is answered with 304"
            file = asked.admit(kept.file)
            self._kept.renew(key, kept, headers, now_s)
            return file
        if isinstance(answer, bytes):
            self._kept.put(key, answer, headers, now_s)
        return answer

    def _check(self, target: netguard.Target, hosts: tuple[str, ...] | None) -> None:
        if hosts is not None and not netguard.host_allowed(target.host, hosts):
            raise SourceBlocked(detail="a host that the policy does not list")
        if target.address is not None and not netguard.is_public(target.address, self._public):
            raise SourceBlocked(detail="an address that is not public")

    async def _get(
        self, target: netguard.Target, asked: _Asked, kept: Kept | None
    ) -> tuple[bytes | netguard.Target | None, Mapping[str, str]]:
        """Ask one origin once: its file, a redirect's target, or ``None`` (not changed); and the answer's headers."""
        assert self._session is not None, "start() first"
        # Built from its parts: the client then sends the target as it is, an empty query and dots included.
        url = URL.build(scheme=target.scheme, host=target.host, port=target.port, path=target.raw_target, encoded=True)
        conditions = {} if kept is None else kept.conditions()
        async with self._session.get(url, allow_redirects=False, headers=conditions) as response:
            headers = response.headers
            if response.status in _REDIRECTS:
                return _redirected(target, headers.get("Location")), headers
            if response.status == _NOT_MODIFIED and conditions:
                return None, headers
            if response.status != 200:
                raise SourceFailed(f"The image's address answered with status {response.status}.")
            if headers.get("Content-Encoding", "").strip().lower() not in _PLAIN_CODINGS:
                raise SourceFailed("The image's address answered with a content coding nobody asked for.")
            asked.check(response.content_length or 0)
            return await _read(response.content, asked), headers


async def _read(content: aiohttp.StreamReader, asked: _Asked) -> bytes:
    chunks: list[bytes] = []
    byte_count = 0
    while chunk := await content.readany():
        byte_count += len(chunk)
        asked.check(byte_count)
        asked.take(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


def _trust(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        if ca_file is not None:
            context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"fetch.ca_file: {ca_file} holds no authorities that can be read ({error})") from None
    return context


def _hold_nothing() -> None:
    """A fetch holds only what it gives up by ending."""


def _is_about_the_file(error: GatewayError) -> bool:
    """Whether everybody who waits for this file would meet the same; one request's or the process's room is no such."""
    return isinstance(error, Rejected) and error.rule != REQUEST_RULE


def _redirected(target: netguard.Target, location: str | None) -> netguard.Target:
    """Where a redirect points. Header bytes beyond ASCII are percent-encoded as they are, whatever they mean."""
    if not location:
        raise SourceFailed("The image's address redirects to nowhere.")
    raw = location.encode("utf-8", "surrogateescape")
    spelt = "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)
    try:
        return netguard.parse_target(urljoin(target.url, spelt))
    except (BadMedia, ValueError) as error:
        if isinstance(error, SourceBlocked):
            raise
        raise SourceBlocked(detail="a redirect to something that is no http(s) URL") from None


def _blocked(error: BaseException) -> bool:
    """Whether our own refusal is what made the client give up."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, _BlockedError) or isinstance(getattr(seen, "os_error", None), _BlockedError):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
