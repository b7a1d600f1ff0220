"""The shape of a profile: names, levels, and what no profile prices."""

from __future__ import annotations

import pytest

from gateway.errors import Undecodable
from gateway.models.closed import closed_profile
from gateway.models.closed.profile import cells, fitted
from gateway.types import Size


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        ("gpt-4o", "gpt-4o"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("GPT-4.1-mini", "gpt-4.1-mini"),
        ("gpt-5-chat-latest", "gpt-5-chat"),
        ("gpt-4.5-preview", "gpt-4.5"),
        ("o1", "o1"),
        ("claude-3-5-sonnet-20241022", "claude"),
        ("claude-sonnet-4-20250514", "claude"),
        ("anthropic/claude-opus-4.6", "claude"),
        ("claude-opus-4-7", "claude-4.7"),
        ("claude-opus-5", "claude-4.7"),
        ("claude-by-area", "claude-by-area"),
        ("gemini-2.5-pro", "gemini-2"),
        ("google/gemini-3-pro-preview", "gemini-3"),
    ],
)
def test_names_find_their_profile(model: str, profile: str) -> None:
    found = closed_profile(model)
    assert found is not None
    assert found.name == profile


@pytest.mark.parametrize(
    "model", ["gpt-4o-audio", "gpt-9", "o11", "claude", "gemini-1.5-pro", "Qwen/Qwen3-VL-8B-Instruct", "", "o1-mini"]
)
def test_other_names_find_none(model: str) -> None:
    assert closed_profile(model) is None


def test_bad_input_names_what_is_wrong() -> None:
    profile = closed_profile("gpt-4o")
    assert profile is not None
    with pytest.raises(ValueError, match=r"detail: gpt-4o knows low, high, not 'original'"):
        profile.image_tokens(Size(10, 10), "original")
    with pytest.raises(Undecodable):
        profile.image_tokens(Size(0, 10))


def test_fitting_never_enlarges() -> None:
    assert fitted((10, 20), 100) == (10, 20)
    assert fitted((100, 200), 100) == (50, 100)
    assert cells((33, 32), 32) == 2
