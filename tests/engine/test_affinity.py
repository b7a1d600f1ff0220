"""Two engines of one model: every image is encoded once, a history goes as ids, an emptied cache is no harm.

Counts are the engines' own: of their multimodal caches, of the tokens they took from their prefix caches, of the bytes
they received.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engine.chat import Answer, ask
from tests.engine.conftest import ENGINE_CAP_PIXELS
from tests.engine.gateway_process import GatewayProcess
from tests.engine.pictures import data_url, drawn, jpeg
from tests.engine.vllm import VllmServer

MODEL = "tiny-qwen3vl"
NAMES = ("one", "two")
IMAGES, ROUNDS, AT_A_TIME = 20, 10, 8
TURNS, PICTURES = 10, 5
BLOCK_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Pair:
    """Two engines and one gateway."""

    engines: dict[str, VllmServer]
    gateway: GatewayProcess

    def encoded(self) -> dict[str, int]:
        """How many pictures each engine has met for the first time."""
        return {name: _encoded(engine) for name, engine in self.engines.items()}

    def received_bytes(self) -> float:
        handler = "/v1/chat/completions"
        return sum(each.metric("http_request_size_bytes_sum", handler=handler) for each in self.engines.values())

    def ids(self, action: str) -> float:
        """The gateway's own count of images sent under ids."""
        lines = httpx.get(f"{self.gateway.admin_url}/metrics", timeout=20, trust_env=False).text.splitlines()
        wanted = f'vlmgw_image_ids_total{{action="{action}"}}'
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))


