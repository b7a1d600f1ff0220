"""The admin port: a thread of its own that answers whatever the data loop does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from gateway.api.admin import LIVE_BEAT_S, AdminServer, AdminView


class State:
    """What the admin port is told, and what it asked."""

    def __init__(self) -> None:
        self.beat_age_s = 0.0
        self.checks = {"not_draining": True, "image_worker_alive": True}
        self.problems: list[str] = []
        self.asked: list[Any] = []

    async def reload(self) -> list[str]:
        self.asked.append(threading.current_thread().name)
        return self.problems

    async def explain(self, body: bytes, headers: dict[str, str]) -> dict[str, object]:
        self.asked.append((body, headers))
        return {"explained": True}

    def view(self) -> AdminView:
        return AdminView(
            beat_age_s=lambda: self.beat_age_s,
            readiness=lambda: self.checks,
            render_metrics=lambda accept: (b"# HELP x y\n", "text/plain; asked=" + accept),
            config=lambda: {"server": {"port": 1}},
            drain=lambda: self.asked.append("drain"),
            ask_reload=self.reload,
            ask_explain=self.explain,
            notes=lambda: ["[!]store away"],
        )


@contextmanager
def admin(state: State, token: str | None = None) -> Iterator[httpx.Client]:
    server = AdminServer(replace(state.view(), token=token), host="127.0.0.1", port=0)
    port = server.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            yield client
    finally:
        server.stop()


def test_live_while_the_loop_beats() -> None:
    state = State()
    with admin(state) as client:
        assert client.get("/livez").text == "ok\n"
        state.beat_age_s = LIVE_BEAT_S - 0.1
        assert client.get("/livez").status_code == 200
        state.beat_age_s = LIVE_BEAT_S
        answer = client.get("/livez?verbose")
        assert (answer.status_code, answer.text) == (503, "[-]loop\nnot ok\n")


def test_ready_while_every_check_passes_and_verbose_says_which_does_not() -> None:
    state = State()
    with admin(state) as client:
        assert client.get("/readyz").status_code == 200
        state.checks["image_worker_alive"] = False
        answer = client.get("/readyz?verbose")
        assert answer.status_code == 503
        assert answer.text.splitlines() == ["[+]not_draining", "[-]image_worker_alive", "[!]store away", "not ok"]
        assert client.get("/livez").status_code == 200


def test_metrics_and_config() -> None:
    with admin(State()) as client:
        answer = client.get("/metrics", headers={"Accept": "x"})
        assert (answer.content, answer.headers["content-type"]) == (b"# HELP x y\n", "text/plain; asked=x")
        assert client.get("/-/config").json() == {"server": {"port": 1}}


def test_reload_says_what_is_wrong() -> None:
    state = State()
    with admin(state) as client:
        answer = client.post("/-/reload")
        assert (answer.status_code, answer.json()) == (200, {"reloaded": True, "problems": []})
        state.problems = ["policies/a.yaml:3 x: y"]
        answer = client.post("/-/reload")
        assert (answer.status_code, answer.json()["problems"]) == (422, state.problems)


def test_drain_is_passed_on() -> None:
    state = State()
    with admin(state) as client:
        assert client.post("/-/drain").status_code == 202
        assert state.asked == ["drain"]


@pytest.mark.parametrize(
    ("query", "header", "path"),
    [
        ("", None, "/v1/chat/completions"),
        ("?path=%2Fv1%2Fmessages", "/v1/responses", "/v1/messages"),
        ("", "/v1/responses", "/v1/responses"),
    ],
)
def test_explain_is_told_whose_body_it_is(query: str, header: str | None, path: str) -> None:
    state = State()
    with admin(state) as client:
        client.post(f"/-/explain{query}", content=b"{}", headers={} if header is None else {"x-vlmgw-path": header})
    assert state.asked[0][1]["x-vlmgw-path"] == path


def test_explain_gets_the_body_and_lower_case_headers() -> None:
    state = State()
    with admin(state) as client:
        assert client.post("/-/explain", content=b"[1]", headers={"X-Vlmgw-Task": "ocr"}).json() == {"explained": True}
    ((body, headers),) = state.asked
    assert body == b"[1]"
    assert headers["x-vlmgw-task"] == "ocr"


@pytest.mark.parametrize("path", ["/-/reload", "/-/drain", "/-/explain", "/-/config"])
@pytest.mark.parametrize("header", [None, b"Bearer wrong", b"right", b"Basic right", b"Bearer \xff"])
def test_with_a_token_only_its_holder_acts(path: str, header: bytes | None) -> None:
    state = State()
    method = "GET" if path == "/-/config" else "POST"
    with admin(state, token="right") as client:
        given = [] if header is None else [(b"Authorization", header)]
        answer = client.request(method, path, headers=given)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthenticated")
        assert state.asked == []
        assert client.request(method, path, headers={"Authorization": "Bearer right"}).status_code in {200, 202}


def test_probes_and_metrics_need_no_token() -> None:
    with admin(State(), token="right") as client:
        assert [client.get(path).status_code for path in ("/livez", "/readyz", "/metrics")] == [200, 200, 200]


@pytest.mark.parametrize("path", ["/-/reload", "/-/drain"])
def test_a_link_cannot_act(path: str) -> None:
    with admin(State()) as client:
        assert client.get(path).status_code == 405


@pytest.mark.parametrize("path", ["/-/reload", "/-/drain", "/-/explain"])
def test_another_sites_page_cannot_act_either(path: str) -> None:
    """Browsers send such a POST without asking first, and loopback is theirs too."""
    state = State()
    with admin(state) as client:
        assert client.post(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert client.post(path, headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
        assert state.asked == []
        assert client.post(path, headers={"Sec-Fetch-Site": "same-origin"}).status_code in {200, 202}


def test_a_page_under_a_name_that_somebody_made_lead_here_needs_the_token() -> None:
    state = State()
    rebound = {"Host": "evil.example:9464", "Origin": "http://evil.example:9464"}
    with admin(state) as client:
        assert client.post("/-/drain", headers=rebound).status_code == 403
        assert client.post("/-/drain", headers={"Origin": "http://evil.example"}).status_code == 403
        assert state.asked == []
        assert client.post("/-/drain", headers={"Host": "gateway-admin:9464"}).status_code == 202, "a program's"
        own = f"http://127.0.0.1:{client.base_url.port}"
        assert client.post("/-/drain", headers={"Origin": own}).status_code == 202
    with admin(state, token="right") as client:  # a page cannot know it
        assert client.post("/-/drain", headers={**rebound, "Authorization": "Bearer right"}).status_code == 202


async def test_it_answers_while_this_loop_is_blocked() -> None:
    with admin(State()) as client:
        assert asyncio.get_running_loop().is_running()
        assert client.get("/livez").status_code == 200  # a blocking client: this loop does nothing meanwhile


def test_a_port_in_use_is_told_to_the_one_who_starts() -> None:
    server = AdminServer(State().view(), host="127.0.0.1", port=0)
    port = server.start()
    with pytest.raises(OSError, match="in use"):
        AdminServer(State().view(), host="127.0.0.1", port=port).start()
    server.stop()


def test_stopping_what_never_started_is_nothing() -> None:
    AdminServer(State().view(), host="127.0.0.1", port=0).stop()
