"""DNS as a source, against a server that speaks it over real UDP."""

from __future__ import annotations

import pytest
from dns.rdatatype import RdataType

from gateway.upstream.sources.dns import DnsSource, Resolver, use_s
from tests.upstream.scripted import until
from tests.upstream.sources.dns_server import DnsServer, Records
from tests.upstream.sources.watching import heard, template

HOST = "vllm.prod.test"


def source(server: DnsServer, host: str = HOST, port: int | None = 8000, *, tls: bool = False) -> DnsSource:
    return DnsSource(host, port, template(tls=tls), 0.01, Resolver([server.address]))


async def test_every_address_is_a_backend_and_changes_are_noticed() -> None:
    async with DnsServer({HOST: {"A": ("10.0.0.2", "10.0.0.1")}}) as server, heard(source(server)) as ears:
        await until(lambda: ears.urls == ["http://10.0.0.1:8000", "http://10.0.0.2:8000"])
        assert ears.names == ["10.0.0.1:8000", "10.0.0.2:8000"]
        assert all(backend.api_key == "k" for backend in ears.answers[-1])
        server.records[HOST] = {"A": ("10.0.0.3", "10.0.0.2")}
        await until(lambda: ears.names == ["10.0.0.2:8000", "10.0.0.3:8000"])


async def test_ipv6_where_there_is_no_ipv4() -> None:
    records: Records = {HOST: {"A": ("10.0.0.1",), "AAAA": ("fd00::1",)}, "six.test": {"AAAA": ("fd00::1",)}}
    async with DnsServer(records) as server:
        async with heard(source(server)) as ears:
            await until(lambda: ears.names == ["10.0.0.1:8000"])
        async with heard(source(server, "six.test")) as ears:
            await until(lambda: ears.urls == ["http://[fd00::1]:8000"])


async def test_nobody_and_no_answer_are_not_the_same() -> None:
    async with DnsServer({HOST: {"A": ("10.0.0.1",)}}) as server, heard(source(server)) as ears:
        await until(lambda: bool(ears.answers))
        server.records[HOST] = None
        await until(lambda: bool(ears.failures))
        assert "vllm.prod.test A" in ears.failures[0]
        count = len(ears.answers)
        assert ears.names == ["10.0.0.1:8000"]
        del server.records[HOST]
        await until(lambda: len(ears.answers) > count)
        assert ears.names == []


async def test_services_bring_their_ports_and_the_best_priority_counts() -> None:
    service = "_http._tcp.vllm.test"
    records: Records = {
        service: {"SRV": ("0 1 8001 pod-a.vllm.test.", "0 9 8002 pod-b.vllm.test.", "5 1 8003 spare.test.")},
        "pod-a.vllm.test": {"A": ("10.0.0.1",)},
        "pod-b.vllm.test": {"A": ("10.0.0.2", "10.0.0.3")},
    }
    async with DnsServer(records) as server, heard(source(server, service, None)) as ears:
        await until(lambda: bool(ears.answers))
        assert list(zip(ears.names, ears.urls, strict=True)) == [
            ("pod-a.vllm.test:8001", "http://10.0.0.1:8001"),
            ("10.0.0.2:8002", "http://10.0.0.2:8002"),
            ("10.0.0.3:8002", "http://10.0.0.3:8002"),
        ]
        server.records["pod-a.vllm.test"] = None
        await until(lambda: bool(ears.failures))
        assert "http://10.0.0.1:8001" in ears.urls, "a target that cannot be resolved now keeps its last address"
        server.records[service] = {"SRV": ("0 0 0 .",)}
        await until(lambda: ears.urls == [])


async def test_certificates_hold_the_name_that_was_asked_for() -> None:
    async with DnsServer({HOST: {"A": ("10.0.0.1",)}}) as server, heard(source(server, tls=True)) as ears:
        await until(lambda: bool(ears.answers))
        (backend,) = ears.answers[-1]
        assert (backend.url, backend.tls_server_name) == ("https://10.0.0.1:8000", HOST)


async def test_answers_carry_their_time_to_live() -> None:
    async with DnsServer({HOST: {"A": ("10.0.0.1",)}}, ttl_s=7) as server:
        answer = await Resolver([server.address]).ask(HOST, RdataType.A)
    assert (answer.records, answer.ttl_s) == (("10.0.0.1",), 7.0)


def test_a_ttl_shorter_than_the_interval_is_kept_to_within_reason() -> None:
    assert [use_s(ttl_s, 10.0) for ttl_s in (0.0, 5.0, 60.0, float("inf"))] == [1.0, 5.0, 10.0, 10.0]
    assert use_s(60.0, 0.05) == 0.05


@pytest.mark.parametrize(
    ("written", "server"),
    [
        ("10.0.0.53", ("10.0.0.53", 53)),
        ("10.0.0.53:5353", ("10.0.0.53", 5353)),
        ("[fd00::53]:5353", ("fd00::53", 5353)),
        ("fd00::53", ("fd00::53", 53)),
        ("[fd00::53]", ("fd00::53", 53)),
    ],
)
def test_ways_to_write_a_server(written: str, server: tuple[str, int]) -> None:
    assert Resolver([written])._nameservers == [server]
