"""The page's files and endpoints: who is let in, what is read, what is sent away."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from socket import create_connection, socket
from typing import Any

import httpx
import pytest

from gateway.api.admin import AdminServer
from gateway.api.ui import FOLDER, PICTURE_LIMIT_BYTES, PICTURE_PLACES, TEXT_LIMIT_BYTES, WATCHER_PLACES, UiView
from gateway.errors import NotPermitted
from gateway.playground import Choice
from gateway.types import Size, TenantId
from tests.api.test_admin import State
from tests.e2e.processes import DEADLINE_S, until

CHOICE = {"models": ["m"], "sizes": [[3, 4]]}


class Page:
    """Answers with what it was asked, and keeps pictures waiting until it is told."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()
        self.waiting = threading.Semaphore(0)
        self.told = ""

    async def choices(self) -> dict[str, object]:
        return {"chosen": True}

    async def sizes(self, sizes: list[Size], choice: Choice) -> dict[str, object]:
        return {"sizes": [str(size) for size in sizes], "choice": str(choice)}

    async def picture(self, file: bytes, media_type: str, choice: Choice) -> dict[str, object]:
        self.waiting.release()
        await asyncio.to_thread(self.go_on.wait)
        return {"bytes": len(file), "type": media_type, "models": list(choice.models), "task": choice.task}

    async def policy(self, tenant: TenantId, task: str | None, model: str | None) -> dict[str, object]:
        if tenant == "nobody":
            raise NotPermitted("There is no such tenant.", part="tenant")
        return {"tenant": tenant, "task": task, "model": model}

    async def check(self, text: str) -> dict[str, object]:
        return {"text": text}

    def live(self, after: int) -> dict[str, object]:
        return {"after": after, "sums": {"requests": after + 5}, "told": self.told}

    def view(self) -> UiView:
        return UiView(self.choices, self.sizes, self.picture, self.policy, self.check, self.live)


@contextmanager
def serving(page: Page | None = None, token: str | None = None) -> Iterator[httpx.Client]:
    view = replace(State().view(), ui=(page or Page()).view(), token=token)
    server = AdminServer(view, host="127.0.0.1", port=0)
    port = server.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            yield client
    finally:
        server.stop()


