"""How well a backend suits a request: each scorer is one file and answers with a score from 0 (worst) to 1 (best)."""

from __future__ import annotations

from gateway.routing.scorers.affinity import AFFINITY
from gateway.routing.scorers.contract import Field, Scorer
from gateway.routing.scorers.first_token import FIRST_TOKEN
from gateway.routing.scorers.load import LOAD

# The weight of affinity outbids both others together for a backend that holds all images against one that holds
# half of them; a holder that is much too slow or too full is put aside by the picker, not outvoted here.
SCORERS: tuple[tuple[Scorer, float], ...] = ((FIRST_TOKEN, 1.0), (AFFINITY, 4.0), (LOAD, 1.0))

__all__ = ["SCORERS", "Field", "Scorer"]
