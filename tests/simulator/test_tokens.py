from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator import tokens


@given(st.text())
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(tokens.pieces(text)) == text
    assert all(tokens.pieces(text))


def test_special_tokens_are_one_piece_with_their_own_id() -> None:
    assert tokens.pieces("see <|image_pad|>!") == ["see", " ", "<|image_pad|>", "!"]
    assert tokens.encode("<|im_start|><|image_pad|>") == [151_644, 151_655]


def test_ordinary_ids_never_meet_special_ones() -> None:
    assert all(entry < 151_643 for entry in tokens.encode("The quick brown fox, 12345 times — très vite!"))


def test_english_costs_about_four_characters_a_token() -> None:
    sentence = "Describe the photograph and read every word that is printed on the sign. " * 10
    assert 3 <= len(sentence) / len(tokens.pieces(sentence)) <= 6


def test_equal_text_has_equal_ids() -> None:
    assert tokens.encode("same words") == tokens.encode("same words")
    assert tokens.encode("same words") != tokens.encode("other words")
