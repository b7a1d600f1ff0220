"""Two gateways that share a Redis: what one has sent somewhere, the other sends there too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.e2e.processes import DEADLINE_S, Engine, Gateway, until
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import chat, image_part
from tests.state.redis_server import running

pytestmark = pytest.mark.slow

PICTURES = [data_url(drawn.png(320 + 32 * number, 320), "image/png") for number in range(4)]


@pytest.fixture(scope="module")
def fleet() -> Iterator[tuple[Engine, list[Gateway]]]:
    """The second gateway knows one backend more; by rendezvous alone it would give that one its share of the images."""
    with ExitStack() as stack:
        redis = stack.enter_context(running())
        old, new = (stack.enter_context(Engine("--speed", "0")) for _ in range(2))
        shared = {"VLMGW_REDIS_URL": redis.url, "VLMGW_REDIS_DEADLINE_S": "5"}
        gateways = [
            stack.enter_context(Gateway(*words, "--pool", "1", environment=shared))
            for words in (("--backend", old.url), ("--backend", old.url, "--backend", new.url))
        ]
        yield old, gateways


def ask(gateway: Gateway, picture: str) -> str:
    answer = httpx.post(
        f"{gateway.url}/v1/chat/completions",
        json=chat(image_part(picture), "What is it?", max_tokens=1),
        timeout=DEADLINE_S,
        trust_env=False,
    )
    assert answer.status_code == httpx.codes.OK
    return answer.headers["x-vlmgw-backend"]


def test_images_stay_where_another_replica_has_sent_them(fleet: tuple[Engine, list[Gateway]]) -> None:
    old, (first, second) = fleet
    assert {ask(first, picture) for picture in PICTURES} == {old.name}
    until(lambda: second.metric("image_hints_total", direction="heard") == len(PICTURES), "hints")
    until(lambda: first.metric("image_hints_total", direction="told") == len(PICTURES), "hints that were told")
    assert {ask(second, picture) for picture in PICTURES} == {old.name}
    until(lambda: second.metric("affinity_hits_total") == len(PICTURES), "as many pictures where they were")
