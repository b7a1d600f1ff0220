"""The scenes of ``vision`` on simulated engines of both kinds: what holds directly holds through the gateway, alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from openai import OpenAI

from tests.contract.vision import ENGINES_IMAGE_LIMIT, SCENES, VLLM_SCENES, Place, Scene
from tests.e2e.processes import Engine, Gateway
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

CAP = str(1280 * 32 * 32)
# All conform, so that both ways hand the engine the same bytes.
FILES = (drawn.jpeg(1312, 960), drawn.png(448, 448), drawn.jpeg(640, 480))
PICTURES = (
    data_url(FILES[0], "image/jpeg"),
    data_url(FILES[1], "image/png"),
    data_url(FILES[2], "image/jpeg"),
)


class _Picture(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "image/jpeg")
        self.send_header("Content-Length", str(len(FILES[0])))
        self.end_headers()
        self.wfile.write(FILES[0])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """The first picture's address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Picture) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/a.jpg"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module", params=["vllm", "sglang"])
def ways(request: pytest.FixtureRequest) -> Iterator[tuple[str, Place, Place]]:
    """The engine's kind, the direct way to it, and the way through the gateway."""
    flags = ("--engine", request.param, "--max-pixels", CAP, "--speed", "0", "--limit-images", str(ENGINES_IMAGE_LIMIT))
    with ExitStack() as stack:
        address = stack.enter_context(served())
        engine = stack.enter_context(Engine(*flags))
        # The origin of the test is on this machine.
        near = {"VLMGW_FETCH_PUBLIC_NETWORKS": "127.0.0.0/8"}
        gateway = stack.enter_context(
            Gateway("--backend", engine.url, "--max-pixels", CAP, "--pool", "1", environment=near)
        )
        places = [
            Place(
                stack.enter_context(OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)),
                MODEL,
                PICTURES,
                address,
            )
            for url in (engine.url, gateway.url)
        ]
        yield request.param, places[0], places[1]


@pytest.mark.parametrize("scene", [*SCENES, *VLLM_SCENES], ids=lambda scene: scene.__name__)
def test_it_holds_directly_and_through_the_gateway_alike(ways: tuple[str, Place, Place], scene: Scene) -> None:
    kind, direct, through = ways
    if scene in VLLM_SCENES and kind != "vllm":
        # SGLang knows no ids: it ignores the field, and so there is nothing to agree on but the missing picture.
        scene = SCENES[-1]
    assert scene(through) == scene(direct)
