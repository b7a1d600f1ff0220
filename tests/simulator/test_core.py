from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import pytest

from gateway.simulator.answer import Sampling, compose
from gateway.simulator.core import Core, Run
from gateway.simulator.prompt import ImageInput, Piece
from gateway.simulator.record import Record
from gateway.simulator.settings import SimulatorSettings
from tests.simulator import drawn


@pytest.fixture
def core() -> Iterator[Core]:
    made = Core(SimulatorSettings(speed=0.0, seed=7))
    yield made
    made.close()


def _record(core: Core) -> Record:
    return core.recorder.begin("POST", "/v1/chat/completions", [])


async def test_a_prompt_is_loaded_expanded_and_recorded(core: Core) -> None:
    record = _record(core)
    pieces: list[Piece] = ["Look: ", ImageInput("messages.0.content.1", drawn.data_url(drawn.jpeg(640, 480)))]
    prompt = await core.prompt(pieces, "salt", "Look: ", record)
    assert prompt.image_tokens == 300
    assert (prompt.salt, prompt.last_user_text) == ("salt", "Look: ")
    assert [image["tokens"] for image in record.images] == [300]


async def test_a_run_emits_all_choices_step_by_step_and_counts(core: Core) -> None:
    record = _record(core)
    prompt = await core.prompt(["one two three"], None, "one", record)
    replies = [compose(prompt, Sampling(max_tokens=limit)) for limit in (2, 3)]
    run = Run(core, prompt, replies, record)
    async with aclosing(run.tokens()) as generated:
        order = [(emitted.choice, emitted.position, emitted.finished is not None) async for emitted in generated]
    assert order == [(0, 0, False), (1, 0, False), (0, 1, True), (1, 1, False), (1, 2, True)]
    usage = run.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.image_tokens) == (prompt.length, 5, 0)
    assert (record.prompt_tokens, record.output_tokens) == (prompt.length, 5)
    assert core.tally.finished["length"] == 2
    assert core.tally.generation_tokens == 5


async def test_a_run_left_early_gives_its_room_back_at_once(core: Core) -> None:
    record = _record(core)
    prompt = await core.prompt(["some words to say"], None, "", record)
    run = Run(core, prompt, [compose(prompt, Sampling(max_tokens=9))], record)
    async with aclosing(run.tokens()) as generated:
        await anext(generated)
        assert core.gauges().running == 1
    assert (core.gauges().running, core.gauges().used_tokens) == (0, 0)
    assert core.tally.finished["length"] == 0


async def test_drift_shows_in_usage_alone(core: Core) -> None:
    record = _record(core)
    prompt = await core.prompt(["words"], None, "", record)
    run = Run(core, prompt, [compose(prompt, Sampling(max_tokens=1))], record)
    run.drift_tokens = 5
    assert run.usage.prompt_tokens == prompt.length + 5
    assert run.usage.image_tokens == 0


def test_ids_are_the_same_sequence_for_the_same_seed() -> None:
    first, second, other = (Core(SimulatorSettings(seed=seed)) for seed in (1, 1, 2))
    ids = [[core.new_id() for _ in range(2)] for core in (first, second, other)]
    for core in (first, second, other):
        core.close()
    assert ids[0] == ids[1] != ids[2]
    assert all(len(entry) == 16 for entry in ids[0])
