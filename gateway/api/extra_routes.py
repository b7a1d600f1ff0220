"""Routes that the configuration adds to the allow-list.

Decided here: which configured route a path takes: the exact one, else the longest prefix; never one that leads to
engines' administration or that has a second spelling. Not decided here: what may be configured (``config.routes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.api.routes import Route, RouteKind
from gateway.types.paths import Lane, is_admin_path, is_plain_path


@dataclass(frozen=True, slots=True)
class ExtraRoute:
    """``path`` ends with a slash where it is a prefix."""

    path: str
    methods: tuple[str, ...]
    is_websocket: bool
    is_prefix: bool
    lane: Lane


@dataclass(frozen=True, slots=True)
class ExtraRoutes:
    """All of them."""

    routes: Sequence[ExtraRoute]
    _exact: dict[str, Route] = field(init=False, repr=False)
    _prefixes: tuple[tuple[str, Route], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        exact = {each.path: _route(each) for each in self.routes if not each.is_prefix}
        prefixes = sorted((each for each in self.routes if each.is_prefix), key=lambda each: -len(each.path))
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_prefixes", tuple((each.path, _route(each)) for each in prefixes))

    def find(self, path: str) -> Route | None:
        """The route of a path that the gateway does not know itself."""
        found = self._exact.get(path)
        if found is not None or not is_plain_path(path) or is_admin_path(path):
            return found
        return next((route for prefix, route in self._prefixes if path.startswith(prefix)), None)


def _route(each: ExtraRoute) -> Route:
    if each.is_websocket:
        return Route(RouteKind.WEBSOCKET, "websocket", ("GET",), lane=each.lane)
    return Route(RouteKind.PASS_THROUGH, "pass_through", each.methods, lane=each.lane)
