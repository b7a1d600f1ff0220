"""What a model's alias gives a request that says nothing of it: an output limit, template arguments, sampling.

Decided here: which requests get it (those that generate), and that a request's own word always counts. The output limit
is one thing under several names: where a request has it by any of them nothing is added, and what is added has the name
of its API. Not decided here: what an alias gives (configuration), how it is written (``outgoing``).
"""

from __future__ import annotations

import json
from dataclasses import replace

from gateway.policy.effective import EffectivePolicy
from gateway.types import Call, JsonObject, Pointer

_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})


def with_parameters(policy: EffectivePolicy, call: Call, tree: JsonObject) -> Call:
    """The call with what its model's alias adds to it; shadow mode adds nothing."""
    if not policy.parameters or policy.shadow or not call.generates:
        return call
    additions: list[tuple[Pointer, str, bytes]] = []
    whole: dict[str, dict[str, object]] = {}
    limit = call.output_limit_tokens
    for path, value in policy.parameters:
        key = path[0]
        if key in _LIMITS:
            if limit is None:
                limit = int(json.loads(value))
                additions.append(((), call.output_limit_field, value.encode()))
            continue
        present = tree.get(key)
        if len(path) == 1:
            if present is None:
                additions.append(((), key, value.encode()))
        elif present is None:
            whole.setdefault(key, {})[path[1]] = json.loads(value)
        elif isinstance(present, dict) and path[1] not in present:
            additions.append(((key,), path[1], value.encode()))
    additions += [((), key, json.dumps(members).encode()) for key, members in whole.items()]
    return replace(call, additions=tuple(additions), output_limit_tokens=limit)
