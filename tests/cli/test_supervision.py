"""How the answers of several processes become one, where no process is needed to see it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gateway.cli.supervision import Supervision
from gateway.cli.supervisor import Supervisor
from gateway.config.settings import Settings
from gateway.config.sources import load_settings
from gateway.telemetry.log import JsonLog


class Answers(BaseHTTPRequestHandler):
    """A process's admin port: live as told, with a problem as told."""

    live = True
    problems: tuple[str, ...] = ()
    count = 1.0

    def do_GET(self) -> None:
        text = f"# HELP vlmgw_a_total A.\n# TYPE vlmgw_a_total counter\nvlmgw_a_total {self.count}\n"
        self.answer(200 if self.live else 503, text)

    def do_POST(self) -> None:
        self.answer(200, json.dumps({"problems": self.problems}))

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's
        return


@contextmanager
def admin(**answers: object) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Answers,), answers))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def settings() -> Settings:
    return load_settings(environment={}, flags={"server.processes": 2, "server.admin_port": 0})


@contextmanager
def supervision(*ports: int) -> Iterator[tuple[Supervisor, Supervision]]:
    log = JsonLog("error", access=False)
    supervisor = Supervisor(settings(), {}, None, log)
    for sibling, port in zip(supervisor.siblings, ports, strict=True):
        sibling.admin_port, sibling.generation = port, 1
    made = Supervision(supervisor, settings())
    try:
        yield supervisor, made
    finally:
        made.stop()
        log.close()


def test_a_stuck_process_is_not_live_and_one_that_is_away_is_not_stuck() -> None:
    with admin() as one, admin(live=False) as two, supervision(one, two) as (supervisor, made):
        loop = asyncio.new_event_loop()
        view = made.view(loop)
        assert view.beat_age_s() == float("inf")
        assert view.readiness() == {"not_draining": True, "a_process_ready": True}
        assert view.notes() == [f"[+]process 1 on admin port {one}", f"[-]process 2 on admin port {two}"]
        supervisor.siblings[1].admin_port = 0
        assert view.beat_age_s() == 0
        assert view.config()["server"]
        loop.close()


def test_counts_of_one_that_was_replaced_are_kept() -> None:
    with admin() as one, admin(count=5.0) as two, supervision(one, two) as (supervisor, made):
        loop = asyncio.new_event_loop()
        view = made.view(loop)
        assert b"vlmgw_a_total 6.0\n" in view.render_metrics("")[0]
        supervisor.siblings[1].admin_port = 0
        assert b"vlmgw_a_total 6.0\n" in view.render_metrics("")[0]
        supervisor.siblings[1].admin_port, supervisor.siblings[1].generation = two, 2
        assert b"vlmgw_a_total 11.0\n" in view.render_metrics("")[0]
        assert b"vlmgw_a_total 11.0\n" in view.render_metrics("")[0]
        loop.close()


async def test_problems_of_all_are_said_once_and_of_one_with_its_number() -> None:
    with admin(problems=("bad",)) as one, admin(problems=("bad", "worse")) as two, supervision(one, two) as (_, made):
        view = made.view(asyncio.get_running_loop())
        assert await view.ask_reload() == ["bad", "process 2: worse"]
    with admin() as one, supervision(one, 9) as (_, made):
        assert await made.view(asyncio.get_running_loop()).ask_reload() == [
            "process 2: could not be asked: ConnectError"
        ]
