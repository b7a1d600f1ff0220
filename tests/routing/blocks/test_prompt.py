from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.blocks.prompt import PlacedImage, RawPrompt, expanded

PAD = 9


@given(st.lists(st.tuples(st.lists(st.integers(0, 8), max_size=5), st.integers(1, 6)), max_size=4))
def test_every_image_takes_its_length_in_its_place(parts: list[tuple[list[int], int]]) -> None:
    ids: list[int] = []
    expected: list[int] = []
    places, placed = [], []
    for number, (text, length) in enumerate(parts):
        ids += [*text, PAD]
        places.append(len(ids) - 1)
        placed.append(PlacedImage(len(expected) + len(text), length, str(number)))
        expected += [*text, *[PAD] * length]
    raw = RawPrompt(array("Q", [*ids, 1]), tuple(places))
    prompt = expanded(raw, [length for _, length in parts], [str(number) for number in range(len(parts))])
    assert prompt is not None
    assert (list(prompt.token_ids), list(prompt.images)) == ([*expected, 1], placed)
    assert prompt.known_tokens(pads=False) == len(expected) + 1


def test_behind_an_image_of_unknown_making_nothing_is_known() -> None:
    raw = RawPrompt(array("Q", [1, PAD, 2, PAD, 3]), (1, 3))
    prompt = expanded(raw, [4, 0], ["a", "b"])
    assert prompt is not None
    assert (prompt.known_tokens(pads=False), list(prompt.token_ids)) == (6, [1, PAD, PAD, PAD, PAD, 2, PAD])


def test_an_image_without_identity_ends_what_is_known() -> None:
    raw = RawPrompt(array("Q", [1, PAD, 2]), (1,))
    prompt = expanded(raw, [3], [None])
    assert prompt is not None
    assert (prompt.known_tokens(pads=False), len(prompt.token_ids)) == (1, 5)


def test_numbers_of_images_have_to_agree() -> None:
    assert expanded(RawPrompt(array("Q", [1, PAD]), (1,)), [], []) is None
