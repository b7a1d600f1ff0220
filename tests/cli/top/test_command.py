"""The command against real admin ports: added up, with a token, without an answer, for programs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gateway.cli.top.command import Watched
from tests.cli.command import NOBODY, run
from tests.cli.top.test_reading import BEFORE, NOW


@contextmanager
def admin(*answers: str, status: int = 200, token: str = "") -> Iterator[str]:
    """An admin port that gives one answer after the other, then the last again."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = not token or self.headers["Authorization"] == f"Bearer {token}"
            body = (left.pop(0) if len(left) > 1 else left[0]).encode()
            self.send_response(status if is_known else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the library names it
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_one_look_for_programs() -> None:
    with admin(BEFORE, NOW, token="t") as one, admin(BEFORE, NOW, token="t") as two:
        ran = run("top", "--once", "--json", "--interval", "0.05", "--admin", one, "--admin", two, "--token", "t")
    assert ran.code == 0
    assert ran.json["gateways"] == 2
    assert ran.json["problems"] == []
    assert ran.json["requests"]["ok"] > 0
    assert ran.json["pool"]["workers"] == 4
    assert [row["name"] for row in ran.json["backends"]] == ["a"]


def test_one_look_for_people_and_who_does_not_answer_is_told() -> None:
    with admin(BEFORE, NOW) as one, admin("<html>") as two, admin("no", status=404) as three:
        addresses = [one.removeprefix("http://"), two, three, NOBODY]
        ran = run("top", "--once", "--interval", "0.05", *(word for each in addresses for word in ("--admin", each)))
    assert ran.code == 0
    for told in ("1 gateway ", "no metrics of a gateway", "answered 404", "no answer (ConnectError)", "Backends"):
        assert told in ran.out.replace("\n", " "), told


def test_nobody_at_all_is_a_failure() -> None:
    assert run("top", "--once", "--interval", "0.05", "--admin", NOBODY).code == 1


@pytest.mark.parametrize("address", ["ftp://a", "http://", "http://[::1"])
def test_what_is_no_address_is_told(address: str) -> None:
    ran = run("top", "--once", "--admin", address)
    assert ran.code == 2
    assert "--admin" in ran.err


def test_who_comes_back_is_counted_from_then_on() -> None:
    with admin(BEFORE, NOW, "gone", BEFORE, NOW) as url:
        watched = Watched([url], None)
        told = [watched.look() for _ in range(5)]
        watched.close()
    assert [reading.gateways for reading, _ in told] == [1, 1, 0, 1, 1]
    assert told[3][0].requests == {"ok": 0.0}
    assert told[4][0].requests["ok"] > 0


def test_numbers_that_are_none_do_not_end_the_look() -> None:
    odd = 'vlmgw_backend_up{backend="a"} NaN\nvlmgw_pool_workers +Inf\nvlmgw_loop_lag_seconds_bucket{le="x"} 1\n'
    with admin(f'vlmgw_draining NaN\nvlmgw_backend_up{{backend="b"}} 1\n{odd}') as one:
        for flags in ((), ("--json",)):
            ran = run("top", "--once", "--interval", "0.05", "--admin", one, *flags)
            assert ran.code == 0
            assert "NaN" not in ran.out


def test_who_sends_without_end_is_no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.top.command._MOST_BYTES", 1000)
    with admin(NOW + "# more\n" * 1000) as one:
        ran = run("top", "--once", "--interval", "0.05", "--admin", one)
    assert ran.code == 1
    assert "no metrics of a gateway" in ran.out.replace("\n", " ")


def test_a_token_of_any_language_and_a_host_that_cannot_be() -> None:
    with admin(BEFORE, NOW) as one:
        for addresses in (("--admin", one), ("--admin", one, "--admin", f"http://{'a' * 300}:1")):
            ran = run("top", "--once", "--interval", "0.05", "--token", "sésame", *addresses)
            assert (ran.code, "1 gateway" in ran.out) == (0, True)
