"""Who asked: X-Forwarded-* and Forwarded towards engines, Via both ways, each by setting and off by default.

Decided here: what each choice does to the headers of a request. ``keep`` passes what came, as any header; ``append``
adds this hop behind what came (for a gateway that trusts the proxy before it); ``replace`` believes nobody; ``remove``
tells engines nothing. Not decided here: the client's address (the connection), what engines make of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.types import HeaderList

_FORWARDED = frozenset(
    {"forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-real-ip"}
)


@dataclass(frozen=True, slots=True)
class Hop:
    """This hop, as one request met it. ``peer`` is the address of whoever connected, empty for a Unix socket."""

    peer: str
    scheme: str
    host: str


@dataclass(frozen=True, slots=True)
class Forwarding:
    """The choice of ``server.forwarded_headers`` and the name of ``server.via``."""

    choice: str = "keep"
    via: str | None = None

    def request_headers(self, headers: HeaderList, hop: Hop) -> HeaderList:
        """A request's headers as they go on."""
        made = headers
        if self.choice in {"replace", "remove"}:
            made = [pair for pair in headers if pair[0].lower() not in _FORWARDED]
        if self.choice in {"append", "replace"}:
            made = self._appended(made, hop)
        return made if self.via is None else [*made, ("Via", f"1.1 {self.via}")]

    def response_headers(self) -> HeaderList:
        """What is added to a response."""
        return () if self.via is None else (("Via", f"1.1 {self.via}"),)

    def _appended(self, headers: HeaderList, hop: Hop) -> HeaderList:
        peer = hop.peer or "unknown"
        before = ", ".join(value for name, value in headers if name.lower() == "x-forwarded-for")
        names = {name.lower() for name, _ in headers}
        kept = [pair for pair in headers if pair[0].lower() != "x-forwarded-for"]
        kept.append(("X-Forwarded-For", f"{before}, {peer}" if before else peer))
        # Of scheme and host the first hop knows best.
        if "x-forwarded-proto" not in names:
            kept.append(("X-Forwarded-Proto", hop.scheme))
        if "x-forwarded-host" not in names and hop.host:
            kept.append(("X-Forwarded-Host", hop.host))
        if "forwarded" in names:  # RFC 7239 §4: an element of our own behind those that came
            node = f'"[{peer}]"' if ":" in peer else peer
            kept.append(("Forwarded", f"for={node};proto={hop.scheme}"))
        return kept
