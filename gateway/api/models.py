"""``GET /v1/models``: what all backends serve, merged, in OpenAI's form.

Decided here: one entry per served name, with the largest context any backend offers for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from gateway.types import BackendView


def merged_models(views: Sequence[BackendView]) -> bytes:
    """The response body. Names come in the order of the backends; unhealthy backends count, they may come back."""
    contexts: dict[str, int | None] = {}
    for view in views:
        for name in view.models:
            known = contexts.get(name)
            contexts[name] = max(known or 0, view.context_tokens or 0) or None
    data = [
        {"id": name, "object": "model", "created": 0, "owned_by": "vlm-gateway", "max_model_len": context}
        for name, context in contexts.items()
    ]
    return json.dumps({"object": "list", "data": data}).encode()
