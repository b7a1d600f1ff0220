from __future__ import annotations

import pytest

from gateway.policy.rule import Measured
from gateway.policy.rules.max_total_bytes import RULE
from tests.policy.examples import call, estimate, image, long_source, part, policy


@pytest.mark.parametrize(("limit", "refused"), [(500, False), (499, True), (None, False)])
def test_all_files_count_together(limit: int | None, *, refused: bool) -> None:
    assert RULE.measured is not None
    measured = Measured([image(byte_count=200), image(byte_count=300)], estimate())
    error = RULE.measured(policy(max_total_bytes=limit), measured)
    assert (error is not None) is refused
    if error is not None:
        assert error.message == "The images have 500 bytes together, the limit is 499."


def test_sources_that_can_only_hold_more_are_refused_before_they_are_decoded() -> None:
    assert RULE.declared is not None
    asked = call(
        part(0, long_source(100_000)), part(1, long_source(100_000)), part(2, "https://a.example/" + "x" * 9999)
    )
    error = RULE.declared(policy(max_total_bytes=100_000), asked)
    assert error is not None
    assert (error.part, error.rule) == (part(1).name, "max_total_bytes")
    assert "at least 134966 bytes together" in error.message
    assert RULE.declared(policy(max_total_bytes=140_000), asked) is None
    assert RULE.declared(policy(), asked) is None
