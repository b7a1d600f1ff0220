"""Configured routes: paths that the gateway does not know itself and passes to a backend unread.

Decided here: what a route may name. Engines' administration is never offered, not even by its exact name, and a prefix
has to be one: ``/`` would offer whatever an engine adds with its next version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.config.declaring import setting
from gateway.dialects import DIALECTS
from gateway.types.paths import is_admin_path, is_plain_path

_OWN = frozenset({"/v1/estimate", "/v1/prepare", "/v1/models", "/health"})
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True)
class RouteConfig:
    """One path, or all below a prefix."""

    path: str | None = setting(None, "The path, exactly.")
    prefix: str | None = setting(None, "Instead of path: all paths that begin so; ends with a slash.")
    methods: tuple[str, ...] = setting(("GET", "POST"), "Methods that pass.")
    websocket: bool = setting(False, "Whether it is a WebSocket (GET with Upgrade) and nothing else.")
    backends: tuple[str, ...] = setting((), "Names of the backends that serve it; all by default.")
    model: str | None = setting(None, "Only backends that serve this model.")
    max_body_bytes: int | None = setting(
        None, "Largest request body; server.max_body_bytes by default.", minimum=1, unit="bytes"
    )
    max_message_bytes: int = setting(
        16 << 20, "Largest message of a WebSocket; larger ones close it (1009).", minimum=1024, unit="bytes"
    )
    idle_timeout_s: float = setting(3600.0, "Longest silence of a WebSocket.", minimum=0.1, unit="s")


def route_problems(routes: Sequence[RouteConfig], backend_names: frozenset[str] | None) -> list[str]:
    """One line each, as ``settings: where: what``. ``None``: backends are found while running, any name may be one."""
    problems: list[str] = []
    seen: set[str] = set()
    for index, route in enumerate(routes):
        where = f"settings: routes.{index}"
        named = route.path or route.prefix
        if named is None or (route.path is not None and route.prefix is not None):
            problems.append(f"{where}: needs a path or a prefix, and not both")
            continue
        kind = "path" if route.prefix is None else "prefix"
        problems += [f"{where}.{kind}: {what}" for what in _path_problems(named, is_prefix=kind == "prefix")]
        if named in seen:
            problems.append(f"{where}: {named} is given twice")
        seen.add(named)
        problems += [
            f"{where}.methods: {m} is none of {', '.join(_METHODS)}" for m in route.methods if m not in _METHODS
        ]
        unknown = [name for name in route.backends if backend_names is not None and name not in backend_names]
        problems += [f"{where}.backends: no backend is called {name!r}" for name in unknown]
    return problems


def _path_problems(named: str, *, is_prefix: bool) -> list[str]:
    if not is_plain_path(named):
        return [f"must be a plain path, as /v1/realtime, not {named!r}"]
    if is_prefix and (not named.endswith("/") or named == "/"):
        reason = ": it would offer all that engines have" if named == "/" else ""
        return [f"must be /name/ with a slash at both ends, not {named!r}{reason}"]
    if is_admin_path(named):
        return [f"{named} is administration of engines, which is never offered to clients; call the engine itself"]
    if named in _OWN or any(named in dialect.paths for dialect in DIALECTS):
        return [f"{named} is served by the gateway itself"]
    return []
