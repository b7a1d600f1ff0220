from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_video_bytes import RULE
from gateway.types import MediumKind
from tests.policy.examples import call_of, clip, estimate, long_source, medium, policy

POLICY = policy(max_video_bytes=1_000_000)


def test_a_text_far_too_long_is_refused_before_it_is_read() -> None:
    assert RULE.declared is not None
    for spelled_bytes, is_refused in ((1_400_000, False), (1_600_000, True)):
        call = call_of(medium(MediumKind.VIDEO, source=long_source(spelled_bytes)))
        error = RULE.declared(POLICY, call)
        assert (error is not None) is is_refused
    assert RULE.declared(POLICY, call_of(medium(MediumKind.AUDIO, source=long_source(9_000_000)))) is None


def test_the_file_itself_is_measured() -> None:
    assert RULE.measured is not None
    for byte_count, kind, message in (
        (1_000_000, MediumKind.VIDEO, None),
        (1_000_001, MediumKind.VIDEO, "The video has 1000001 bytes, the limit is 1000000."),
        (1_000_001, MediumKind.AUDIO, None),
    ):
        error = RULE.measured(POLICY, Measured((), estimate(), [clip(kind, byte_count=byte_count)]))
        assert (None if error is None else error.message) == message
