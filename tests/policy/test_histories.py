from __future__ import annotations

import jsonschema
import pytest
import yaml

from gateway.policy.effective import History
from gateway.policy.histories import Histories
from gateway.policy.values import BadValue
from tests.policy.examples import node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("none", None),
        ("{trigger: {images: 20}}", History(images=20)),
        ("{trigger: {images: 13}}", History(images=13)),
        ("{trigger: {bytes: 20MiB, tokens: 30000}, batch: 5}", History(bytes=20 * 2**20, tokens=30_000, batch=5)),
        ("{trigger: {images: 8}, batch: 5, keep_newest: 4}", History(images=8, batch=5, keep_newest=4)),
        ("{trigger: {images: 1}, batch: 1, keep_newest: 1}", History(images=1, batch=1, keep_newest=1)),
    ],
)
def test_a_value_is_read_and_fits_its_schema(text: str, value: History | None) -> None:
    assert Histories().parse(node(text)) == value
    jsonschema.validate(yaml.safe_load(text), Histories().schema())


@pytest.mark.parametrize(
    ("text", "part", "words"),
    [
        ("20", "", "none or a mapping"),
        ("{batch: 5}", "", "expected a trigger: at least one of images, bytes, tokens"),
        ("{trigger: {}}", "", "expected a trigger"),
        ("{trigger: 20}", "trigger", "expected a mapping with some of images, bytes, tokens"),
        ("{trigger: {image: 20}}", "trigger.image", "did you mean images?"),
        ("{trigger: {images: 20, images: 21}}", "trigger.images", "written twice"),
        ("{trigger: {images: 0}}", "trigger.images", "out of range"),
        ("{trigger: {tokens: 1MB}}", "trigger.tokens", "unit 'MB'"),
        ("{trigger: {images: 20}, batches: 5}", "batches", "did you mean batch?"),
        ("{trigger: {images: 20}, batch: 0}", "batch", "out of range"),
        ("{trigger: {images: 12}}", "trigger.images", "at least 13, or a smaller batch"),
    ],
)
def test_a_mistake_names_its_part(text: str, part: str, words: str) -> None:
    with pytest.raises(BadValue) as caught:
        Histories().parse(node(text))
    (mistake,) = caught.value.mistakes
    assert mistake.part == part
    assert words in mistake.message


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(BadValue) as caught:
        Histories().parse(node("{trigger: {image: 20, bytes: 5Mib}, batch: x, keep_newest: 0}"))
    assert [mistake.part for mistake in caught.value.mistakes] == [
        "trigger.image",
        "trigger.bytes",
        "batch",
        "keep_newest",
    ]
