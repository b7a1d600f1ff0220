from __future__ import annotations

from array import array

from gateway.routing.blocks.chain import Recipe, content_hash
from gateway.routing.blocks.index import BlockIndex, Stored
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import PlacedImage, TokenPrompt


def rank(*blocks: tuple[int, ...]) -> BlockIndex:
    index = BlockIndex(100, engine_names=False)
    for number, tokens in enumerate(blocks):
        index.apply(Stored([number + 1], number or None, tokens, len(tokens)))
    return index


def test_the_rank_that_holds_most_counts_whatever_its_block_size() -> None:
    chains = PromptChains(TokenPrompt(array("Q", range(9))))
    small, large, empty = rank((0, 1), (2, 3)), rank((0, 1, 2, 3), (4, 5, 6, 7)), rank()
    assert chains.held_tokens([small], None, pads=False) == 4
    assert chains.held_tokens([empty, small, large], None, pads=False) == 8
    assert chains.held_tokens([], None, pads=False) == 0


def test_all_up_to_an_image_that_nobody_can_name_is_no_answer() -> None:
    chains = PromptChains(TokenPrompt(array("Q", range(9)), (PlacedImage(5, 2),)))
    assert chains.held_tokens([rank((0, 1), (2, 3))], None, pads=False) is None
    assert chains.held_tokens([rank((0, 1))], None, pads=False) == 2


def test_an_adapters_blocks_are_another_models() -> None:
    index = BlockIndex(100, engine_names=False)
    index.apply(Stored([1], None, [0, 1], 2, [["poet"]], adapter="poet"))
    prompt = TokenPrompt(array("Q", range(9)))
    found = [PromptChains(prompt, model).held_tokens([index], None, pads=False) for model in ("poet", "base", None)]
    assert found == [2, 0, 0]
    own = BlockIndex(100, engine_names=True)
    own.apply(Stored([1], None, (), 2, adapter="poet"))
    assert PromptChains(prompt, "poet").held_tokens([own], "seed", pads=False) is None


def test_a_chain_is_made_once() -> None:
    chains = PromptChains(TokenPrompt(array("Q", range(4))))
    assert chains.chain(Recipe(2)) is chains.chain(Recipe(2))
    assert chains.chain(Recipe(2))[0] == content_hash(None, [0, 1], ())
