"""Which addresses images may be fetched from, and what a URL asks for, byte by byte.

Decided here: public or not, for every spelling of an address; the host, port and raw request target of a URL; whether a
host is on an allow-list. Not decided here: resolving and dialling (``fetch``), which asks here at every hop.

Sources: IANA's special-purpose registries for IPv4 and IPv6 (RFC 6890 and its successors), RFC 6052 (NAT64),
RFC 3056 (6to4), RFC 4380 (Teredo); the WHATWG URL standard for which hosts are numbers in disguise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from gateway.errors import BadMedia, SourceBlocked

Address: TypeAlias = "IPv4Address | IPv6Address"
Network: TypeAlias = "IPv4Network | IPv6Network"

_CLOSED_V4 = tuple(
    IPv4Network(each)
    for each in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, and metadata of some clouds
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's wire server: looks public, answers from inside
        "169.254.0.0/16",  # link-local, and metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Everything else of IPv6 is closed: mapped, compatible, NAT64, discard, SRv6, unique local, link-local, multicast.
_OPEN_V6 = IPv6Network("2000::/3")
_CLOSED_V6 = tuple(
    IPv6Network(each)
    for each in (
        "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
_LAST_32_BITS_ARE_V4 = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))  # compatible, NAT64


def networks(declared: Iterable[str]) -> tuple[Network, ...]:
    """Networks in CIDR notation. Raises ValueError naming one that is none."""
    return tuple(ip_network(each) for each in declared)


def is_public(address: str | Address, extra_public: Sequence[Network] = ()) -> bool:
    """Whether an address may be connected to. ``extra_public`` opens networks of the operator's own.

    An IPv6 address that carries an IPv4 one is open only if it lies in ``extra_public`` and the one carried is open.
    """
    try:
        parsed = ip_address(address) if isinstance(address, str) else address
    except ValueError:
        return False
    declared = any(parsed.version == network.version and parsed in network for network in extra_public)
    if isinstance(parsed, IPv4Address):
        return declared or not any(parsed in network for network in _CLOSED_V4)
    if parsed.scope_id is not None:
        return False
    carried = _carried(parsed)
    if carried is not None:
        return declared and is_public(carried, extra_public)
    return declared or (parsed in _OPEN_V6 and not any(parsed in network for network in _CLOSED_V6))


def _carried(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that traffic to this one ends at."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _LAST_32_BITS_ARE_V4):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL asks for. ``host`` is ASCII in lower case, an IPv6 address without brackets.

    ``raw_target`` is the request target as it goes over the wire: percent-encodings, empty and repeated query keys as
    they were written. ``address`` is set where the host is an address.
    """

    scheme: str
    host: str
    port: int
    raw_target: str
    address: Address | None = None

    @property
    def url(self) -> str:
        """The URL without user, default port and fragment, for resolving a relative redirect."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.raw_target}"


_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL_CHARS = 8192
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$")
_DOTTED_QUAD = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")

_NOT_IN_URIS = re.compile(r"""[^\x21-\x7e]|["<>\\^`{|}]|%(?![0-9A-Fa-f]{2})""")

_NOT_A_URL = "The image's address is not a valid URL."


def parse_target(url: str) -> Target:
    """Take an http(s) URL apart without changing what it asks for.

    What no URI may hold as it is (RFC 3986 §2: a space, ``"<>\\^`{|}``, a percent sign that begins no encoding,
    characters beyond ASCII as UTF-8) is percent-encoded; the fragment is dropped. Raises BadMedia (another scheme,
    control characters, a user name, no valid host or port) and SourceBlocked (a host that is a number in disguise:
    decimal, hexadecimal, octal, shortened).
    """
    if _CONTROL.search(url) or len(url) > _MAX_URL_CHARS:
        raise BadMedia(_NOT_A_URL)
    url = url.strip(" ")
    scheme_match = _SCHEME.match(url)
    scheme = scheme_match[1].lower() if scheme_match else ""
    if scheme not in _DEFAULT_PORTS:
        raise BadMedia("Images come as data URLs or from http and https addresses only.")
    rest = url[len(scheme) + 1 :]
    if not rest.startswith("//"):
        raise BadMedia(_NOT_A_URL)
    authority, raw_target = _split(rest[2:].partition("#")[0])
    if "@" in authority:
        raise BadMedia("The image's address must not hold a user name or password.")
    host, port = _host_and_port(authority, _DEFAULT_PORTS[scheme])
    name, address = _host(host)
    return Target(scheme, name, port, _wire(raw_target), address)


def _split(rest: str) -> tuple[str, str]:
    """Authority and request target."""
    end = next((i for i, character in enumerate(rest) if character in "/?"), len(rest))
    target = rest[end:]
    return rest[:end], target if target.startswith("/") else f"/{target}"


def _host_and_port(authority: str, default_port: int) -> tuple[str, int]:
    if authority.startswith("["):
        host, bracket, rest = authority.partition("]")
        if not bracket:
            raise BadMedia(_NOT_A_URL)
        host += bracket
    else:
        host, colon, digits = authority.partition(":")
        rest = colon + digits
    if not rest or rest == ":":
        return host, default_port
    digits = rest[1:]
    if not (rest.startswith(":") and digits.isascii() and digits.isdigit() and len(digits) <= 5):
        raise BadMedia(_NOT_A_URL)
    port = int(digits)
    if not 0 < port <= 65_535:
        raise BadMedia(_NOT_A_URL)
    return host, port


def _host(host: str) -> tuple[str, Address | None]:
    if host.startswith("["):
        if "%" in host:  # a zone means something on the machine that wrote it alone
            raise BadMedia(_NOT_A_URL)
        try:
            address = IPv6Address(host[1:-1])
        except ValueError:
            raise BadMedia(_NOT_A_URL) from None
        return str(address), address
    try:
        # The codec also maps full-width digits and dots to ASCII, so a disguised number shows itself.
        name = host.lower() if host.isascii() else host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise BadMedia(_NOT_A_URL) from None
    if _HOST_NAME.fullmatch(name) is None or len(name) > 254:
        raise BadMedia(_NOT_A_URL)
    if not _ENDS_IN_NUMBER.search(name):
        return name, None
    try:
        return (name, IPv4Address(name)) if _DOTTED_QUAD.fullmatch(name) else _disguised()
    except ValueError:
        raise BadMedia(_NOT_A_URL) from None


def _disguised() -> tuple[str, Address | None]:
    raise SourceBlocked(detail="a host that is a number in disguise")


def _wire(target: str) -> str:
    """Percent-encode what is no part of any URI, as clients' own libraries do, and nothing else.

    Strict servers answer 400 to such characters; encoded they mean the same to all.
    """
    if _NOT_IN_URIS.search(target) is None:
        return target
    try:
        target.encode("utf-8")
    except UnicodeEncodeError:
        raise BadMedia(_NOT_A_URL) from None
    return _NOT_IN_URIS.sub(_percent_encoded, target)


def _percent_encoded(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8"))


def is_this_machine(name: str) -> bool:
    """Whether a name (lower case, no final dot) means loopback, known to a resolver or not: RFC 6761 §6.3."""
    return name == "localhost" or name.endswith(".localhost")


def host_allowed(host: str, patterns: Sequence[str]) -> bool:
    """Whether a host matches an allow-list: a name exactly, or ``*.example.com`` for every name below it."""
    name = host.lower().removesuffix(".")
    for pattern in patterns:
        wanted = pattern.lower().removesuffix(".")
        if wanted.startswith("*.") and name.endswith(wanted[1:]) and len(name) > len(wanted) - 1:
            return True
        if name == wanted:
            return True
    return False
