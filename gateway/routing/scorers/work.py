"""How long the backend needs for what it does not hold: encoding images, prefilling the rest of the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.routing.scorers.contract import Field, Scorer


def _cost_s(field: Field) -> Sequence[float]:
    return field.work_s


WORK = Scorer("work", _cost_s)
