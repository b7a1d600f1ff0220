"""Who sends a request: a program, a page of our own, or a page of somebody else's in its visitor's browser.

Decided here: how the three are told apart. A browser reaches what its user reaches (loopback, the office), and sends a
page's POST or opens its WebSocket without asking the server first; it adds headers that the page cannot take away. Not
decided here: which requests are refused for it.

Sources: the Fetch standard (`Origin`; `Sec-Fetch-Site`, sent to https and loopback only), RFC 6455 §10.2.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

_OURS = {"none", "same-origin"}


def is_of_host(origin: str, host: str) -> bool:
    """Whether a page of ``origin`` (``https://host:port``) came from the server that a request names in ``Host``."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:  # no address, and from no browser
        return False


def is_foreign_page(origin: str | None, fetch_site: str | None, host: str) -> bool:
    """Whether a browser sends it for a page of another site; never so of a program, which sends neither header."""
    if fetch_site is not None and fetch_site not in _OURS:
        return True
    return origin is not None and not is_of_host(origin, host)


def may_be_rebound(origin: str | None, host: str) -> bool:
    """Whether a page could have come under ``host`` by DNS rebinding: a name that somebody made lead here.

    An address, and the name localhost, cannot be made to lead elsewhere.
    """
    if origin is None:
        return False
    name = ""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        ip_address(name)
    except ValueError:
        return name != "localhost" and not name.endswith(".localhost")
    return False
