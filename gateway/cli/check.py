"""``vlm-gateway check``: are configuration and policies right, what do they amount to, what would others change.

Decided here: what is printed. Not decided here: what is right (``config``, ``policy``), what differs
(``policy.compare``, ``policy.key_changes``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gateway.assembly.checking import file_problems
from gateway.assembly.wiring import load_world
from gateway.cli.estimate import load_policy_set
from gateway.cli.output import fail, say, show_json, show_table
from gateway.cli.serve import settings_from
from gateway.config.advice import Advice, advice, key_advice
from gateway.config.policies import PolicyProblems
from gateway.config.sources import masked
from gateway.policy.compare import Difference, Effective, Shown, differences, effective_policies
from gateway.policy.key_changes import key_changes
from gateway.policy.policyset import PolicySet
from gateway.policy.shown import in_words


def check(
    policies: Annotated[Path | None, typer.Argument(help="Directory of policy files.", file_okay=False)] = None,
    new: Annotated[
        Path | None, typer.Argument(help="Another one: print what it would change.", file_okay=False)
    ] = None,
    config: Annotated[Path | None, typer.Option(help="gateway.yaml", exists=True, dir_okay=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Validate configuration and policies and print every effective policy, or what differs between two directories."""
    settings = settings_from(config, None, {"policies": None if policies is None else str(policies)})
    policy_set = load_policy_set(None if settings.policies is None else Path(settings.policies))
    if new is not None:
        _compare(policy_set, load_policy_set(new), json=json)
        return
    problems = file_problems(settings)
    try:
        load_world(settings, b"\0" * 32)
    except (PolicyProblems, ValueError) as error:
        problems.append(str(error))
    if problems:
        raise fail("The configuration cannot be used:", problems, code=2)
    found = list(effective_policies(policy_set))
    odd = [*advice(settings, os.environ), *key_advice(settings, policy_set, time.time())]
    if config is not None and not settings.backends and not settings.sources:
        odd.append(Advice("backends", "is empty and there are no sources: serve needs --backend then"))
    if json:
        warnings = [{"setting": each.about, "reason": each.text} for each in odd]
        show_json({"settings": masked(settings), "policies": [_row(each) for each in found], "warnings": warnings})
        return
    for each in found:
        rows = [(key, in_words(key, shown.value), shown.reason) for key, shown in _differing(each, found).items()]
        show_table(_title(each), ("setting", "value", "from"), rows)
    sources = "".join(f" and what {source.name or source.url} finds" for source in settings.sources)
    backends = f"{len(settings.backends)} backend(s){sources}"
    for hint in odd:
        say(f"Warning: {hint.about}: {hint.text}.")
    say(f"Configuration is valid: {backends}, {len(policy_set.tenants)} tenant(s).")


def _title(each: Effective) -> str:
    model = f", models {each.model}" if each.model else ""
    return f"tenant {each.tenant}, task {each.task}{model} ({each.mode}, version {each.version})"


def _differing(each: Effective, found: Sequence[Effective]) -> dict[str, Shown]:
    """All values of a tenant's task; for a pattern of models only those that it changes."""
    if not each.model:
        return each.values
    base = next(one for one in found if (one.tenant, one.task, one.model) == (each.tenant, each.task, ""))
    return {key: shown for key, shown in each.values.items() if shown != base.values[key]}


def _row(each: Effective) -> dict[str, object]:
    values = {key: _value(shown) for key, shown in each.values.items()}
    row: dict[str, object] = {"tenant": each.tenant, "task": each.task}
    if each.model:
        row["models"] = each.model
    return row | {"mode": each.mode, "version": each.version, "values": values}


def _value(shown: Shown | None) -> dict[str, object] | None:
    return None if shown is None else {"value": shown.value, "reason": shown.reason}


def _compare(old: PolicySet, new: PolicySet, *, json: bool) -> None:
    found = [*key_changes(old, new), *differences(old, new)]
    if json:
        show_json({"differences": [_told_difference(each) for each in found]})
        return
    if found:
        columns = ("tenant", "task", "models", "setting", "old", "new", "from")
        show_table("What the new policies change", columns, [_difference_row(each) for each in found])
    say(f"{len(found)} difference(s); {len(old.tenants)} tenant(s) before, {len(new.tenants)} after.")


def _told_difference(each: Difference) -> dict[str, object]:
    return {
        "tenant": each.tenant,
        "task": each.task or None,
        "models": each.model or None,
        "key": each.key or None,
        "old": _value(each.old),
        "new": _value(each.new),
    }


def _difference_row(each: Difference) -> tuple[str, ...]:
    place = (each.tenant, each.task, each.model)
    if not each.key:
        return (*place, "task removed" if each.new is None else "task added", "", "", "")
    old = "" if each.old is None else in_words(each.key, each.old.value)
    new = "" if each.new is None else in_words(each.key, each.new.value)
    return (*place, each.key, old, new, "" if each.new is None else each.new.reason)
