from __future__ import annotations

import json

import pytest

from gateway.policy.effective import Adaptive, EngineFields, FieldAction, History, Mode, OnExcess, RateRule
from gateway.policy.shown import in_words, plain, told
from gateway.types import ImageFormat, Size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (5, "5"),
        (0.25, "0.25"),
        (10.0, "10"),
        (True, "true"),
        (Mode.SHADOW, "shadow"),
        ((), "[]"),
        ((255, 255, 0), "[255, 255, 0]"),
        ((ImageFormat.JPEG, ImageFormat.PNG), "[jpeg, png]"),
        ((Size(4, 5),), "[4x5]"),
        (((1, 8000), (21, 2000)), "{1: 8000, 21: 2000}"),
        ((("high", None), ("low", 4000)), "{high: none, low: 4000}"),
        (History(images=20, tokens=9), "{trigger: {images: 20, tokens: 9}, batch: 10, keep_newest: 4}"),
        (
            (RateRule("images", 600, 60, 100), RateRule("tokens", 200_000, 60), RateRule("tokens", 20_000_000, 86_400)),
            "{images: 600/min burst 100, tokens: [200k/min, 20M/day]}",
        ),
        (EngineFields(FieldAction.STRIP), "strip"),
        (EngineFields(FieldAction.STRIP, (("uuid", FieldAction.ALLOW),)), "{others: strip, uuid: allow}"),
    ],
)
def test_a_value_is_told_as_a_file_would_spell_it(value: object, text: str) -> None:
    assert told(value) == text
    json.dumps(plain(value))


def test_actions_are_told_by_rule() -> None:
    assert told(OnExcess()).startswith("{max_images: reject, ")


def test_knobs_are_told_by_name() -> None:
    assert told(Adaptive()) == "{floor_pixels: 262144, halving_psnr_db: 31}"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("hosts", None, "any public host"),
        ("hosts", (), "none"),
        ("hosts", [], "none"),
        ("hosts", ("a.example",), "[a.example]"),
        ("allowed_models", None, "any"),
        ("max_pixels", None, "the engine's own cap"),
        ("max_images", None, "no limit"),
        ("max_images", 0, "0"),
        ("detail", (), "ignore"),
        ("stop", (), "[]"),
    ],
)
def test_a_value_that_means_something_by_not_being_there_is_told_in_words(key: str, value: object, words: str) -> None:
    assert in_words(key, value) == words
