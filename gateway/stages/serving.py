"""Which model a request is about: the one that it names, or the first that could answer it.

Decided here: what stands in for a name, and that a name nobody serves is refused. Not decided here: what a model's
images cost (``models``), which of its backends is taken (``routing``).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects import engines_of
from gateway.errors import ModelNotFound
from gateway.models.book import ModelBook, ServedModel
from gateway.policy.effective import EffectivePolicy
from gateway.types import BackendView


def served_model(book: ModelBook, policy: EffectivePolicy, views: Sequence[BackendView], path: str = "") -> ServedModel:
    """The model asked for; without a name, the first served where ``path`` is known. Raises ModelNotFound."""
    if policy.model is None:
        return book.serve(_first_model(views, path), views)
    for view in views:
        if not view.models or policy.model in view.models:
            break
    else:
        if views:
            raise ModelNotFound(f"The model {policy.model[:128]!r} is not served here.", part="model")
    return book.serve(policy.model, views)


def _first_model(views: Sequence[BackendView], path: str) -> str:
    """Of the backends whose engine has the path; what is down is named only where nothing is up."""
    engines = engines_of(path)
    able = [view for view in views if view.models and view.engine in engines]
    up = [view for view in able if view.healthy and not view.draining]
    return next((view.models[0] for view in (*up, *able)), "")


def model_of(policy: EffectivePolicy, served: ServedModel) -> str | None:
    """The model that backends must serve: the one that the request was counted for, also where it named none."""
    return policy.model or served.name or None
