from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.blocks.chain import DEFAULT_SEED, Chain, Recipe
from gateway.routing.blocks.index import BlockIndex, Cleared, Removed, Stored, block_number
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import TokenPrompt
from tests.routing.blocks.recorded import events_of, recording, spoken

BOTH = pytest.mark.parametrize("engine_names", [True, False])
SIZE = 4


def index_of(*, engine_names: bool, limit: int = 1000) -> BlockIndex:
    return BlockIndex(limit, engine_names=engine_names)


def prompt_of(tokens: Sequence[int]) -> TokenPrompt:
    return TokenPrompt(array("Q", tokens))


def stored(tokens: Sequence[int], *, first: int = 0) -> Stored:
    """The blocks of a prompt from ``first`` on, under the names that an engine with the default seed has for them."""
    chain = Chain(prompt_of(tokens), Recipe(SIZE, DEFAULT_SEED))
    names = [chain[index] for index in range(first, chain.full_blocks)]
    parent = chain[first - 1] if first else None
    return Stored(names, parent, tokens[first * SIZE :], SIZE)


def held(index: BlockIndex, tokens: Sequence[int]) -> int | None:
    seed = DEFAULT_SEED if index.recipe(DEFAULT_SEED, pads=False) != index.recipe(None, pads=False) else None
    return PromptChains(prompt_of(tokens)).held_tokens([index], seed, pads=False)


@BOTH
def test_what_a_real_engine_published_is_found_and_forgotten_as_it_says(engine_names: bool) -> None:
    index = index_of(engine_names=engine_names)
    seed = DEFAULT_SEED if engine_names else None
    for said in spoken():
        chains = PromptChains(said.prompt)
        assert chains.held_tokens([index], seed, pads=False) == 0
        for event in said.stored:
            index.apply(event)
        assert chains.held_tokens([index], seed, pads=False) == said.cached_again
    for change in events_of(recording()["evicting"]):
        index.apply(change)
    assert 0 < index.entries <= 96
    first = PromptChains(spoken()[0].prompt)
    assert first.held_tokens([index], seed, pads=False) == 160  # from its end on, three blocks were evicted
    for change in events_of(recording()["cleared"]):
        index.apply(change)
    assert first.held_tokens([index], seed, pads=False) == spoken()[0].cached_again
    assert index.entries == 8


@BOTH
def test_the_run_from_the_start_counts_and_never_the_last_token(engine_names: bool) -> None:
    index, tokens = index_of(engine_names=engine_names), list(range(12))
    index.apply(stored(tokens))
    assert held(index, tokens) == 8
    assert held(index, [*tokens, 99]) == 12
    assert held(index, [*tokens[:8], 77, 77, 77, 77, 77]) == 8
    middle = stored(tokens).blocks[1]
    index.apply(Removed([middle], "GPU"))
    assert held(index, [*tokens, 99]) == 4


@BOTH
def test_a_block_is_held_while_any_medium_has_it(engine_names: bool) -> None:
    index, tokens = index_of(engine_names=engine_names), list(range(9))
    index.apply(replace(stored(tokens), medium="GPU"))
    index.apply(replace(stored(tokens), medium="CPU"))
    index.apply(Removed(stored(tokens).blocks, "GPU"))
    assert held(index, tokens) == 8
    index.apply(Removed(stored(tokens).blocks, "CPU"))
    assert (held(index, tokens), index.entries) == (0, 0)


@BOTH
@pytest.mark.parametrize(
    "event",
    [
        replace(stored(range(9)), locality="REMOTE"),
        replace(stored(range(9)), kind="sliding_window"),
        replace(stored(range(9)), kind="mamba", group=1),
    ],
    ids=["elsewhere", "window", "state"],
)
def test_what_says_nothing_about_a_whole_prefix_here_is_left_out(engine_names: bool, event: Stored) -> None:
    index = index_of(engine_names=engine_names)
    index.apply(event)
    assert index.entries == 0


@BOTH
def test_another_groups_removal_takes_nothing(engine_names: bool) -> None:
    index, tokens = index_of(engine_names=engine_names), list(range(9))
    index.apply(replace(stored(tokens), group=0))
    index.apply(replace(stored(tokens), group=1))
    index.apply(Removed(stored(tokens).blocks, "GPU", 1))
    assert held(index, tokens) == 8


@BOTH
def test_partial_blocks_at_the_end_do_not_disturb(engine_names: bool) -> None:
    index, tokens = index_of(engine_names=engine_names), list(range(9))
    index.apply(stored(tokens))
    index.apply(Stored([5], None, [1, 2], 2))
    assert (held(index, tokens), index.block_tokens) == (8, SIZE)


@BOTH
def test_it_never_keeps_more_than_it_may(engine_names: bool) -> None:
    index, tokens = index_of(engine_names=engine_names, limit=2), list(range(17))
    index.apply(stored(tokens))
    index.apply(stored(tokens))
    assert (index.entries, held(index, tokens)) == (2, 8)
    assert index.overflowed > 0


def test_blocks_whose_beginning_is_not_known_are_no_prefix() -> None:
    index, tokens = index_of(engine_names=False), list(range(13))
    index.apply(stored(tokens, first=2))
    assert (index.entries, index.orphans) == (0, 1)
    index.apply(stored(tokens))
    assert held(index, tokens) == 12


@BOTH
def test_a_restart_of_the_engine_leaves_nothing(engine_names: bool) -> None:
    index, tokens = index_of(engine_names=engine_names), list(range(9))
    index.apply(stored(tokens))
    index.apply(Cleared())
    assert (held(index, tokens), index.entries) == (0, 0)


@given(st.lists(st.lists(st.integers(0, 2), max_size=14), max_size=8), st.lists(st.integers(0, 30), max_size=20))
def test_both_ways_of_naming_say_the_same(prompts: list[list[int]], removals: list[int]) -> None:
    indexes = [index_of(engine_names=True), index_of(engine_names=False)]
    for index in indexes:
        for tokens in prompts:
            index.apply(stored(tokens))
        names = [block for tokens in prompts for block in stored(tokens).blocks]
        for at in removals:
            index.apply(Removed(names[at : at + 1]))
    gone = {stored_name for at in removals for stored_name in _names(prompts)[at : at + 1]}
    for tokens in prompts:
        asked = [*tokens, 9]
        count = next((n for n, name in enumerate(stored(tokens).blocks) if name in gone), len(stored(tokens).blocks))
        assert [held(index, asked) for index in indexes] == [count * SIZE] * 2


def _names(prompts: list[list[int]]) -> list[int]:
    return [block for tokens in prompts for block in stored(tokens).blocks]


def test_a_block_has_one_number_however_it_is_written() -> None:
    whole = bytes(range(32))
    last = int.from_bytes(whole[-8:], "big")
    assert block_number(whole) == block_number(last) == block_number(last - 2**64) == last
