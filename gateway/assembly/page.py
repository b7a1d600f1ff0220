"""What the page ``/ui`` is told: the playground's pictures, the policies, and what the gateway does now.

Decided here: that all of it is computed on the data loop or beside it, one picture at a time, whoever asks from another
thread. Not decided here: what is told of a picture (``playground``), of a moment (``live``), of a policy (``policy``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from gateway.api.ui import PICTURE_LIMIT_BYTES, UiView
from gateway.assembly.gauges import Moment
from gateway.assembly.live import live
from gateway.assembly.loop import on_loop
from gateway.config.policies import PolicyProblems, parse_yaml
from gateway.dialects import dialect_of
from gateway.errors import GatewayError, NotPermitted
from gateway.explain import PATH_HEADER, asked_path, explain, refused, unread
from gateway.media.shm import HeapBody
from gateway.models.catalog import shipped_catalog
from gateway.playground import (
    DETAILS,
    MODELS_LIMIT,
    Choice,
    check_choice,
    picture_body,
    price_sizes,
    show_picture,
)
from gateway.policy.compare import Difference, differences
from gateway.policy.key_changes import key_changes
from gateway.policy.node import Problem
from gateway.policy.policyset import BUILTIN_REASON, PolicySet, build_policy_set
from gateway.policy.resolve import resolve
from gateway.policy.rules import RULES
from gateway.policy.schema import Document, parse_document
from gateway.policy.shown import in_words
from gateway.policy.tenant_keys import TENANT_KEYS
from gateway.record import RequestHead
from gateway.stages.exchange import Ports, World
from gateway.telemetry.recent import Recent
from gateway.types import RequestId, Size, TenantId

PASTED = "pasted.yaml"
_TENANTS_SHOWN = 1_000
_DIFFERENCES_SHOWN = 100
# Tasks times patterns of models, before and after: more would take seconds of a CPU that requests need.
_PLACES_COMPARED = 2_000
_SUMMARIES = {key.key: key.summary for key in TENANT_KEYS} | {rule.key: rule.summary for rule in RULES}


@dataclass(frozen=True, slots=True)
class Page:
    """The parts that a page looks at. ``world`` is the snapshot in force; ``moment`` may be asked in any thread."""

    ports: Ports
    world: Callable[[], World]
    moment: Callable[[], Moment]
    recent: Recent
    data_port: int
    has_tls: bool

    def view(self, loop: asyncio.AbstractEventLoop) -> UiView:
        """What the admin thread may ask. To be called on the data loop."""
        one_at_a_time = asyncio.Lock()

        async def sizes(asked: list[Size], choice: Choice) -> dict[str, object]:
            async with one_at_a_time:
                return await price_sizes(asked, choice, self.ports, self.world())

        async def picture(file: bytes, media_type: str, choice: Choice) -> dict[str, object]:
            async with one_at_a_time:
                return await self._picture(file, media_type, choice)

        async def check(text: str) -> dict[str, object]:
            policies = self.world().policies
            async with one_at_a_time:
                return await self.ports.aside(lambda: checked(text, policies))

        async def policy(tenant: TenantId, task: str | None, model: str | None) -> dict[str, object]:
            return effective(self.world().policies, tenant, task, model)

        async def choices() -> dict[str, object]:
            return self._choices()

        return UiView(
            ask_choices=lambda: on_loop(loop, choices()),
            ask_sizes=lambda asked, choice: on_loop(loop, sizes(asked, choice)),
            ask_picture=lambda file, media_type, choice: on_loop(loop, picture(file, media_type, choice)),
            ask_policy=lambda tenant, task, model: on_loop(loop, policy(tenant, task, model)),
            ask_check=lambda text: on_loop(loop, check(text)),
            live=lambda after: live(self.moment(), self.recent.look(after)),
        )

    async def _picture(self, file: bytes, media_type: str, choice: Choice) -> dict[str, object]:
        check_choice(choice)
        body = HeapBody(await self.ports.aside(lambda: picture_body(choice, file, media_type)))
        try:
            return await show_picture(body, choice, self.ports, self.world())
        finally:
            body.close()

    def _choices(self) -> dict[str, object]:
        policies = self.world().policies
        served = sorted({name for view in self.ports.upstream.views() for name in view.models})
        tenants = list(policies.tenants.items())[:_TENANTS_SHOWN]
        return {
            "tenants": [
                {"name": name, "tasks": list(tenant.tasks), "default_task": tenant.settings["default_task"].value}
                for name, tenant in tenants
            ],
            "served": served,
            "known": [checkpoint.name for checkpoint in shipped_catalog().checkpoints],
            "details": list(DETAILS),
            "models_limit": MODELS_LIMIT,
            "picture_limit_bytes": PICTURE_LIMIT_BYTES,
            "data_port": self.data_port,
            "tls": self.has_tls,
            "keys": policies.has_keys,
        }


async def explained(body: bytes, headers: dict[str, str], ports: Ports, world: World) -> dict[str, object]:
    """Explain a request body of the path that ``x-vlmgw-path`` names (chat without it). ``headers`` in lower case."""
    path = asked_path("", headers.get(PATH_HEADER))
    dialect = dialect_of(path)
    if dialect is None:
        return refused(unread(path))
    head = RequestHead("POST", path, "", tuple(headers.items()), len(body), RequestId("explain"))
    return await explain(HeapBody(body), head, dialect, ports, world)


def effective(policies: PolicySet, tenant: TenantId, task: str | None, model: str | None) -> dict[str, object]:
    """Every value that holds for a request, where it was written, and what it means. Raises what `resolve` raises."""
    found = policies.tenants.get(tenant)
    if found is None:
        raise NotPermitted("There is no such tenant.", part="tenant")
    policy = resolve(policies, tenant=tenant, header_task=task, model=model, body_task=None, needs_model=False)
    values = []
    for key, reason in policy.reasons.items():
        name = key.rpartition(".")[2]
        value = getattr(policy, name) if hasattr(policy, name) else found.settings[key].value
        values.append(
            {
                "key": key,
                "value": in_words(key, value),
                "source": reason,
                "built_in": reason == BUILTIN_REASON,
                "summary": _SUMMARIES.get(key, ""),
            }
        )
    return {
        "tenant": tenant,
        "task": policy.task,
        "task_reason": policy.task_reason,
        "model": policy.model,
        "mode": policy.mode.value,
        "version": policy.policy_version,
        "files": [layer.file for layer in found.layers],
        "values": values,
    }


def checked(text: str, policies: PolicySet) -> dict[str, object]:
    """What is wrong with a policy file, put in the place of the one that its tenant has; else what it would change.

    ``changes_count`` is ``None`` where there is too much to compare; ``changes`` are then of keys alone.
    """
    try:
        document, problems = parse_document(parse_yaml(text, PASTED), PASTED)
    except PolicyProblems as error:
        return _verdict(error.problems)
    others = tuple(each for each in policies.documents if each.tenant != document.tenant)
    together, more = build_policy_set((*others, document))
    problems = (*problems, *(each for each in more if each not in problems))
    if problems:
        return _verdict(problems)
    valid = _verdict(()) | {"tenant": document.tenant}
    changes = list(key_changes(policies, together))
    old, new = _concerned(policies, document), _concerned(together, document)
    if _places(old) + _places(new) > _PLACES_COMPARED:
        return valid | {"changes": [_change(each) for each in changes[:_DIFFERENCES_SHOWN]], "changes_count": None}
    try:
        changes += differences(old, new)
    except GatewayError as error:  # a set that resolves no more: what it would change cannot be told
        return _verdict((Problem(PASTED, 1, "", error.message),))
    return valid | {
        "changes": [_change(each) for each in changes[:_DIFFERENCES_SHOWN]],
        "changes_count": len(changes),
    }


def _concerned(policies: PolicySet, document: Document) -> PolicySet:
    """This tenant alone (of nobody's file: whoever has no file): all tenants together may be many."""
    kept, _ = build_policy_set(each for each in policies.documents if each.tenant in {None, document.tenant})
    return kept


def _places(policies: PolicySet) -> int:
    """For how many tasks and patterns of models a policy is worked out."""
    return sum(
        len(tenant.tasks) * (1 + sum(len(layer.models) for layer in tenant.layers))
        for tenant in policies.tenants.values()
    )


def _change(each: Difference) -> dict[str, object]:
    return {
        "tenant": each.tenant,
        "task": each.task,
        "model": each.model,
        "key": each.key,
        "old": None if each.old is None else in_words(each.key, each.old.value),
        "new": None if each.new is None else in_words(each.key, each.new.value),
        "source": None if each.new is None else each.new.reason,
    }


def _verdict(problems: tuple[Problem, ...]) -> dict[str, object]:
    told_problems = [
        {"file": each.file, "line": each.line, "path": each.path, "message": each.message} for each in problems
    ]
    return {"ok": not problems, "problems": told_problems}
