from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.media.cost import expected_s
from gateway.media.messages import Bytes, Examine, Prepare
from gateway.media.pace import Pace
from gateway.types import ImageFormat, Probe, Size

PHOTO = Probe(ImageFormat.JPEG, Size(4032, 3024))


def prepare(kit: Any, probe: Probe = PHOTO) -> Prepare:
    return Prepare(Bytes(0, 1_000_000, is_text=True, has_escapes=False), kit.plan(), probe, 1, False)


EXAMINE = Examine(Bytes(0, 1_000_000, is_text=True, has_escapes=False), b"", 1, 1)


def test_before_anything_was_seen_the_rule_of_thumb_holds(kit: Any) -> None:
    assert Pace().expected_s(prepare(kit)) == expected_s(prepare(kit))


BELIEVED_S = 0.05


def test_what_was_taken_counts_beside_some_that_went_as_expected(kit: Any) -> None:
    pace, rule_s = Pace(), expected_s(prepare(kit))
    pace.learn(prepare(kit), 3 * rule_s)
    first = (BELIEVED_S + 3 * rule_s) / (BELIEVED_S + rule_s)
    assert pace.expected_s(prepare(kit)) == pytest.approx(first * rule_s)
    for _ in range(100):
        pace.learn(prepare(kit), 3 * rule_s)
    assert pace.ratios["jpeg"] == pytest.approx(3.0, rel=0.05)


def test_kinds_are_learnt_apart_and_a_new_kind_begins_where_the_others_are(kit: Any) -> None:
    pace = Pace()
    png, progressive = replace(PHOTO, format=ImageFormat.PNG), replace(PHOTO, progressive=True, scans=10)
    pace.learn(prepare(kit), 2 * expected_s(prepare(kit)))
    slower = pace.ratios["jpeg"]
    assert 1.5 < slower < 2
    assert pace.expected_s(prepare(kit, png)) == pytest.approx(slower * expected_s(prepare(kit, png)))
    pace.learn(prepare(kit, png), expected_s(prepare(kit, png)))
    assert pace.expected_s(prepare(kit)) == pytest.approx(slower * expected_s(prepare(kit)))
    assert pace.expected_s(prepare(kit, png)) == pytest.approx(expected_s(prepare(kit, png)))
    pace.learn(prepare(kit, progressive), expected_s(prepare(kit, progressive)))
    pace.learn(EXAMINE, expected_s(EXAMINE))
    assert set(pace.ratios) == {"jpeg", "png", "jpeg by scans", "examine"}


def test_headers_that_waited_for_a_cpu_say_nothing_of_pixels(kit: Any) -> None:
    pace = Pace()
    for _ in range(20):
        pace.learn(EXAMINE, 50 * expected_s(EXAMINE))
    assert pace.ratios["examine"] > 25
    assert pace.expected_s(prepare(kit)) == expected_s(prepare(kit))


def test_icons_that_took_long_do_not_make_a_giant_hopeless(kit: Any) -> None:
    pace = Pace()
    icon, giant = replace(PHOTO, raster=Size(8, 8)), replace(PHOTO, raster=Size(8_000, 6_000))
    for _ in range(50):
        pace.learn(prepare(kit, icon), 0.03)
    assert pace.expected_s(prepare(kit, giant)) < 6 * expected_s(prepare(kit, giant))


def test_what_was_true_is_forgotten_and_one_stall_is_not_believed(kit: Any) -> None:
    pace, rule_s = Pace(), expected_s(prepare(kit))
    for _ in range(50):
        pace.learn(prepare(kit), rule_s)
    pace.learn(prepare(kit), 1e9)
    assert pace.expected_s(prepare(kit)) < 12 * rule_s
    for _ in range(50):
        pace.learn(prepare(kit), rule_s)
    assert pace.expected_s(prepare(kit)) < 1.1 * rule_s
