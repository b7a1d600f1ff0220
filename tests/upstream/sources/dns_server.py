"""A DNS server that answers what it is told to, over real UDP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeAlias

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
from dns.rdatatype import RdataType

Records: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]] | None]


class DnsServer(asyncio.DatagramProtocol):
    """``records``: name -> kind -> texts. A name that is not there is NXDOMAIN, ``None`` for one is SERVFAIL.

    ``asked`` remembers every question as ``name kind``.
    """

    def __init__(self, records: Records, ttl_s: int = 0) -> None:
        self.records = dict(records)
        self.ttl_s = ttl_s
        self.asked: list[str] = []
        self.mute = False

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    @property
    def address(self) -> str:
        host, port = self._transport.get_extra_info("sockname")[:2]
        return f"{host}:{port}"

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name, kind = question.name.to_text(omit_final_dot=True), RdataType(question.rdtype).name
        self.asked.append(f"{name} {kind}")
        if self.mute:
            return
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        known = self.records.get(name, {})
        if known is None:
            response.set_rcode(dns.rcode.SERVFAIL)
        elif name not in self.records:
            response.set_rcode(dns.rcode.NXDOMAIN)
        elif texts := known.get(kind):
            response.answer.append(dns.rrset.from_text_list(question.name, self.ttl_s, "IN", kind, list(texts)))
        self._transport.sendto(response.to_wire(), addr)
