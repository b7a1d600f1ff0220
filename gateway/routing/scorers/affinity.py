"""The share of the request's images that the backend is believed to hold."""

from __future__ import annotations

from gateway.routing.scorers.contract import Field, Scorer


def _score(field: Field) -> list[float]:
    image_count = len(field.ask.images)
    if image_count == 0:
        return [0.0] * len(field.views)
    return [holding.images / image_count for holding in field.holdings]


AFFINITY = Scorer("affinity", _score)
