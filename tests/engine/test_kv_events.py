"""Every KV block of a real vLLM is reproduced from its own events, and requests follow their prefix.

One engine, with small blocks. The other backend is the simulator under the same model name, which publishes nothing:
what leads a request to the engine is its events alone.
"""

from __future__ import annotations

import json
import socket
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import blake3
import httpx
import pytest
from tokenizers import Tokenizer

from gateway.routing.blocks.chain import DEFAULT_SEED, Chain
from gateway.routing.blocks.index import BlockIndex
from gateway.routing.blocks.prompt import PlacedImage, TokenPrompt
from gateway.upstream.kv_events.feed import Feed
from gateway.upstream.kv_events.follower import Follower, Line
from tests.engine.gateway_process import GatewayProcess
from tests.engine.kv_cases import BLOCK_FLAGS, BLOCK_TOKENS, CASES, Case, filler, kv_events_flag, messages_of
from tests.engine.pictures import data_url, drawn, png
from tests.engine.vllm import VllmServer, wait_until
from tests.simulator.process import SimulatorProcess

MODEL = "tiny-qwen3vl-events"
REAL, STANDIN = "real", "stand-in"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Published:
    """An engine that publishes, and what it published, once by its own hashes and once by what blocks contain."""

    server: VllmServer
    folder: Path
    lines: dict[str | None, Line]

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = httpx.post(f"{self.server.url}{path}", json=body, timeout=120, trust_env=False)
        assert response.status_code == httpx.codes.OK, response.text
        answer: dict[str, Any] = response.json()
        return answer


@pytest.fixture(scope="module")
def published(request: pytest.FixtureRequest) -> Iterator[Published]:
    engine_dir: Path = request.config.getoption("--engine-dir")
    port, replay_port = free_port(), free_port()
    server = VllmServer(engine_dir, "qwen3vl", MODEL, *BLOCK_FLAGS, kv_events_flag(port, replay_port))
    endpoint, replay = f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{replay_port}"
    lines = {}
    for seed in (None, DEFAULT_SEED):
        feed = Feed(BlockIndex(10_000, engine_names=seed is not None), with_tokens=seed is None, can_replay=True)
        lines[seed] = Line(feed, endpoint, replay, b"kv", 0)
    follower = Follower(None, 10.0)
    with ExitStack() as stack:
        stack.callback(server.end)
        server.begin()
        server.wait_healthy()
        stack.callback(follower.stop)
        follower.start()
        follower.join(list(lines.values()))
        yield Published(server, engine_dir / "models" / "qwen3vl", lines)


def mm_hash(file: bytes, model_root: str) -> str:
    """The id that vLLM gives an image sent without one (0.32.0 multimodal/hasher.py)."""

    def framed(part: bytes) -> bytes:
        return len(part).to_bytes(8, "little") + part

    image, separator = framed(b"image"), b"\x03"
    named = framed(b"model_id") + separator + framed(model_root.encode())
    return blake3.blake3(image + separator + image + separator + framed(file) + named).hexdigest()


def prompt_of(published: Published, case: Case) -> TokenPrompt:
    """The prompt as the engine's own /tokenize has it, its runs of image tokens named."""
    ids = published.post("/tokenize", {"model": MODEL, "messages": messages_of(case)})["tokens"]
    pad = Tokenizer.from_file(str(published.folder / "tokenizer.json")).token_to_id("<|image_pad|>")
    starts = [at for at, token in enumerate(ids) if token == pad and ids[at - 1] != pad]
    root = httpx.get(f"{published.server.url}/v1/models", trust_env=False).json()["data"][0]["root"]
    images = []
    for start, (uuid, file) in zip(starts, case.images, strict=True):
        length = next(at for at in range(start, len(ids) + 1) if at == len(ids) or ids[at] != pad) - start
        images.append(PlacedImage(start, length, uuid or mm_hash(file, root)))
    return TokenPrompt(array("Q", ids), tuple(images), case.salt)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_block_that_the_engine_stores_is_known_beforehand(published: Published, case: Case) -> None:
    prompt = prompt_of(published, case)
    salted = {"cache_salt": case.salt} if case.salt else {}
    chat = {"model": MODEL, "messages": messages_of(case), "max_tokens": 1, "temperature": 0} | salted
    published.post("/v1/chat/completions", chat)
    for seed, line in published.lines.items():
        recipe = None
        wait_until(lambda line=line: line.feed.fresh and line.feed.index.block_tokens is not None, 20, "it listens")
        recipe = line.feed.index.recipe(seed, pads=False)
        assert recipe is not None
        chain = Chain(prompt, recipe)
        assert chain.full_blocks == len(prompt.token_ids) // BLOCK_TOKENS
        wait_until(
            lambda line=line, chain=chain: line.feed.index.held_blocks(chain) == chain.full_blocks, 20, "all are held"
        )
    details = published.post("/v1/chat/completions", chat)["usage"]["prompt_tokens_details"]
    assert details["cached_tokens"] == (len(prompt.token_ids) - 1) // BLOCK_TOKENS * BLOCK_TOKENS


