"""From an address that was found to a backend: what its source says of all it finds, and options written beside it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.upstream.settings import BackendSettings

# Options as text (``max-pixels``) and where they stand -> a backend that has them. Raises ValueError.
Base: TypeAlias = Callable[[Mapping[str, str], str], BackendSettings]
NO_OPTIONS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Template:
    """``base`` makes the settings that all have in common; their address and name are replaced."""

    base: Base
    tls: bool = False

    def at(
        self,
        host: str,
        port: int,
        name: str = "",
        *,
        server_name: str | None = None,
        options: Mapping[str, str] = NO_OPTIONS,
    ) -> BackendSettings:
        """The backend there. ``server_name`` is the name on its certificate. Raises ValueError for wrong options."""
        place = f"{_bracketed(host)}:{port}"
        common = self.base(options, name or place)
        return replace(
            common,
            url=f"{'https' if self.tls else 'http'}://{place}",
            name=name or place,
            tls_server_name=(common.tls_server_name or server_name) if self.tls else None,
        )


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
