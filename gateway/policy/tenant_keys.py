"""The keys that stand at the top of a file and hold for a tenant as a whole; some of them a task may set for itself.

Decided here: their names, kinds and defaults. A key whose last word is a field of `effective.EffectivePolicy` becomes
that field's value; the others are used up while a policy is resolved. Not decided here: the keys below ``rules``
(`rules`), and how layers are joined (`resolve`). To add one: its line here and, where a request needs it, its field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.policy.choose import ChooseRules
from gateway.policy.effective import (
    BytesOnce,
    CacheSalt,
    EngineFields,
    FieldAction,
    ImageScope,
    Mode,
    Profile,
    StreamUsage,
    Urgency,
)
from gateway.policy.mappings import ActionsByField, joined_fields
from gateway.policy.rates import Rates, Weight
from gateway.policy.values import BYTE_UNITS, Aliases, Amount, Choice, Hosts, Kind, Models, Name, Seconds


@dataclass(frozen=True, slots=True)
class TenantKey:
    """One key. ``in_tasks``: it may stand below ``tasks.*`` too, for that task alone.

    ``join`` makes one value of the inherited one and of the one written above it; without it the latter replaces.
    """

    key: str
    summary: str
    kind: Kind
    default: object
    in_tasks: bool = False
    join: Callable[[Any, Any], object] | None = None  # Any: each key's join knows its own two types

    @property
    def field(self) -> str:
        """The field of the effective policy, where there is one."""
        return self.key.rpartition(".")[2]


TENANT_KEYS: tuple[TenantKey, ...] = (
    TenantKey("mode", "`shadow` reports what would be done and does nothing.", Choice(Mode), Mode.ENFORCE, True),
    TenantKey(
        "profile",
        "Behave like `openai`, `anthropic` or `gemini`: their limits and errors, below the file's own rules.",
        Choice(Profile),
        Profile.NONE,
        True,
    ),
    TenantKey("default_task", "The task of requests that name none.", Name(), "chat"),
    TenantKey("choose", "Rules that give a request without a task one; the first that fits.", ChooseRules(), ()),
    TenantKey(
        "model_aliases", "Names for models, `name: model`; `name@task: model` chooses the task as well.", Aliases(), {}
    ),
    TenantKey("allowed_models", "Models that may be named, by name or pattern; others are not there.", Models(), None),
    TenantKey(
        "kv_tokens_in_flight",
        "KV tokens (prompt and reserved output) of all requests that run at one time.",
        Amount("kv_tokens_in_flight", 1, 10**12, word="none"),
        None,
    ),
    TenantKey(
        "kv_bytes_in_flight",
        "The same in bytes, by the shape of each model; not limited where a model's shape is not known.",
        Amount("kv_bytes_in_flight", 1, 2**53, BYTE_UNITS | {"TiB": 2**40}, word="none"),
        None,
    ),
    TenantKey(
        "requests_in_flight",
        "Requests that run at one time.",
        Amount("requests_in_flight", 1, 10**9, word="none"),
        None,
    ),
    TenantKey("rates", "What may be used in a window, by unit, as in `{images: 600/min}`.", Rates(), ()),
    TenantKey(
        "priority",
        "Who goes first where requests wait: `high`, `normal`, `low`.",
        Choice(Urgency),
        Urgency.NORMAL,
        True,
    ),
    TenantKey("weight", "A tenant's share, against one of weight 1, where requests wait.", Weight(), 1.0),
    TenantKey(
        "queue_timeout_s",
        "Seconds a request waits: for budget before 429, for image workers before 503.",
        Seconds(600),
        10.0,
        True,
    ),
    TenantKey(
        "stream_usage",
        "`settle` asks engines for the usage of streams whose clients do not, and keeps it from them.",
        Choice(StreamUsage),
        StreamUsage.ASKED,
        True,
    ),
    TenantKey("hosts", "Hosts from which images may be fetched.", Hosts(), None, True),
    TenantKey("isolation.cache_salt", "Who shares an engine's prefix cache.", Choice(CacheSalt), CacheSalt.NONE),
    TenantKey(
        "isolation.image_ids",
        "Who shares the images that an engine keeps under our ids: `tenant`, `user`, or `all` who say so.",
        Choice(ImageScope),
        ImageScope.TENANT,
    ),
    TenantKey(
        "bytes_once",
        "`auto`: an image that its vLLM backend is believed to hold goes as its id alone; `never`: always its bytes.",
        Choice(BytesOnce),
        BytesOnce.AUTO,
        True,
    ),
    TenantKey(
        "engine_fields",
        "Engine-internal fields in the body: `strip`, `allow` or `reject` them, all alike or each by name.",
        ActionsByField(),
        EngineFields(FieldAction.STRIP),
        True,
        joined_fields,
    ),
)
KEYS_BY_NAME = {tenant_key.key: tenant_key for tenant_key in TENANT_KEYS}
