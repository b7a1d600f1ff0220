"""Pictures that the doctor sends: readable, and compared with whatever the engine tells."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from gateway.cli.trial import SIZES, drawn, trial_rows
from gateway.media.codecs.probe import probe_all
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from tests.journey.fakes import MODEL, view

SERVED = ModelBook(shipped_catalog()).serve(MODEL, ())


def test_the_pictures_have_the_sizes_they_should() -> None:
    for size in SIZES:
        data = base64.b64decode(drawn(size).removeprefix("data:image/png;base64,"))
        probe = probe_all(data)
        assert (probe.upright, probe.complete) == (size, True)


@contextmanager
def engine(answer: bytes, status: int = 200) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert body["max_tokens"] == 1
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_reported_image_tokens_are_compared() -> None:
    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"multimodal_tokens": {"image": 64}}}
    with engine(json.dumps({"usage": usage}).encode()) as url:
        rows = trial_rows(view("a", url=url), SERVED, None)
    assert [row["agrees"] for row in rows[:3]] == [True, True, False]
    assert rows[2]["predicted"] == 196


def test_otherwise_the_prompts_growth_is() -> None:
    with engine(b'{"usage": {"prompt_tokens": 9}}') as url:
        rows = trial_rows(view("a", url=url), SERVED, "key")
    assert [(row["predicted"], row["actual"]) for row in rows[:2]] == [(66, 0), (66, 0)]


@pytest.mark.parametrize(
    "details", [[], [1], "odd", {"multimodal_tokens": [1]}, {"multimodal_tokens": {"image": True}}]
)
def test_details_of_another_shape_are_none(details: object) -> None:
    usage = {"prompt_tokens": 9, "prompt_tokens_details": details}
    with engine(json.dumps({"usage": usage}).encode()) as url:
        rows = trial_rows(view("a", url=url), SERVED, None)
    assert (rows[0]["predicted"], rows[0]["actual"]) == (66, 0)


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (b"{}", 200, "no usage"),
        (b"[]", 200, "AttributeError"),
        (b"no", 200, "JSONDecodeError"),
        (b"{}", 400, "status 400"),
    ],
)
def test_what_goes_wrong_is_said_once(answer: bytes, status: int, said: str) -> None:
    with engine(answer, status) as url:
        (row,) = trial_rows(view("a", url=url), SERVED, None)
    assert said in str(row["error"])
