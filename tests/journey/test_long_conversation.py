"""A conversation with many images on its way through all stages: what is left out, and what goes to the backend."""

from __future__ import annotations

from gateway.stages.omission import MARKER
from tests.journey.fakes import facts
from tests.journey.scenes import DATA_URL, Setting, body
from tests.journey.test_journey import sent, traveled
from tests.policy.examples import policy_set


def test_a_batch_of_a_conversations_oldest_images_is_never_looked_at() -> None:
    policies = policy_set(default="rules: {history: {trigger: {images: 3}, batch: 2, keep_newest: 2}}\n")
    urls = [DATA_URL + "QUJD" * number for number in range(4)]
    scene = traveled(Setting(body(*urls), facts=(facts(), facts(number=1)), policies=policies))
    content = sent(scene)["messages"][0]["content"]
    assert [part.get("text") for part in content[1:3]] == [MARKER, MARKER]
    assert [part["type"] for part in content[3:]] == ["image_url", "image_url"]
    assert (scene.record.images_omitted, scene.record.images_passed) == (2, 2)
