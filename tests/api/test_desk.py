"""A desk with few places."""

from __future__ import annotations

import pytest

from gateway.api.desk import Busy, Desk


def test_who_finds_no_place_is_sent_away_and_places_come_back() -> None:
    desk = Desk(2)
    with desk.place(), desk.place(), pytest.raises(Busy), desk.place():
        pass
    with pytest.raises(ValueError, match="work"), desk.place():
        raise ValueError("work")
    with desk.place(), desk.place():
        pass