def _encoded(engine: VllmServer) -> int:
    return int(engine.metric("vllm:mm_cache_queries_total") - engine.metric("vllm:mm_cache_hits_total"))


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both with a pixel cap and with the endpoints that empty caches."""
    engine_dir: Path = request.config.getoption("--engine-dir")
    cap = f'--mm-processor-kwargs={{"max_pixels":{ENGINE_CAP_PIXELS}}}'
    with ExitStack() as stack:
        engines = {name: VllmServer(engine_dir, "qwen3vl", MODEL, cap, dev_mode=True) for name in NAMES}
        for engine in engines.values():
            stack.callback(engine.end)
            engine.begin()
        for engine in engines.values():
            engine.wait_healthy()
        backends = [
            {"url": engine.url, "name": name, "max_pixels": ENGINE_CAP_PIXELS} for name, engine in engines.items()
        ]
        folder = tmp_path_factory.mktemp("pair")
        yield Pair(engines, stack.enter_context(GatewayProcess(folder, backends, {}, {}, models=1)))
        for engine in engines.values():
            engine.ask_to_end()


def question(url: str, text: str) -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]
    return {"model": MODEL, "messages": [{"role": "user", "content": parts}], "max_tokens": 1, "temperature": 0}


def ask_all(places: Sequence[str], requests: Sequence[dict[str, Any]]) -> list[Answer]:
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        return list(threads.map(ask, places, requests))


def rounds(files: Sequence[bytes], count: int) -> Iterator[list[dict[str, Any]]]:
    """Every image once a round, in an order of its own, each with a text that was never asked."""
    urls = [data_url(file) for file in files]
    shuffle = random.Random(5).shuffle
    for number in range(count):
        shuffle(urls)
        yield [question(url, f"Round {number}, question {index}?") for index, url in enumerate(urls)]


def test_twenty_images_ten_times_are_encoded_twenty_times_in_all(pair: Pair) -> None:
    before = pair.encoded()
    by_backend: Counter[str] = Counter()
    for requests in rounds([jpeg(drawn(384, 320, seed=seed)) for seed in range(IMAGES)], ROUNDS):
        answers = ask_all([pair.gateway.url] * IMAGES, requests)
        by_backend.update(answer.headers["x-vlmgw-backend"] for answer in answers)
    after = pair.encoded()
    assert sum(after.values()) - sum(before.values()) == IMAGES
    assert sum(by_backend.values()) == IMAGES * ROUNDS
    assert max(by_backend.values()) <= 0.6 * IMAGES * ROUNDS, by_backend
    assert pair.ids("alone") == IMAGES * (ROUNDS - 1)
    assert pair.ids("missed") == 0


def test_in_turn_they_would_be_encoded_twice(pair: Pair) -> None:
    """The contrast: the same traffic, dealt out one by one. Three rounds show it."""
    before = sum(pair.encoded().values())
    dealt = 0
    for requests in rounds([jpeg(drawn(384, 320, seed=60 + seed)) for seed in range(IMAGES)], 3):
        places = [pair.engines[NAMES[(dealt + index) % 2]].url for index in range(IMAGES)]
        dealt += IMAGES + 1
        ask_all(places, requests)
    encoded = sum(pair.encoded().values()) - before
    assert encoded > 1.5 * IMAGES, encoded


def turn_of(urls: Sequence[str], turn: int) -> dict[str, Any]:
    """The whole conversation up to this turn; the first turns bring one picture each."""
    messages: list[dict[str, Any]] = []
    for number in range(turn + 1):
        parts: list[dict[str, Any]] = [{"type": "text", "text": f"Question {number}: what is new?"}]
        if number < len(urls):
            parts.insert(0, {"type": "image_url", "image_url": {"url": urls[number]}})
        messages.append({"role": "user", "content": parts})
        if number < turn:
            messages.append({"role": "assistant", "content": f"Answer {number}: a corner."})
    return {"model": MODEL, "messages": messages, "max_tokens": 1, "temperature": 0}


def by_id(answer: Answer) -> int:
    return int(answer.headers["x-vlmgw-images"].partition("by_id=")[2] or 0)


@dataclass(slots=True)
class Talk:
    """A conversation so far."""

    urls: list[str]
    turn: int = 0
    sent_bytes: int = 0
    backends: frozenset[str] = frozenset()

    def go_on(self, url: str) -> Answer:
        request = turn_of(self.urls, self.turn)
        self.sent_bytes += sum(len(each) for each in self.urls[: self.turn + 1])
        answer = ask(url, request)
        self.turn += 1
        self.backends |= {answer.headers["x-vlmgw-backend"]}
        return answer

    @property
    def history(self) -> int:
        """Images that the turn just taken repeated."""
        return min(self.turn - 1, len(self.urls))


def photographs(first_seed: int) -> list[str]:
    return [data_url(jpeg(drawn(1600, 1200, seed=first_seed + index))) for index in range(PICTURES)]


def test_a_history_goes_as_ids_and_its_prefix_is_found(pair: Pair) -> None:
    before, encoded = pair.received_bytes(), sum(pair.encoded().values())
    talk = Talk(photographs(110))
    cached, possible, prompt = 0, 0, 0
    for _ in range(TURNS):
        answer = talk.go_on(pair.gateway.url)
        assert by_id(answer) == talk.history
        usage = answer.document["usage"]
        cached += usage["prompt_tokens_details"]["cached_tokens"]
        possible += prompt // BLOCK_TOKENS * BLOCK_TOKENS
        prompt = usage["prompt_tokens"]
    assert len(talk.backends) == 1
    assert sum(pair.encoded().values()) - encoded == PICTURES
    assert cached >= 0.9 * possible > 0
    assert 10 * (pair.received_bytes() - before) <= talk.sent_bytes


def test_caches_emptied_in_the_middle_are_filled_again_unseen(pair: Pair) -> None:
    talk = Talk(photographs(160))
    missed = pair.ids("missed")
    for turn in range(TURNS):
        if turn == TURNS // 2:
            for engine in pair.engines.values():
                httpx.post(f"{engine.url}/reset_mm_cache", timeout=30, trust_env=False).raise_for_status()
        answer = talk.go_on(pair.gateway.url)
        assert by_id(answer) == (0 if turn == TURNS // 2 else talk.history)
    assert pair.ids("missed") == missed + PICTURES
    (backend,) = talk.backends
    last = turn_of(talk.urls, TURNS - 1) | {"logprobs": True}
    through, direct = ask(pair.gateway.url, last), ask(pair.engines[backend].url, last)
    assert through.document["usage"]["prompt_tokens"] == direct.document["usage"]["prompt_tokens"]
