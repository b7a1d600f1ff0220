from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_image_bytes import RULE
from gateway.types import LongString
from tests.policy.examples import call, estimate, image, long_source, part, policy


def declared(source: str | LongString, limit: int = 3_000_000) -> str | None:
    assert RULE.declared is not None
    error = RULE.declared(policy(max_image_bytes=limit), call(part(0, source)))
    return None if error is None else error.message


def test_base64_of_an_allowed_file_passes_with_line_breaks_and_escaped_slashes() -> None:
    base64_bytes = 4_000_000
    breaks = base64_bytes // 76 * 4  # CR and LF, two characters each in JSON
    slashes = base64_bytes // 64
    assert declared(long_source(base64_bytes + breaks + slashes)) is None


def test_a_source_that_is_far_too_long_is_refused_before_it_is_decoded() -> None:
    message = declared(long_source(4_500_000))
    assert message == "The image is spelled in 4500000 bytes, too many for one of at most 3000000 bytes."


def test_short_sources_are_measured_too() -> None:
    assert declared("data:," + "a" * 2000, limit=10) is not None
    assert declared("https://a.example/" + "p" * 500, limit=10) is None


def test_the_file_itself_is_compared_exactly() -> None:
    assert RULE.measured is not None
    at_limit = Measured([image(byte_count=100)], estimate())
    above = Measured([image(byte_count=100), image(byte_count=101)], estimate())
    assert RULE.measured(policy(max_image_bytes=100), at_limit) is None
    error = RULE.measured(policy(max_image_bytes=100), above)
    assert error is not None
    assert error.message == "The image has 101 bytes, the limit is 100."
