from __future__ import annotations

from gateway.policy.rules.max_audios import RULE
from gateway.types import MediumKind
from tests.policy.examples import call_of, medium, policy

KIND, OTHER = MediumKind.AUDIO, MediumKind.VIDEO


def check(limit: int | None, *kinds: MediumKind) -> tuple[str, str | None] | None:
    assert RULE.declared is not None
    call = call_of(*[medium(kind, index) for index, kind in enumerate(kinds)])
    error = RULE.declared(policy(max_audios=limit), call)
    return None if error is None else (error.message, error.part)


def test_only_its_own_kind_counts_and_the_first_beyond_is_named() -> None:
    assert check(1, KIND, OTHER, OTHER) is None
    assert check(1, KIND, OTHER, KIND) == (
        "The request has 2 sounds, the limit is 1.",
        "messages.0.content.2.video_url",
    )
    assert check(None, *[KIND] * 40) is None
    assert check(0) is None
