"""Who may take a request at all. Each filter is one file; ``decide`` applies ``FILTERS`` in order.

``BY_KIND`` divides a fleet into kinds of backends and is always applied to all of it. Few backends fail the rest at any
moment, so of a large fleet only a few are asked.

A *hard* filter that leaves nobody ends the decision with its error; a *soft* one is then skipped, because an honest
answer from a doubtful backend is worth more than a refusal from us.
"""

from __future__ import annotations

from gateway.routing.filters.available import AVAILABLE
from gateway.routing.filters.context import CONTEXT
from gateway.routing.filters.contract import Filter
from gateway.routing.filters.encoder import ENCODER
from gateway.routing.filters.engine import ENGINE
from gateway.routing.filters.excluded import EXCLUDED
from gateway.routing.filters.frames import FRAMES
from gateway.routing.filters.keeper import KEEPER
from gateway.routing.filters.kv_headroom import KV_HEADROOM
from gateway.routing.filters.limits import LIMITS
from gateway.routing.filters.media_limit import MEDIA_LIMIT
from gateway.routing.filters.model import MODEL
from gateway.routing.filters.vision import VISION

BY_KIND: tuple[Filter, ...] = (MODEL, ENGINE)
BY_REQUEST: tuple[Filter, ...] = (
    VISION,
    FRAMES,
    MEDIA_LIMIT,
    ENCODER,
    EXCLUDED,
    AVAILABLE,
    KEEPER,
    CONTEXT,
    LIMITS,
    KV_HEADROOM,
)
FILTERS = BY_KIND + BY_REQUEST

__all__ = ["BY_KIND", "BY_REQUEST", "FILTERS", "Filter"]
