"""Access lines are read back as they were written, whatever else stands in a log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.replay.line import BadLine, read_line, read_source
from gateway.telemetry.asked import asked_line
from gateway.types import ImageFormat, Size
from tests.journey.fakes import facts
from tests.policy.examples import policy_set
from tests.replay.examples import line_of, recorded
from tests.telemetry.test_asked import TEXT

LINE = line_of(recorded(policy_set(default="mode: shadow\nrules: {max_images: 1}\n"), Size(512, 512), Size(640, 480)))


def test_what_was_written_is_read() -> None:
    found = read_line(LINE)
    assert found is not None
    assert found.asked is not None
    assert found.estimate is not None
    assert (found.tenant, found.task, found.shadow, found.engine) == ("default", "chat", True, "vllm")
    assert (found.asked.images, found.asked.output_limit, len(found.asked.sources)) == (2, 100, 2)
    assert found.findings == ["too_many_images:max_images"]
    assert read_source(found.asked.sources[1]).facts.probe.upright == Size(640, 480)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\n", b"Started.\n", b'"exchange"', b'{"event":"reload","of":"exchange"}', b'["exchange"', b"\xff\xfe"],
)
def test_other_lines_are_none(raw: bytes) -> None:
    assert read_line(raw) is None


def test_what_a_collector_writes_before_a_line_is_passed_over() -> None:
    assert read_line(b"2026-11-29T18:00:00Z stdout F " + LINE + b"\n") == read_line(LINE)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"event":"exchange","estimate":{"image":"many"}}', "estimate.image"),
        (b'{"event":"exchange","estimate":{"image":-1}}', "estimate.image"),
        (b'{"event":"exchange","tenant":5}', "tenant"),
        (b'{"event":"exchange","asked":{"choices":0}}', "asked.choices"),
        (LINE[: len(LINE) // 2], "truncated"),
    ],
)
def test_a_bad_line_says_where(raw: bytes, words: str) -> None:
    with pytest.raises(BadLine, match=words):
        read_line(raw)


@given(st.binary(max_size=80))
def test_no_bytes_break_it(raw: bytes) -> None:
    for given_line in (raw, b'{"event":"exchange",' + raw, LINE[:-1] + raw):
        try:
            read_line(given_line)
        except BadLine:
            continue


@given(
    st.sampled_from(ImageFormat),
    st.integers(1, 99_999),
    st.integers(1, 99_999),
    st.integers(0, 10**9),
    st.integers(1, 5_000),
    st.sampled_from([None, "low", "high", "original", "auto"]),
    st.booleans(),
)
def test_a_source_is_read_back(  # one argument per word of the source
    kind: ImageFormat, width: int, height: int, byte_count: int, frames: int, detail: str | None, remote: bool
) -> None:
    known = facts(Size(width, height))
    probe = replace(known.probe, format=kind, frames=frames)
    written = asked_line(
        replace(TEXT, images=1, details=(detail,)), [replace(known, probe=probe, byte_count=byte_count, remote=remote)]
    )
    sources = written["sources"]
    assert isinstance(sources, list)
    found = read_source(sources[0])
    assert (found.detail, found.facts.byte_count, found.facts.remote) == (detail, byte_count, remote)
    assert (found.facts.probe.format, found.facts.probe.frames) == (kind, frames)
    assert found.facts.probe.upright == Size(width, height)


@pytest.mark.parametrize("text", ["", "jpeg", "jpeg 0x5 1", "jpg 5x5 1", "jpeg 5x5 1 frames=x", "jpeg 5x5 1 more"])
def test_what_is_no_source_is_named(text: str) -> None:
    with pytest.raises(BadLine, match="is no image such as"):
        read_source(text)
