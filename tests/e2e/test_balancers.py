"""The shipped load balancers end to end: TLS, HTTP/2, bodies and events as they come, errors as they are."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.certificates import make_authority
from tests.e2e.balancers import DOCKER, KINDS, Balancer, Kind
from tests.e2e.h2_client import Http2
from tests.e2e.processes import DEADLINE_S, Engine, Gateway, until
from tests.ports import free_port
from tests.simulator.process import chat, events

pytestmark = pytest.mark.slow
PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class _Site:
    balancers: dict[Kind, Balancer]
    authority: Path
    gateway: Gateway
    engine: Engine

    def trust(self) -> ssl.SSLContext:
        """A new one for each client: they set in it which protocols they offer."""
        return ssl.create_default_context(cafile=str(self.authority))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Site]:
    folder = tmp_path_factory.mktemp("b")
    papers = make_authority(folder, "front")
    secured = {"FRONT_CERTIFICATE": str(papers / "front.pem"), "FRONT_KEY": str(papers / "front.key")}
    with ExitStack() as stack:
        engine = stack.enter_context(Engine())
        gateway = stack.enter_context(Gateway("--backend", engine.url))
        port = int(gateway.url.rpartition(":")[2])
        made = {kind: stack.enter_context(Balancer(kind, [port], folder, settings=secured)) for kind in KINDS}
        yield _Site(made, papers / "ca.pem", gateway, engine)


@pytest.fixture(params=KINDS)
def balancer(site: _Site, request: pytest.FixtureRequest) -> Balancer:
    return site.balancers[request.param]


@pytest.fixture
def client(site: _Site, balancer: Balancer) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=balancer.url, http2=True, verify=site.trust(), trust_env=False, timeout=DEADLINE_S
    ) as made:
        yield made


def test_http2_reaches_the_engine_under_the_clients_name(site: _Site, client: httpx.Client) -> None:
    site.engine.forget()
    told = {"x-request-id": "by-the-client", "x-forwarded-for": "203.0.113.9", "forwarded": "for=203.0.113.9"}
    answer = client.post(PATH, json=chat("hello"), headers=told)
    assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
    assert answer.headers["x-request-id"] == "by-the-client"
    assert not {name for name in answer.headers if name.startswith("x-envoy")}
    (record,) = site.engine.requests()
    headers = {name.lower(): value for name, value in record["headers"]}
    assert (headers["x-request-id"], headers["x-forwarded-for"]) == ("by-the-client", "127.0.0.1")
    assert headers["x-forwarded-proto"] == "https"
    assert not {"forwarded", "x-envoy-external-address"} & headers.keys()


def test_events_arrive_one_by_one(site: _Site, client: httpx.Client) -> None:
    site.engine.fault("hang_mid_stream", after_events=3)
    got = 0
    with client.stream("POST", PATH, json=chat("hello", stream=True)) as answer:
        for line in answer.iter_lines():
            got += line.startswith("data: ")
            if got == 3:
                break
    assert got == 3, "the engine hangs behind the third event: it came without a fourth to push it"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_the_engine(site: _Site, balancer: Balancer, stream: bool) -> None:
    until(lambda: site.engine.state()["in_flight"] == 0, "an idle engine")
    site.engine.fault("hang_mid_stream" if stream else "hang_before_status")
    with Http2(balancer.port, site.trust()) as wire:
        left = wire.post(PATH, chat("to be left", stream=stream))
        until(lambda: site.engine.state()["in_flight"] == 1, "a busy engine")
        wire.reset(left)
        until(lambda: site.engine.state()["in_flight"] == 0, "the end of it at the engine")


def test_a_body_of_40_mb_arrives_whole(site: _Site, balancer: Balancer) -> None:
    with httpx.Client(verify=site.trust(), trust_env=False, timeout=DEADLINE_S) as client:
        body = json.dumps(chat("hi", padding="a" * 40_000_000, max_tokens=1)).encode()
        answer = client.post(f"{balancer.url}{PATH}", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.http_version) == (200, "HTTP/1.1"), answer.text[:300]
    line = site.gateway.access_line(answer.headers["x-request-id"])
    assert line["forwarded_bytes"] == line["request_bytes"] > 40_000_000


def test_a_body_goes_on_before_its_end_came(site: _Site, balancer: Balancer) -> None:
    body = json.dumps(chat("hi", max_tokens=1)).encode()
    until(lambda: site.gateway.metric("requests_inflight") == 0, "an idle gateway")
    with Http2(balancer.port, site.trust()) as wire:
        begun = wire.announce(PATH, len(body))
        until(lambda: site.gateway.metric("requests_inflight") == 1, "a request whose body is on its way")
        wire.reset(begun)
        until(lambda: site.gateway.metric("requests_inflight") == 0, "its client's leave is known")


def test_a_body_is_invited_or_refused_by_the_gateway_unread(site: _Site, balancer: Balancer) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    body = json.dumps(chat("hi", max_tokens=1)).encode()
    for length, expected in ((len(body), b"HTTP/1.1 100 "), (70_000_000, b"HTTP/1.1 413 ")):
        with (
            socket.create_connection(("127.0.0.1", balancer.port), timeout=DEADLINE_S) as plain,
            site.trust().wrap_socket(plain, server_hostname="localhost") as wire,
        ):
            wire.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
            with wire.makefile("rb") as answer:
                assert answer.readline().startswith(expected)
                if expected.startswith(b"HTTP/1.1 100"):
                    wire.sendall(body)
                    assert any(line.startswith(b"HTTP/1.1 200") for line in iter(answer.readline, b""))


def test_errors_of_the_gateway_pass_as_they_are(client: httpx.Client) -> None:
    answer = client.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "route_not_found")
    assert answer.headers["server"] == "vlm-gateway"


def test_a_stream_is_whole_and_ends(client: httpx.Client) -> None:
    answer = client.post(PATH, json=chat("long", stream=True, max_tokens=100))
    assert events(answer.text)[-1] == "[DONE]"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_where_no_gateway_answers(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("n")
    with Balancer(kind, [free_port()], folder, expects=0) as alone:
        # Plain HTTP/2 by prior knowledge, on the port that speaks HTTP/1.1.
        with httpx.Client(http1=False, http2=True, trust_env=False, timeout=DEADLINE_S) as client:
            until(lambda: _listens(alone.port), "a listening balancer")
            answer = client.post(f"{alone.url}{PATH}", json=chat("hi"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "gateway_away")
        assert (answer.headers["retry-after"], answer.headers["content-type"]) == ("1", "application/json")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"GATEWAYS": "gateway"}, "GATEWAYS: gateway has no port"),
        ({"GATEWAYS": "gateway:1", "FRONT_CERTIFICATE": "/gone.pem", "FRONT_KEY": "/gone.key"},
         "FRONT_CERTIFICATE: /gone.pem cannot be read"),
        ({"GATEWAYS": 'a"b:1'}, "holds a character"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_named(kind: Kind, settings: dict[str, str], told: str, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "FRONT_STATE": str(tmp_path / "state"), **settings}
    ran = subprocess.run(
        [str(DOCKER / kind / "start")], env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert ran.returncode == 2
    assert told in ran.stderr
