"""How few of our requests the backend is busy with, decoding included, against the least busy one."""

from __future__ import annotations

from gateway.routing.scorers.contract import Field, Scorer


def _score(field: Field) -> list[float]:
    least = min(view.inflight_requests for view in field.views)
    return [(least + 1) / (view.inflight_requests + 1) for view in field.views]


LOAD = Scorer("load", _score)
