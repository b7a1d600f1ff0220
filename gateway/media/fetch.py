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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from gateway.errors import BadMedia, SourceBlocked, SourceFailed, SourceTooLarge
from gateway.media import netguard

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Codings that leave the bytes as they are; aws-chunked is a left-over of uploads that S3 hands out with the object.
_PLAIN_CODINGS = frozenset({"", "identity", "aws-chunked"})


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How remote images are fetched.

    ``public_networks`` (CIDR) are declared public although the registries say otherwise: an origin in the operator's
    own network. ``static_hosts`` answers names without DNS (split-horizon names, tests): each value lists successive
    answers, the last one repeats.
    """

    total_timeout_s: float = 5.0
    max_redirects: int = 3
    max_concurrent: int = 64
    user_agent: str = "vlm-gateway/1 (image fetcher)"
    public_networks: tuple[str, ...] = ()
    static_hosts: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


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
        infos = await asyncio.get_running_loop().getaddrinfo(host, None, family=family, type=socket.SOCK_STREAM)
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

    async def start(self) -> None:
        """Open the client. No connection is kept between fetches, so none is shared between tenants."""
        resolver = _GuardedResolver(self._settings)
        connector = aiohttp.TCPConnector(
            resolver=resolver,
            socket_factory=resolver.socket_for,
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
        hosts: Sequence[str] | None,
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
        limit_s = min(deadline_s, asyncio.get_running_loop().time() + self._settings.total_timeout_s)
        try:
            async with asyncio.timeout_at(limit_s), self._slots:
                return await self._follow(target, hosts, max_bytes, take)
        except TimeoutError:
            raise SourceFailed("The image did not arrive in time from its address.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if _blocked(error):
                raise SourceBlocked(detail=repr(error)) from None
            raise SourceFailed(detail=repr(error)) from None

    async def _follow(
        self, target: netguard.Target, hosts: Sequence[str] | None, max_bytes: int, take: Callable[[int], None]
    ) -> bytes:
        for _ in range(self._settings.max_redirects + 1):
            self._check(target, hosts)
            answer = await self._get(target, max_bytes, take)
            if isinstance(answer, bytes):
                return answer
            target = answer
        raise SourceFailed("The image's address redirects too often.")

    def _check(self, target: netguard.Target, hosts: Sequence[str] | None) -> None:
        if hosts is not None and not netguard.host_allowed(target.host, hosts):
            raise SourceBlocked(detail="a host that the policy does not list")
        if target.address is not None and not netguard.is_public(target.address, self._public):
            raise SourceBlocked(detail="an address that is not public")

    async def _get(
        self, target: netguard.Target, max_bytes: int, take: Callable[[int], None]
    ) -> bytes | netguard.Target:
        """One hop: the image's bytes, or where a redirect points."""
        assert self._session is not None, "start() first"
        # Built from its parts: the client then sends the target as it is, an empty query and dots included.
        url = URL.build(scheme=target.scheme, host=target.host, port=target.port, path=target.raw_target, encoded=True)
        async with self._session.get(url, allow_redirects=False) as response:
            if response.status in _REDIRECTS:
                return _redirected(target, response.headers.get("Location"))
            if response.status != 200:
                raise SourceFailed(f"The image's address answered with status {response.status}.")
            if response.headers.get("Content-Encoding", "").strip().lower() not in _PLAIN_CODINGS:
                raise SourceFailed("The image's address answered with a content coding nobody asked for.")
            if (response.content_length or 0) > max_bytes:
                raise SourceTooLarge(f"The image at this address is larger than {max_bytes} bytes.")
            return await _read(response.content, max_bytes, take)


async def _read(content: aiohttp.StreamReader, max_bytes: int, take: Callable[[int], None]) -> bytes:
    chunks: list[bytes] = []
    byte_count = 0
    while chunk := await content.readany():
        byte_count += len(chunk)
        if byte_count > max_bytes:
            raise SourceTooLarge(f"The image at this address is larger than {max_bytes} bytes.")
        take(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


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
