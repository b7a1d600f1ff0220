"""What EndpointSlices say (discovery.k8s.io/v1): which endpoints take traffic, under which names and options. Pure.

Decided here: an endpoint counts while it is ready (or says nothing of it, as the API asks consumers to read that) and
not terminating; it is called by its pod, so that both addresses of a dual-stack pod are one backend, the IPv4 one; the
port is found by name or number. Options stand in annotations and labels ``vlm-gateway/<setting>``, which a cluster
copies from the Service; annotations win. Not decided here: how slices are got (``kubernetes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gateway.upstream.engines.reading import JsonValue, inner_object, words

PREFIX = "vlm-gateway/"
_ORDER = {"IPv4": 0, "IPv6": 1}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One place to send to. ``options`` by setting name."""

    name: str
    host: str
    port: int
    options: Mapping[str, str] = field(default_factory=dict)


class NoSuchPort(ValueError):
    """Slices have no port of the wanted name or number, or several where none was wanted by name."""


def endpoints(slices: Iterable[dict[str, JsonValue]], wanted_port: str) -> list[Endpoint]:
    """All that take traffic, each once, by name. Raises NoSuchPort."""
    found: dict[str, Endpoint] = {}
    for each in sorted(slices, key=lambda entry: _ORDER.get(str(entry.get("addressType")), 2)):
        entries = each.get("endpoints")
        usable = [entry for entry in entries if _usable(entry)] if isinstance(entries, list) else []
        if not usable:
            continue
        port = _port(each, wanted_port)
        options = _options(inner_object(each.get("metadata")))
        for entry in usable:
            endpoint = _endpoint(inner_object(entry), port, options)
            if endpoint is not None:
                found.setdefault(endpoint.name, endpoint)
    return [found[name] for name in sorted(found)]


def _usable(entry: JsonValue) -> bool:
    conditions = inner_object(inner_object(entry).get("conditions"))
    return conditions.get("ready") is not False and conditions.get("terminating") is not True


def _endpoint(entry: dict[str, JsonValue], port: int, options: Mapping[str, str]) -> Endpoint | None:
    addresses = entry.get("addresses")
    host = words(addresses[0]) if isinstance(addresses, list) and addresses else None
    if host is None:
        return None
    pod = words(inner_object(entry.get("targetRef")).get("name"))
    return Endpoint(pod or f"{host}:{port}", host, port, options)


def _port(each: dict[str, JsonValue], wanted: str) -> int:
    listed = each.get("ports")
    ports = [inner_object(entry) for entry in listed] if isinstance(listed, list) else []
    numbers = {
        (words(entry.get("name")) or ""): number
        for entry in ports
        if isinstance(number := entry.get("port"), int) and entry.get("protocol", "TCP") == "TCP"
    }
    if wanted.isdigit():
        return int(wanted)
    if wanted in numbers:
        return numbers[wanted]
    if not wanted and len(numbers) == 1:
        return next(iter(numbers.values()))
    names = ", ".join(sorted(numbers)) or "none"
    raise NoSuchPort(f"no port {wanted!r} there; ports: {names}" if wanted else f"which port? ports: {names}")


def _options(metadata: dict[str, JsonValue]) -> dict[str, str]:
    options: dict[str, str] = {}
    for place in ("labels", "annotations"):
        for key, value in inner_object(metadata.get(place)).items():
            if key.startswith(PREFIX) and isinstance(value, str):
                options[key.removeprefix(PREFIX)] = value
    return options
