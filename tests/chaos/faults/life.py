"""What operators do: roll, reload good and bad files, renew keys and certificates. None of it is a fault to clients."""

from __future__ import annotations

import asyncio
import signal
import ssl
from pathlib import Path

import aiohttp

from tests.certificates import make_authority
from tests.chaos.answers import Kind
from tests.chaos.fleet import REPLICAS, SHARED, Fleet, write_policies
from tests.chaos.load import KEYS
from tests.chaos.parts import GatewayPart, until
from tests.chaos.run import Fault, Strike
from tests.simulator.process import chat

_NEW_KEY = "chaos-renewed-key"


def rolled(strike: Strike) -> None:
    """Every replica leaves and comes back, one after the other."""
    for gateway in strike.fleet.gateways:
        gateway.signal(signal.SIGTERM)
        assert gateway.process is not None
        code = gateway.process.wait(60)
        assert code == 0, f"{gateway.name} left with {code}: {gateway.said[-800:]}"
        strike.answers(6)
        gateway.start()
        strike.answers(6)


def reloaded(strike: Strike) -> None:
    """Good, bad and good files in turn."""
    gateway, policies = strike.fleet.gateway, strike.fleet.policies
    for number, is_good in enumerate((True, False, True, False, True)):
        if is_good:
            write_policies(policies, rate=12_000 + number)
        else:
            (policies / "usual.yaml").write_text("tenant: usual\nrulez: {}\n", encoding="utf-8")
        gateway.signal(signal.SIGHUP)
        wanted = gateway.processes * int(is_good)
        until(lambda wanted=wanted: _reload_results(gateway) == wanted, "the reload's result")  # type: ignore[misc]  # bound
        strike.answers(6)


def _reload_results(gateway: GatewayPart) -> float:
    return gateway.metric("config_last_reload_successful")


def keys_renewed(strike: Strike) -> None:
    """Both keys for a while, then the new one alone; clients change between."""
    gateway, policies, old = strike.fleet.gateway, strike.fleet.policies, KEYS["usual"]
    write_policies(policies, old, _NEW_KEY)
    _reload(gateway)
    strike.answers(6)
    KEYS["usual"] = _NEW_KEY
    try:
        strike.answers(2 * strike.load.lanes)  # nobody is still on the way with the old one
        write_policies(policies, _NEW_KEY)
        _reload(gateway)
        strike.answers(6)
        assert strike.fleet.stage.run(_status(f"{gateway.url}/v1/models", old)) == 401, "the old key still opens"
    finally:
        write_policies(policies, old, _NEW_KEY)
        _reload(gateway)
        KEYS["usual"] = old
        strike.answers(2 * strike.load.lanes)
        write_policies(policies, old)
        _reload(gateway)


def _reload(gateway: GatewayPart) -> None:
    assert gateway.ask("POST", "/-/reload") == 200, gateway.said[-500:]


async def _status(url: str, key: str) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"authorization": f"Bearer {key}"}) as response,
    ):
        return response.status


def certificate_renewed(strike: Strike) -> None:
    """A stream that began before goes on; connections after it see the new certificate; no request fails."""
    fleet = strike.fleet
    papers = fleet.folder / "papers"
    papers.mkdir()
    make_authority(papers, "first", "second")
    live = {suffix: fleet.folder / f"live.{suffix}" for suffix in ("pem", "key")}
    _lay(papers, "first", live)
    gateway = fleet.new_gateway("with-tls", {
        "VLMGW_SERVER_TLS_CERT_FILE": str(live["pem"]), "VLMGW_SERVER_TLS_KEY_FILE": str(live["key"]),
    })  # fmt: skip
    try:
        gateway.start()
        seen = fleet.stage.run(_through_a_renewal(fleet, gateway, papers, live))
        assert seen == ["first", "second"], f"certificates seen: {seen}"
    finally:
        gateway.end()


def _lay(papers: Path, name: str, live: dict[str, Path]) -> None:
    for suffix, path in live.items():
        path.write_bytes((papers / f"{name}.{suffix}").read_bytes())


async def _through_a_renewal(fleet: Fleet, gateway: GatewayPart, papers: Path, live: dict[str, Path]) -> list[str]:
    """Whose certificates two connections saw, one before and one after, with requests on both afterwards."""
    trust = ssl.create_default_context(cafile=papers / "ca.pem")
    url = gateway.url.replace("http:", "https:") + "/v1/chat/completions"
    seen = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        body = chat("a story", stream=True, max_tokens=400, ignore_eos=True)
        headers = {"authorization": f"Bearer {KEYS['crowd']}", "x-request-id": f"tls-{Kind.STREAM}"}
        async with session.post(url, json=body, headers=headers) as stream:
            await stream.content.readany()
            seen.append(await _subject(gateway, trust))
            _lay(papers, "second", live)
            status = await asyncio.to_thread(gateway.ask, "POST", "/-/reload")
            assert status == 200, "the reload with the new certificate"
            seen.append(await _subject(gateway, trust))
            rest = await stream.read()
        assert rest.rstrip().endswith(b"data: [DONE]"), "the stream that began before"
        async with session.post(
            url, json=chat("after", max_tokens=4), headers={**headers, "x-request-id": "tls"}
        ) as again:
            assert again.status == 200, "a request on the old connection"
    return seen


async def _subject(gateway: GatewayPart, trust: ssl.SSLContext) -> str:
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port, ssl=trust)
    try:
        told = writer.get_extra_info("peercert")
        return str(dict(pair for entry in told["subject"] for pair in entry)["commonName"])
    finally:
        writer.transport.abort()


FAULTS = (
    Fault("reloads", reloaded),
    Fault("keys-renewed", keys_renewed),
    Fault("certificate-renewed", certificate_renewed),
    Fault("processes-reload", reloaded, SHARED),
    Fault("replicas-rolled", rolled, REPLICAS, bound_s=60),
)
