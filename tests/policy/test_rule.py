from __future__ import annotations

from gateway.policy.rule import MeasuredImage
from gateway.policy.rules import RULES, RULES_BY_KEY
from gateway.types import ContentDigest, ImageFormat, PlacementDigest, Probe, Size, SourceFacts
from tests.policy.examples import part


def test_the_numbers_of_an_image_come_from_its_header() -> None:
    probe = Probe(ImageFormat.GIF, Size(30, 20), orientation=6, frames=3)
    facts = SourceFacts(900, PlacementDigest(b"p"), ContentDigest(b"c"), probe, canonical=True)
    image = MeasuredImage.of(part(2), facts, cap_pixels=500)
    assert image.name == "messages.0.content.2.image_url"
    assert (image.format, image.byte_count, image.raster, image.frames) == (ImageFormat.GIF, 900, Size(30, 20), 3)
    assert image.cap_pixels == 500


def test_keys_are_unique_and_summaries_are_sentences() -> None:
    assert len(RULES_BY_KEY) == len(RULES)
    assert [rule.key for rule in RULES if not rule.summary.endswith(".")] == []