@dataclass(frozen=True, slots=True)
class Front:
    """A gateway in front of both backends."""

    gateway: GatewayProcess

    def chat(self, messages: Sequence[dict[str, Any]]) -> tuple[str, int, int | None]:
        """Backend, tokens that it took from its cache, and how many the gateway said it would."""
        before = len(self._lines())
        body = {"model": MODEL, "messages": list(messages), "max_tokens": 1, "temperature": 0}
        response = httpx.post(f"{self.gateway.url}/v1/chat/completions", json=body, timeout=120, trust_env=False)
        assert response.status_code == httpx.codes.OK, response.text
        cached = response.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        wait_until(lambda: len(self._lines()) > before, 20, "the access line is there")
        return response.headers["x-vlmgw-backend"], cached, self._lines()[-1].get("exact_prefix")

    def _lines(self) -> list[dict[str, Any]]:
        read = [json.loads(line) for line in self.gateway.said().splitlines() if line.startswith("{")]
        return [line for line in read if "decision" in line]

    def metric(self, name: str) -> float:
        text = httpx.get(f"{self.gateway.admin_url}/metrics", timeout=20, trust_env=False).text
        return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"vlmgw_{name}"))


@pytest.fixture(scope="module")
def front(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with SimulatorProcess("--served-model-name", MODEL, "--family", "qwen3_vl", "--speed", "0") as standin:
        backends = [{"url": published.server.url, "name": REAL}, {"url": standin.url, "name": STANDIN}]
        models = {MODEL: {"tokenizer": str(published.folder), "checkpoint": "Qwen3-VL-8B"}}
        folder = tmp_path_factory.mktemp("gateway")
        with GatewayProcess(folder, backends, {}, models, models=1) as gateway:
            front = Front(gateway)
            wait_until(lambda: front.metric('kv_event_backends{state="fresh"}') == 1, 30, "it follows the engine")
            yield front


def text_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def until_known(chat: Callable[[], tuple[str, int, int | None]], least: int) -> tuple[str, int, int | None]:
    """Ask again until the events of what was stored before are here; an engine sends them with its next step."""
    give_up_at = time.monotonic() + 30
    while True:
        backend, cached, told = chat()
        if told is not None and told >= least:
            return backend, cached, told
        assert time.monotonic() < give_up_at, (backend, cached, told)


def test_a_prompt_that_the_gateway_never_saw_goes_where_its_blocks_are(published: Published, front: Front) -> None:
    """Sent to the engine directly: only its events can tell."""
    history = text_message(filler(70))
    direct = {"model": MODEL, "messages": [history], "max_tokens": 1, "temperature": 0}
    published.post("/v1/chat/completions", direct)
    for number in range(4):
        turn = [history, {"role": "assistant", "content": "x"}, text_message(f"and number {number}?")]
        backend, cached, told = until_known(lambda turn=turn: front.chat(turn), BLOCK_TOKENS * 8)
        assert (backend, cached) == (REAL, told)
    assert front.metric('exact_prefixes_total{result="as_told"}') >= 4
    assert front.metric("kv_event_gaps_total") == 0


def test_a_conversation_about_an_image_is_continued_where_it_is_held(front: Front) -> None:
    picture = {"type": "image_url", "image_url": {"url": data_url(png(drawn(320, 288, seed=5)))}}
    question = {"role": "user", "content": [picture, {"type": "text", "text": "What is it? " + filler(80)[:300]}]}
    backend = STANDIN
    for number in range(20):
        backend, _, _ = front.chat([question, text_message(str(number))])
        if backend == REAL:
            break
    if backend != REAL:
        pytest.fail("every request went to the stand-in")
    for number in range(30, 33):
        turn = [question, {"role": "assistant", "content": "a box"}, text_message(f"sure, {number}?")]
        backend, cached, told = until_known(lambda turn=turn: front.chat(turn), BLOCK_TOKENS * 3)
        assert (backend, cached) == (REAL, told)
