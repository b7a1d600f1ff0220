from __future__ import annotations

from array import array
from hashlib import sha256

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.blocks.chain import DEFAULT_SEED, Chain, Recipe, content_hash, pad_tokens
from gateway.routing.blocks.prompt import PlacedImage, TokenPrompt
from tests.routing.blocks.recorded import Spoken, recording, spoken

TOKENS = st.lists(st.integers(0, 2**40), max_size=70)
WORDS = st.text(min_size=1, max_size=30)


@pytest.mark.parametrize("said", spoken(), ids=lambda said: said.name)
def test_every_block_that_a_real_vllm_stored_is_reproduced(said: Spoken) -> None:
    chain = Chain(said.prompt, Recipe(recording()["block_size"], DEFAULT_SEED))
    published = [block for event in said.stored for block in event.blocks]
    assert published
    assert [chain[index] for index in range(chain.full_blocks)] == published


@pytest.mark.parametrize("said", spoken(), ids=lambda said: said.name)
def test_our_own_names_follow_from_what_events_say(said: Spoken) -> None:
    size = recording()["block_size"]
    chain = Chain(said.prompt, Recipe(size))
    parent, made = None, []
    for event in said.stored:
        for index in range(len(event.blocks)):
            tokens = event.token_ids[index * size : (index + 1) * size]
            parent = content_hash(parent, tokens, (event.keys or [()] * len(event.blocks))[index])
            made.append(parent)
    assert [chain[index] for index in range(chain.full_blocks)] == made


@given(TOKENS, st.integers(1, 9), st.none() | WORDS, st.none() | st.tuples(WORDS, WORDS), WORDS, WORDS)
def test_the_engines_recipe_is_canonical_cbor(
    tokens: list[int], size: int, salt: str | None, lora: tuple[str, str] | None, identifier: str, seed: str
) -> None:
    image = PlacedImage(1, max(1, len(tokens) // 2), identifier)
    prompt = TokenPrompt(array("Q", tokens), (image,), salt, lora)
    chain = Chain(prompt, Recipe(size, seed))
    parent = sha256(cbor2.dumps(seed, canonical=True)).digest()
    for index in range(len(tokens) // size):
        start = index * size
        keys: list[tuple[object, ...]] = [] if lora is None else [("lora", *lora)]
        if image.offset < start + size and image.offset + image.length > start:
            keys.append(("mm", identifier, image.offset - start))
        if index == 0 and salt:
            keys.append(("cache_salt", salt))
        whole = (parent, tuple(tokens[start : start + size]), tuple(keys) or None)
        parent = sha256(cbor2.dumps(whole, canonical=True)).digest()
        assert chain[index] == int.from_bytes(parent, "big") & (2**64 - 1)


def test_the_seed_is_the_engines_to_choose() -> None:
    prompt = TokenPrompt(array("Q", range(4)))
    assert Chain(prompt, Recipe(4, "0"))[0] != Chain(prompt, Recipe(4, DEFAULT_SEED))[0]


@given(TOKENS, st.integers(1, 9), st.data())
def test_a_chain_asked_for_piece_by_piece_is_the_same(tokens: list[int], size: int, data: st.DataObject) -> None:
    prompt = TokenPrompt(array("Q", tokens))
    whole, pieces = Chain(prompt, Recipe(size)), Chain(prompt, Recipe(size))
    whole.reach(whole.full_blocks)
    for index in data.draw(st.permutations(range(len(tokens) // size))):
        assert pieces[index] == whole[index]


def test_what_distinguishes_a_block_changes_it_and_all_behind_it() -> None:
    tokens = array("Q", range(12))
    plain = Chain(TokenPrompt(tokens), Recipe(4))
    salted = Chain(TokenPrompt(tokens, salt="a"), Recipe(4))
    shown = Chain(TokenPrompt(tokens, (PlacedImage(5, 2, "x"),)), Recipe(4))
    moved = Chain(TokenPrompt(tokens, (PlacedImage(6, 2, "x"),)), Recipe(4))
    assert all(plain[index] != salted[index] for index in range(3))
    assert plain[0] == shown[0] == moved[0]
    assert len({plain[1], shown[1], moved[1]}) == len({plain[2], shown[2], moved[2]}) == 3


def test_nothing_is_said_behind_an_image_that_is_not_known() -> None:
    prompt = TokenPrompt(array("Q", range(12)), (PlacedImage(5, 2, None), PlacedImage(8, 1, "x")))
    assert (Chain(prompt, Recipe(4)).full_blocks, Chain(prompt, Recipe(4)).is_whole) == (1, False)
    assert Chain(prompt, Recipe(4, pads=True)).full_blocks == 1


def test_sglangs_sentinels_are_the_published_ones() -> None:
    """Recomputed from SGLang 0.5.23 srt/managers/mm_utils.py."""
    expected = (23533869762612420, 1115227388442326932, 406705440234023321, 2100304651902599146)
    assert pad_tokens(0x0123456789ABCDEF) == expected
    prompt = TokenPrompt(array("Q", [7, 9, 9, 9, 9, 9, 8]), (PlacedImage(1, 5, "an id", 0x0123456789ABCDEF),))
    published = array("Q", [7, *expected, expected[0], 8])
    chain = Chain(prompt, Recipe(7, pads=True))
    assert chain[0] == content_hash(None, published, ())


def test_tokens_that_are_none_are_told() -> None:
    with pytest.raises(OverflowError):
        content_hash(None, [-1], ())
