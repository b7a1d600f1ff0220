"""Backends by name: every address of a host (A, else AAAA), or every target of a service (SRV, with ports).

Decided here: which questions are asked and when again (the shortest TTL, at most ``refresh_s``), that a host with IPv4
addresses is reached by those (its IPv6 ones are the same machines), that of SRV records those of the best priority
count (RFC 2782; weights are left to routing), and that a name which could not be resolved keeps its last addresses.
An answer without addresses is told as such. Not decided here: what is believed of it (``membership``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dns.asyncresolver
import dns.exception
import dns.resolver
from dns.rdatatype import RdataType

from gateway.upstream.settings import BackendSettings, Found
from gateway.upstream.sources.template import Template

# One question in all: tries, servers and search domains included.
_QUESTION_S = 5.0
# A TTL of 0 means "do not keep this", and not "ask me all day".
_SHORTEST_S = 1.0
_TARGETS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Answer:
    """The records of one question as text, and how long they may be used."""

    records: tuple[str, ...]
    ttl_s: float


class Unresolved(Exception):
    """No server gave an answer, not even that there are no such records."""


class Resolver:
    """Asks the system's DNS servers, or ``nameservers`` (address, or address:port)."""

    def __init__(self, nameservers: Sequence[str] = ()) -> None:
        self._nameservers = [_server(each) for each in nameservers]

    async def ask(self, name: str, kind: RdataType) -> Answer:
        """Raises Unresolved."""
        try:
            # The system's file is read each time: it is short, and it changes with the network.
            resolver = dns.asyncresolver.Resolver(configure=not self._nameservers)
            if self._nameservers:
                resolver.nameservers = [dns.nameserver.Do53Nameserver(host, port) for host, port in self._nameservers]
            found = await resolver.resolve(name, kind, search=True, lifetime=_QUESTION_S, raise_on_no_answer=False)
        except dns.resolver.NXDOMAIN:
            return Answer((), float("inf"))
        except dns.exception.DNSException as error:
            raise Unresolved(f"{name} {kind.name}: {type(error).__name__}: {error}") from error
        records = () if found.rrset is None else tuple(sorted(record.to_text() for record in found.rrset))
        return Answer(records, float("inf") if found.rrset is None else float(found.rrset.ttl))


def _server(written: str) -> tuple[str, int]:
    host, _, port = written.rpartition(":")
    if not written.endswith("]") and ((host and ":" not in host.strip("[]")) or host.startswith("[")):
        return host.strip("[]"), int(port)
    return written.strip("[]"), 53


class DnsSource:
    """``port`` None: ``host`` names a service, whose SRV records tell hosts and ports."""

    def __init__(
        self, host: str, port: int | None, template: Template, refresh_s: float, resolver: Resolver | None = None
    ) -> None:
        self._host = host
        self._port = port
        self._template = template
        self._refresh_s = refresh_s
        self._resolver = resolver or Resolver()
        self._known: dict[str, Answer] = {}
        self._gate = asyncio.Semaphore(_TARGETS_AT_ONCE)

    async def watch(self, found: Callable[[Found], None], failed: Callable[[str], None]) -> None:
        while True:
            wait_s = self._refresh_s
            try:
                backends, ttl_s, problem = await self._look()
            except Unresolved as error:
                failed(str(error))
            else:
                found(backends)
                wait_s = use_s(ttl_s, self._refresh_s)
                if problem is not None:
                    failed(problem)
            await asyncio.sleep(wait_s)

    async def _look(self) -> tuple[Found, float, str | None]:
        """Backends, for how long, and what went wrong with some of them all the same."""
        if self._port is not None:
            answer = await self._addresses(self._host)
            return [self._at(address, self._port) for address in answer.records], answer.ttl_s, None
        service = await self._resolver.ask(self._host, RdataType.SRV)
        targets = _best(service.records)
        answers = await asyncio.gather(*(self._held(target) for target, _ in targets))
        self._known = {target: answer for (target, _), (answer, _) in zip(targets, answers, strict=True)}
        backends = [
            self._at(address, port, target if len(answer.records) == 1 else "")
            for (target, port), (answer, _) in zip(targets, answers, strict=True)
            for address in answer.records
        ]
        ttl_s = min([service.ttl_s, *(answer.ttl_s for answer, _ in answers)])
        return backends, ttl_s, next((problem for _, problem in answers if problem is not None), None)

    async def _held(self, target: str) -> tuple[Answer, str | None]:
        """The target's addresses, the last known ones where it cannot be resolved now."""
        try:
            async with self._gate:
                return await self._addresses(target), None
        except Unresolved as error:
            return self._known.get(target, Answer((), _SHORTEST_S)), str(error)

    async def _addresses(self, host: str) -> Answer:
        answer = await self._resolver.ask(host, RdataType.A)
        return answer if answer.records else await self._resolver.ask(host, RdataType.AAAA)

    def _at(self, address: str, port: int, target: str = "") -> BackendSettings:
        host = target or self._host
        return self._template.at(address, port, f"{target}:{port}" if target else "", server_name=host.rstrip("."))


def use_s(ttl_s: float, refresh_s: float) -> float:
    """How long an answer is used."""
    return min(refresh_s, max(ttl_s, _SHORTEST_S))


def _best(records: Sequence[str]) -> list[tuple[str, int]]:
    """Targets and ports of the lowest priority; a lone ``.`` says that the service is not offered."""
    rows = [record.split() for record in records]
    services = [(int(row[0]), row[3].rstrip("."), int(row[2])) for row in rows if row[3] != "."]
    best = min((priority for priority, _, _ in services), default=0)
    return sorted({(target, port) for priority, target, port in services if priority == best})