def test_the_page_keeps_to_itself() -> None:
    with serving() as client:
        assert client.get("/ui").headers["location"] == "/ui/"
        page = client.get("/ui/")
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        named = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert set(named) == {"icon.svg", "style.css", "app.js"}
        for name in named:
            answer = client.get(f"/ui/{name}")
            assert answer.status_code == 200
            again = client.get(f"/ui/{name}", headers={"If-None-Match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert client.get("/ui/app.js").headers["content-type"].startswith("text/javascript")


def test_only_its_own_files_are_served() -> None:
    with serving() as client:
        for path in ("/ui/../admin.py", "/ui/%2e%2e%2fapp.py", "/ui/nothing.js", "/ui/api"):
            assert client.get(path).status_code == 404


def test_no_file_names_another_host_or_makes_markup_of_text() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text()
        assert not re.findall(r"https?://(?!www\.w3\.org/|\$)[a-z]", text), path.name
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|style=", text), path.name
        assert len(text.splitlines()) <= 400, path.name


ASKED = [
    ("GET", "/ui/api/choices"),
    ("POST", "/ui/api/sizes"),
    ("POST", "/ui/api/picture"),
    ("GET", "/ui/api/policy"),
    ("POST", "/ui/api/check"),
    ("GET", "/ui/api/live"),
]


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_with_a_token_only_its_holder_is_answered(method: str, path: str) -> None:
    with serving(token="right") as client:
        for header in ({}, {"Authorization": "Bearer wrong"}):
            assert client.request(method, path, headers=header).status_code == 401
        assert client.get("/ui/").status_code == 200  # its files hold nothing
        right = {"Authorization": "Bearer right"}
        assert client.get("/ui/api/door").json() == {"open": False}
        assert client.get("/ui/api/door", headers=right).json() == {"open": True}
        assert client.get("/ui/api/choices", headers=right).json() == {"chosen": True}


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_another_sites_page_is_refused(method: str, path: str) -> None:
    with serving() as client:
        for site in ("cross-site", "same-site"):
            assert client.request(method, path, headers={"Sec-Fetch-Site": site}).status_code == 403


def test_questions_reach_the_loop_typed() -> None:
    with serving() as client:
        told = client.post("/ui/api/sizes", json=CHOICE | {"task": "ocr", "detail": ""}).json()
        assert told["sizes"] == ["3x4"]
        assert told["choice"] == str(Choice(("m",), TenantId("default"), "ocr", None))
        answer = client.post(
            "/ui/api/picture?model=a&model=b&task=ocr", content=b"12345", headers={"Content-Type": "image/png"}
        )
        assert answer.json() == {"bytes": 5, "type": "image/png", "models": ["a", "b"], "task": "ocr"}
        assert client.get("/ui/api/policy?tenant=acme&model=x").json() == {
            "tenant": "acme", "task": None, "model": "x",
        }  # fmt: skip
        assert client.post("/ui/api/check", content="ä".encode()).json() == {"text": "ä"}


@pytest.mark.parametrize(
    "content",
    [b"[", b"[]", b'{"models": "a"}', b'{"models": ["a"], "sizes": [[1]]}', b'{"models":[],"sizes":[["1",2]]}'],
)
def test_what_cannot_be_read_is_told(content: bytes) -> None:
    with serving() as client:
        answer = client.post("/ui/api/sizes", content=content)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")
        assert client.post("/ui/api/check", content=b"\xff").status_code == 400


def test_a_refusal_keeps_its_status_and_its_words() -> None:
    with serving() as client:
        answer = client.get("/ui/api/policy?tenant=nobody")
        assert (answer.status_code, answer.json()["error"]["part"]) == (403, "tenant")


def test_too_much_is_not_read() -> None:
    with serving() as client:
        large = client.post("/ui/api/check", content=b"x" * (TEXT_LIMIT_BYTES + 1))
        assert large.status_code == 413
        pieces = (b"x" * (1 << 15) for _ in range(4))  # no length is declared
        assert client.post("/ui/api/check", content=pieces).status_code == 413
        connection = HTTPConnection(client.base_url.host, client.base_url.port or 0, timeout=30)
        connection.putrequest("POST", "/ui/api/picture?model=a")
        connection.putheader("Content-Length", str(PICTURE_LIMIT_BYTES + 1))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()


def test_when_all_places_are_taken_the_next_is_told_so_at_once() -> None:
    page = Page()
    page.go_on.clear()
    with serving(page) as client, ThreadPoolExecutor(PICTURE_PLACES) as pool:
        held = [pool.submit(client.post, "/ui/api/picture?model=a", content=b"1") for _ in range(PICTURE_PLACES)]
        for _ in held:
            page.waiting.acquire(timeout=30)
        busy = client.post("/ui/api/picture?model=a", content=b"1")
        assert (busy.status_code, busy.json()["error"]["code"], busy.headers["retry-after"]) == (503, "busy", "1")
        assert client.get("/ui/api/choices").status_code == 200
        page.go_on.set()
        assert {each.result().status_code for each in held} == {200}
        assert client.post("/ui/api/picture?model=a", content=b"1").status_code == 200


def _upload(client: httpx.Client, head: str, body: bytes = b"a") -> socket:
    """A connection over which a picture begins to come."""
    connection = create_connection((client.base_url.host, client.base_url.port or 0), timeout=DEADLINE_S)
    connection.sendall(f"POST /ui/api/picture?model=a HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode() + body)
    return connection


def test_who_sends_no_more_gives_its_place_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.api.ui.SILENCE_S", 0.1)
    with serving() as client:
        silent = [_upload(client, "Content-Length: 9") for _ in range(PICTURE_PLACES)]
        until(lambda: client.post("/ui/api/picture?model=a", content=b"1").status_code == 200, "a free place")
        for connection in silent:
            assert connection.recv(12) == b"HTTP/1.1 400"
            connection.close()


def test_who_takes_no_more_gives_its_place_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.api.ui.SILENCE_S", 0.1)
    page = Page()
    page.told = "a" * (16 << 20)
    with serving(page) as client:
        silent = [client.stream("GET", "/ui/api/live") for _ in range(WATCHER_PLACES)]
        for stream in silent:
            stream.__enter__()
        page.told = ""
        until(lambda: _is_let_in(client), "a free place")
        for stream in silent:
            stream.__exit__(None, None, None)


def _is_let_in(client: httpx.Client) -> bool:
    with client.stream("GET", "/ui/api/live") as watching:
        return watching.status_code == 200


def test_a_body_that_ends_in_the_middle_or_is_not_what_it_says_is_nobodys_bug(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as client:
        _upload(client, "Content-Length: 9").close()
        until(lambda: client.post("/ui/api/picture?model=a", content=b"1").status_code == 200, "an answer")
        assert "Error handling request" not in caplog.text
        packed = _upload(client, "Content-Encoding: gzip\r\nContent-Length: 5", b"abcde")
        assert packed.recv(12) == b"HTTP/1.1 400"
        packed.close()


def test_looks_come_one_after_another_and_go_on_where_the_last_ended() -> None:
    with serving() as client, client.stream("GET", "/ui/api/live") as events:
        assert events.headers["content-type"] == "text/event-stream"
        lines = (line for line in events.iter_lines() if line)
        assert json.loads(next(lines).removeprefix("data: "))["after"] == 0
        assert json.loads(next(lines).removeprefix("data: "))["after"] == 5


def test_only_so_many_watch_and_a_server_that_leaves_waits_for_none() -> None:
    with serving() as client:
        streams: list[Any] = [client.stream("GET", "/ui/api/live") for _ in range(WATCHER_PLACES)]
        opened = [stream.__enter__() for stream in streams]
        assert {each.status_code for each in opened} == {200}
        assert client.get("/ui/api/live").status_code == 503
        for stream in streams:
            stream.__exit__(None, None, None)
