"""Which models a tenant may name, and names that stand for others in the whole deployment.

Decided here: what an alias of the deployment is; that a tenant's ``allowed_models`` hold for the name it uses, after
its own aliases, so that an alias may be allowed and what it stands for not; which names a list of models shows. Not
decided here: which models there are (the backends), where an alias is followed (`resolve`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.policy.patterns import matches
from gateway.types import Json, TaskName


@dataclass(frozen=True, slots=True)
class ModelAlias:
    """What a name of the deployment stands for. ``parameters`` are members of a body, each value as JSON.

    Nested members have a path of two keys: ``("chat_template_kwargs", "enable_thinking")``.
    """

    model: str
    task: TaskName | None = None
    parameters: tuple[tuple[tuple[str, ...], str], ...] = ()


def is_allowed(allowed: tuple[str, ...] | None, name: str | None) -> bool:
    """Whether a name fits one of the patterns; without patterns all do, and so does no name."""
    if allowed is None:
        return True
    return name is not None and any(matches(pattern, name) for pattern in allowed)


def hidden_adapter(allowed: tuple[str, ...] | None, model: str | None, given: Json) -> str | None:
    """The first adapter of ``lora_path`` (SGLang: a name, or one per prompt) that may not be named; ``None``: all may.

    An adapter is allowed by its own name or as SGLang writes it behind its model's, ``model:adapter``.
    """
    if allowed is None or given is None:
        return None
    for name in given if isinstance(given, list) else [given]:
        if name is None:
            continue
        if not isinstance(name, str):
            return "lora_path"
        if not is_allowed(allowed, name) and not is_allowed(allowed, f"{model}:{name}"):
            return name
    return None


def visible_models(
    allowed: tuple[str, ...] | None,
    served: Iterable[str],
    aliases: Mapping[str, ModelAlias],
    own_aliases: Mapping[str, str],
) -> dict[str, str]:
    """Every name that leads to a served model, with that model's: served ones, the deployment's aliases, the tenant's.

    Names that choose a task as well (``name@task``) are listed where the tenant has them among its aliases.
    """
    models = dict.fromkeys(served)
    leads = {name: name for name in models if name not in aliases}
    leads |= {name: alias.model for name, alias in aliases.items() if alias.model in models}
    shown = {name: model for name, model in leads.items() if is_allowed(allowed, name)}
    return shown | {name: shown[target] for name, target in own_aliases.items() if target in shown}
