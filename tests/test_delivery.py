"""From a reserved request to its settlement: where it goes, where it goes next, and what its account carries."""

from __future__ import annotations

from dataclasses import replace

from tests.journey.fakes import Answer
from tests.journey.scenes import BUSY, PLAIN, SETTINGS
from tests.journey.test_journey import refused, traveled


def test_the_account_carries_the_cost_and_hears_of_the_answer() -> None:
    scene = traveled(SETTINGS["two images"])
    ((backend, cost, account),) = scene.upstream.accounts
    assert cost.encode_patches > 0
    assert account.has_answered
    assert scene.upstream.learnt == [(backend, scene.upstream.keys[0].images)]


def test_a_refusal_is_relayed_and_the_images_keep_their_home() -> None:
    """The home is learnt when it is chosen, so that requests at the same moment follow; a refusal moves nothing."""
    scene = traveled(replace(SETTINGS["two images"], answers=(Answer(400, pieces=(b"no",)),)))
    assert len(scene.upstream.learnt) == 1
    assert (scene.record.outcome, scene.record.status) == ("backend_refused", 400)
    assert scene.client.written == b"no"


def test_sent_elsewhere_the_account_moves_and_images_are_prepared_once() -> None:
    scene = traveled(replace(SETTINGS["two images"], answers=(BUSY, PLAIN)))
    first, second = (backend for backend, _, _ in scene.upstream.accounts)
    assert {first, second} == {"a", "b"}
    assert len(scene.media.jobs) == 1
    record = scene.record
    assert (record.attempts, record.retry_reasons, record.backend) == (2, ["refused"], second)
    assert scene.upstream.sent[0][2] == scene.upstream.sent[1][2]


def test_a_refusal_with_nowhere_to_go_is_relayed_as_it_is() -> None:
    scene = traveled(SETTINGS["refused by both"])
    assert (scene.client.status, scene.client.written) == (503, b'{"error":"busy"}')
    assert scene.record.outcome == "backend_refused"


def test_no_connection_anywhere_is_unreachable_with_a_time_to_come_back() -> None:
    error = refused(SETTINGS["not connected to either"])
    assert (error.code, error.retry_after_s) == ("backend_unreachable", 1.0)


def test_the_first_picture_is_what_a_router_behind_may_place_by() -> None:
    assert traveled(SETTINGS["two images"]).upstream.sent[0][1].affinity_key == bytes(16).hex()
    assert traveled(SETTINGS["text"]).upstream.sent[0][1].affinity_key == ""
