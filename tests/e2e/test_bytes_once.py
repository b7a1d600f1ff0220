"""Bytes once, as a client and an engine meet it: histories as ids, emptied caches unseen, tenants apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from gateway.api.auth import hash_key
from tests.e2e.processes import Engine, Gateway, until, write_policies
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

CAP_PIXELS = "200704"
QUICK = ("--max-pixels", CAP_PIXELS, "--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9")
SGLANG_MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
ACME, OTHER, WHOLE = "vgw-acme-0123456789", "vgw-other-0123456789", "vgw-whole-0123456789"
TENANTS = {"acme": (ACME, ""), "other": (OTHER, ""), "whole": (WHOLE, "bytes_once: never\n")}


@dataclass(frozen=True, slots=True)
class Site:
    """A vLLM, an SGLang, and the gateway in front of both."""

    vllm: Engine
    sglang: Engine
    gateway: Gateway

    def ask(self, path: str, key: str, **body: Any) -> httpx.Response:
        response = httpx.post(
            f"{self.gateway.url}{path}", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=60,
            trust_env=False,
        )  # fmt: skip
        assert response.status_code == 200, response.text
        return response

    def chat(self, *pictures: str, key: str = ACME, model: str = MODEL, **fields: Any) -> httpx.Response:
        parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        content = [*parts, {"type": "text", "text": "And now?"}]
        messages = [{"role": "user", "content": content}]
        return self.ask("/v1/chat/completions", key, model=model, messages=messages, max_tokens=2, **fields)

    def pictures(self, engine: Engine) -> list[list[dict[str, Any]]]:
        """What each request since the last look brought of its pictures."""
        found = [request["images"] for request in engine.requests()]
        engine.forget()
        return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    files = {name: f"tenant: {name}\nkeys: ['{hash_key(key)}']\n{more}" for name, (key, more) in TENANTS.items()}
    policies = write_policies(tmp_path_factory.mktemp("policies"), default="", **files)
    with ExitStack() as stack:
        vllm = stack.enter_context(Engine(*QUICK))
        sglang = stack.enter_context(Engine("--engine", "sglang", "--served-model-name", SGLANG_MODEL, *QUICK))
        gateway = stack.enter_context(
            Gateway(
                "--backend", vllm.url, "--backend", sglang.url, "--max-pixels", CAP_PIXELS, "--pool", "1",
                "--policies", str(policies),
            )
        )  # fmt: skip
        yield Site(vllm, sglang, gateway)


def photograph(seed: int) -> str:
    """Above the cap, and no other is like it."""
    return data_url(drawn.jpeg(800, 600 + 8 * seed, (40 + seed, 90, 200)))


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_is_sent_once(site: Site, stream: bool) -> None:
    small = data_url(drawn.jpeg(224, 224 + 28 * stream))
    urls = [photograph(stream), photograph(2 + stream), small]
    before = site.vllm.state()
    site.vllm.forget()
    answers = [site.chat(*urls[:count], stream=stream) for count in (1, 2, 3, 3)]
    assert answers[-1].headers["x-vlmgw-images"] == "passed=1, shrunk=2, recoded=0, by_id=3"
    turns = site.pictures(site.vllm)
    assert [[image["sent_bytes"] > 0 for image in images] for images in turns] == [
        [True], [False, True], [False, False, True], [False] * 3
    ]  # fmt: skip
    ids = [image["uuid"] for image in turns[-1]]
    assert len(set(ids)) == 3
    assert [image["uuid"] for image in turns[0]] == ids[:1]
    assert site.vllm.state()["pictures_met"] - before["pictures_met"] == 3


def test_an_emptied_cache_is_filled_again_and_nobody_notices(site: Site) -> None:
    urls = [photograph(10), photograph(11)]
    site.chat(*urls)
    usual = site.chat(*urls).json()["usage"]["prompt_tokens"]
    site.vllm.forget()
    httpx.post(f"{site.vllm.url}/reset_mm_cache", trust_env=False, timeout=30).raise_for_status()
    answer = site.chat(*urls)
    assert answer.json()["usage"]["prompt_tokens"] == usual
    line = site.gateway.access_line(answer.headers["x-request-id"])
    assert (line["status"], line["retries"]) == (200, ["cache_miss"])
    assert line["image_ids"] == {"sent": 2, "alone": 0, "missed": 2}
    (_, brought) = site.pictures(site.vllm)
    assert [image["sent_bytes"] > 0 for image in brought] == [True, True]
    assert "by_id=2" in site.chat(*urls).headers["x-vlmgw-images"]


def test_tenants_share_no_picture_and_a_policy_may_send_bytes_always(site: Site) -> None:
    url = photograph(20)
    site.vllm.forget()
    for key in (ACME, ACME, OTHER, WHOLE, WHOLE):
        site.chat(url, key=key)
    sent = [images[0] for images in site.pictures(site.vllm)]
    assert [image["sent_bytes"] > 0 for image in sent] == [True, False, True, True, True]
    assert len({image["uuid"] for image in sent}) == 3
    # Nobody can name another's: a client's own id is taken out.
    part = {"type": "image_url", "image_url": {"url": photograph(21)}, "uuid": sent[0]["uuid"]}
    messages = [{"role": "user", "content": [part]}]
    site.ask("/v1/chat/completions", OTHER, model=MODEL, messages=messages, max_tokens=1)
    ((stranger,),) = site.pictures(site.vllm)
    assert stranger["uuid"] not in {image["uuid"] for image in sent}


def test_responses_too_but_not_messages(site: Site) -> None:
    url = photograph(30)
    site.vllm.forget()
    content = [{"type": "input_image", "image_url": url}, {"type": "input_text", "text": "?"}]
    for _ in range(2):
        site.ask("/v1/responses", ACME, model=MODEL, input=[{"role": "user", "content": content}], max_output_tokens=2)
    assert [images[0]["sent_bytes"] > 0 for images in site.pictures(site.vllm)] == [True, False]
    source = {"type": "base64", "media_type": "image/jpeg", "data": url.partition(",")[2]}
    block = {"type": "image", "source": source}
    for _ in range(2):
        site.ask("/v1/messages", ACME, model=MODEL, messages=[{"role": "user", "content": [block]}], max_tokens=2)
    first, second = (images[0] for images in site.pictures(site.vllm))
    assert first["uuid"] is second["uuid"] is None
    assert first["sha256"] == second["sha256"], "without ids, equal pictures are equal bytes"


def test_sglang_gets_the_hash_of_the_bytes(site: Site) -> None:
    """The simulator compares, as the engine does: a wrong one would be 400."""
    small = data_url(drawn.jpeg(224, 224))
    site.chat(photograph(40), small, model=SGLANG_MODEL)
    ((large, untouched),) = site.pictures(site.sglang)
    assert large["content_hash"] == f"sha256:{large['sha256']}"
    assert untouched["content_hash"] is None
    assert large["uuid"] is untouched["uuid"] is None


def test_it_is_counted(site: Site) -> None:
    def counts() -> list[float]:
        return [site.gateway.metric("image_ids_total", action=action) for action in ("bytes", "alone", "missed")]

    before = counts()
    for _ in range(3):
        site.chat(photograph(50))
    until(lambda: counts() == [before[0] + 1, before[1] + 2, before[2]], "three images by their ids")
