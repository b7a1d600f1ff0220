"""The marks of one backend, and how they combine; time by hand."""

from __future__ import annotations

from gateway.upstream.settings import UpstreamSettings
from gateway.upstream.standing import Standing


def standing() -> Standing:
    return Standing(UpstreamSettings((), breaker_failures=1, slow_start_s=10.0))


def test_one_that_was_always_there_gets_its_whole_share() -> None:
    marks = standing()
    assert marks.is_healthy(0.0)
    assert marks.is_sound(0.0)
    assert marks.ramp(0.0) == 1.0
    marks.joined(5.0)
    assert marks.ramp(10.0) == 0.5


def test_coming_back_ends_every_other_mark_and_begins_small() -> None:
    marks = standing()
    marks.breaker.failed(0.0)
    marks.ejected(100.0)
    marks.rests(100.0)
    marks.drains(0.0)
    assert marks.went_down()
    assert not marks.went_down()
    assert marks.came_up(1.0)
    assert not marks.came_up(1.0)
    assert (marks.is_healthy(1.0), marks.is_draining(1.0), marks.is_resting(1.0)) == (True, False, False)
    assert marks.returns == 1
    assert [marks.ramp(now_s) for now_s in (1.0, 6.0, 11.0)] == [0.1, 0.5, 1.0]
    assert marks.breaker.tried(1.0), "one request tries it"
    assert not marks.is_healthy(1.0)


def test_one_odd_probe_makes_it_doubtful_two_take_it_down() -> None:
    marks = standing()
    assert not marks.missed()
    assert marks.is_healthy(0.0)
    assert not marks.is_sound(0.0)
    assert marks.came_up(0.0), "the doubt is gone"
    assert marks.is_sound(0.0)
    marks.missed()
    assert marks.missed()
    assert not marks.is_healthy(0.0)


def test_an_ejection_ends_by_itself_and_is_followed_by_a_slow_start() -> None:
    marks = standing()
    marks.ejected(30.0)
    assert marks.is_ejected(29.9)
    assert not marks.is_healthy(29.9)
    assert marks.is_healthy(30.0)
    assert [marks.ramp(now_s) for now_s in (30.0, 35.0, 40.0)] == [0.1, 0.5, 1.0]


def test_an_ejection_can_be_ended() -> None:
    marks = standing()
    assert not marks.readmitted(1.0)
    marks.ejected(30.0)
    assert marks.readmitted(1.0)
    assert marks.is_healthy(1.0)


def test_rest_is_the_longest_asked_for_and_ends() -> None:
    marks = standing()
    marks.rests(5.0)
    marks.rests(3.0)
    assert marks.is_resting(4.9)
    assert not marks.is_resting(5.0)
    assert marks.is_healthy(1.0), "it is well, and wants to be left alone"
