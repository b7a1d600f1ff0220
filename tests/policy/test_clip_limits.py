"""What holds for every pair of rules: one kind's limit never looks at clips of the other, and says its own key."""

from __future__ import annotations

import pytest

from gateway.policy.clip_limits import spelled_within, within_bytes, within_count, within_seconds
from gateway.policy.rule import Measured
from gateway.types import MediumKind
from tests.policy.examples import call_of, clip, estimate, long_source, medium, policy

KINDS = {MediumKind.VIDEO: MediumKind.AUDIO, MediumKind.AUDIO: MediumKind.VIDEO}
VALUES = policy()


@pytest.mark.parametrize(("kind", "other"), KINDS.items())
def test_only_its_own_kind_is_looked_at(kind: MediumKind, other: MediumKind) -> None:
    source = long_source(9_000)
    for declared in (within_count(kind, "k", lambda _: 0), spelled_within(kind, "k", lambda _: 1)):
        assert declared(VALUES, call_of(medium(other, source=source))) is None
        error = declared(VALUES, call_of(medium(other, 0, source=source), medium(kind, 1, source=source)))
        assert error is not None
        assert (error.rule, error.part) == ("k", medium(kind, 1).name)
    for measured in (within_bytes(kind, "k", lambda _: 9), within_seconds(kind, "k", lambda _: 9)):
        theirs, own = (clip(each, byte_count=10, duration_s=10.0) for each in (other, kind))
        assert measured(VALUES, Measured((), estimate(), [theirs])) is None
        error = measured(VALUES, Measured((), estimate(), [theirs, own]))
        assert error is not None
        assert (error.rule, error.part) == ("k", own.name)


def test_no_limit_is_no_check() -> None:
    long_one = clip(MediumKind.VIDEO, duration_s=None)
    assert within_seconds(MediumKind.VIDEO, "k", lambda _: None)(VALUES, Measured((), estimate(), [long_one])) is None
    assert within_count(MediumKind.VIDEO, "k", lambda _: None)(VALUES, call_of(medium(MediumKind.VIDEO))) is None
