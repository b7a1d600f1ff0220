"""Cross-origin requests from browsers (the Fetch standard's CORS protocol), answered by the gateway where configured.

Decided here: which origins may read answers, and what a preflight is told; a backend's own ``Access-Control-*`` are
then replaced, since it knows neither our origins nor our headers. Not decided here: who may call at all: a preflight
carries no key and reaches no backend.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.types import HeaderList

_PREFIX = "access-control-"
# The Fetch standard's safelist: readable without being named.
_SAFELISTED = frozenset(
    {"cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma"}
)
# Never readable by scripts, or of the connection.
_HIDDEN = frozenset({"set-cookie", "vary", "date", "server", "transfer-encoding", "connection", "via"})


@dataclass(frozen=True, slots=True)
class Cors:
    """``origins`` as browsers send them (``https://host``), or ``*`` alone for all; ``credentials`` allows cookies."""

    origins: frozenset[str]
    credentials: bool = False
    max_age_s: int = 600

    def allows(self, origin: str) -> bool:
        """Whether a page of this origin may call."""
        return bool(self._allowed(origin))

    def _allowed(self, origin: str) -> HeaderList:
        if "*" in self.origins and not self.credentials:
            return (("Access-Control-Allow-Origin", "*"),)
        if origin not in self.origins:
            return ()
        own = (("Access-Control-Allow-Origin", origin),)
        return (*own, ("Access-Control-Allow-Credentials", "true")) if self.credentials else own

    @property
    def _vary(self) -> HeaderList:
        return () if "*" in self.origins and not self.credentials else (("Vary", "Origin"),)

    def preflight(self, headers: HeaderList, methods: Iterable[str]) -> HeaderList | None:
        """The headers of a preflight's answer (204); ``None`` for an OPTIONS request that is none."""
        origin, wanted = _value(headers, "origin"), _value(headers, "access-control-request-method")
        if origin is None or wanted is None:
            return None
        vary = [*self._vary, ("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")]
        allowed = self._allowed(origin)
        if not allowed:
            return vary
        asked = _value(headers, "access-control-request-headers")
        granted = [] if asked is None else [("Access-Control-Allow-Headers", asked)]
        allow = ("Access-Control-Allow-Methods", ", ".join(methods))
        return [*allowed, allow, *granted, ("Access-Control-Max-Age", str(self.max_age_s)), *vary]

    def answered(self, origin: str | None, headers: HeaderList) -> HeaderList:
        """The headers of an answer to ``origin`` (``None``: not a browser's cross-origin request)."""
        kept = [pair for pair in headers if not pair[0].lower().startswith(_PREFIX)]
        if origin is None or not (allowed := self._allowed(origin)):
            return [*kept, *self._vary]
        readable = dict.fromkeys(lower for name, _ in kept if (lower := name.lower()) not in _SAFELISTED | _HIDDEN)
        exposed = [("Access-Control-Expose-Headers", ", ".join(readable))] if readable else []
        return [*kept, *allowed, *exposed, *self._vary]


def _value(headers: HeaderList, wanted: str) -> str | None:
    return next((value for name, value in headers if name.lower() == wanted), None)
