"""What the table of legibility says is true of small pages too, and of every shipped task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.legibility import BUILT_IN, Outcome, Reader, measure, shipped_tasks, shown, table
from benchmarks.written import SANS, SERIF, Sheet, Writing, as_jpeg, as_png, as_scan, column
from gateway.media.codecs import CodecBackend, available_backends, load_backend
from gateway.policy import EffectivePolicy, Geometry
from gateway.types import Size

pytestmark = pytest.mark.slow

# A letter or two of the two or three hundred: which of two equal pictures is read better is chance.
_CHANCE = 0.01


@pytest.fixture(scope="module")
def backend() -> CodecBackend:
    return load_backend(available_backends()[0])


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="module")
def policy() -> EffectivePolicy:
    return next(task.effective for task in shipped_tasks() if task.policy == BUILT_IN)


@pytest.fixture(scope="module", params=["scan", "screen"])
def writing(request: pytest.FixtureRequest) -> Writing:
    """Some lines: of a page scanned at 200 dpi, or of a phone's screen."""
    if request.param == "scan":
        sheet = Sheet(300, 110, 200 / 72, column((20, 30), 260, 5, 11, SERIF))
        pixels = as_scan(sheet.draw())
        return Writing("scan", as_jpeg(pixels), pixels, sheet.text)
    sheet = Sheet(390, 150, 3, column((20, 30), 350, 5, 17, SANS, 4))
    pixels = sheet.draw()
    return Writing("screen", as_png(pixels), pixels, sheet.text)


def under(policy: EffectivePolicy, share: float, writing: Writing) -> EffectivePolicy:
    """A cap at this share of the picture's pixels."""
    height, width = writing.pixels.shape[:2]
    return replace(policy, max_pixels=int(height * width * share))


def test_a_generous_cap_costs_nothing(
    backend: CodecBackend, reader: Reader, policy: EffectivePolicy, writing: Writing
) -> None:
    outcome = measure(writing, under(policy, 0.7, writing), backend, reader)
    assert outcome.ours is not None
    assert outcome.delivered.pixels < 0.7 * writing.pixels.shape[0] * writing.pixels.shape[1]
    assert outcome.original <= _CHANCE
    assert abs(outcome.ours - outcome.original) <= _CHANCE


def test_ours_is_read_no_worse_than_what_the_engine_shrinks_itself(
    backend: CodecBackend, reader: Reader, policy: EffectivePolicy, writing: Writing
) -> None:
    outcome = measure(writing, under(policy, 0.2, writing), backend, reader)
    assert outcome.ours is not None
    assert outcome.engine is not None
    assert outcome.ours <= outcome.engine + 2 * _CHANCE
    assert outcome.format in ("png", "jpeg")


def test_what_keeps_its_geometry_is_untouched_or_refused(
    backend: CodecBackend, reader: Reader, policy: EffectivePolicy, writing: Writing
) -> None:
    kept = replace(under(policy, 0.5, writing), geometry=Geometry.PRESERVE)
    refused = measure(writing, kept, backend, reader)
    assert (refused.format, refused.ours, refused.engine) == ("refused", None, None)
    untouched = measure(writing, replace(kept, max_pixels=None), backend, reader)
    assert untouched.format == "untouched"
    assert untouched.ours == untouched.engine


def test_every_shipped_task_is_measured() -> None:
    tasks = [(task.policy, task.task) for task in shipped_tasks()]
    assert len(tasks) == len(set(tasks))
    assert {policy for policy, _ in tasks} == {
        BUILT_IN, "default", "chat-product", "classifier", "documents", "migrated-app"
    }  # fmt: skip
    assert ("documents", "ocr") in tasks


def test_rows_are_shown_in_percent() -> None:
    outcome = Outcome(Size(64, 32), "png", 2, 0.001, 0.0234, None)
    row = {"policy": "p", "task": "t", "kind": "scan", **outcome.to_json()}
    lines = table({"model": "m", "reader": "r", "tasks": [row]})
    assert lines[-1].split()[-3:] == ["0.1", "2.3", "–"]
    assert shown(1.5) == "150.0"
