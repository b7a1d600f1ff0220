"""``GET /v1/models`` and ``GET /v1/models/{id}``: what a tenant may name, merged from all backends.

Decided here: the forms. OpenAI's, with the members that vLLM adds (``root`` is the served model behind an alias,
``max_model_len`` the largest context that any backend offers for it); Anthropic's for a client that sends
``anthropic-version``, whose SDK reads nothing else. Not decided here: who may see which model (``policy.visible``).
Nothing is paged: a deployment has few models, and Anthropic's ``has_more`` says that these are all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from gateway.errors import ModelNotFound
from gateway.record import RequestHead
from gateway.types import BackendView, Json

PATH = "/v1/models"
_VERSION_HEADER = "anthropic-version"
# Anthropic's form has a date, and nobody knows one.
_NO_DATE = "1970-01-01T00:00:00Z"


def wants_anthropic(head: RequestHead) -> bool:
    """Whether the client reads Anthropic's form."""
    return head.header(_VERSION_HEADER) is not None


def models_answer(head: RequestHead, names: Mapping[str, str], views: Sequence[BackendView]) -> bytes:
    """The response body: all ``names`` (each with the served model behind it), or the one that the path asks for.

    Raises ModelNotFound, alike for what is not there and what this tenant may not see.
    """
    contexts: dict[str, int | None] = {}
    for view in views:
        for name in view.models:
            contexts[name] = max(contexts.get(name) or 0, view.context_tokens or 0) or None
    entry = _anthropic if wants_anthropic(head) else _openai
    asked = unquote(head.path.removeprefix(PATH).removeprefix("/"))
    if asked:
        if asked not in names:
            raise ModelNotFound(f"The model {asked[:128]!r} is not served here.", part="model")
        return json.dumps(entry(asked, names[asked], contexts.get(names[asked]))).encode()
    data: list[Json] = [entry(name, model, contexts.get(model)) for name, model in names.items()]
    if entry is _openai:
        return json.dumps({"object": "list", "data": data}).encode()
    ids = list(names)
    ends = {"first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}
    return json.dumps({"data": data, "has_more": False, **ends}).encode()


def _openai(name: str, model: str, context: int | None) -> dict[str, Json]:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "vlm-gateway",
        "root": model,
        "max_model_len": context,
    }


def _anthropic(name: str, _model: str, context: int | None) -> dict[str, Json]:
    told: dict[str, Json] = {"type": "model", "id": name, "display_name": name, "created_at": _NO_DATE}
    return told if context is None else told | {"max_input_tokens": context}
