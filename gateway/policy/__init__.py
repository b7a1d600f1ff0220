"""Policies: what a tenant may do for a task with a model, and how images are treated (stages *resolve* and *check*).

Decided here: the language of policy files, inheritance, the choice of the task, every limit and its message.
Not decided here: how an image is shrunk (`models`, `media`), budgets over time (`quota`), how files are found and read
(`config`).
"""

from __future__ import annotations

from gateway.policy.check import check_declared, check_measured
from gateway.policy.effective import (
    CacheSalt,
    ColourProfile,
    EffectivePolicy,
    EngineFields,
    Excess,
    FieldAction,
    Geometry,
    Mode,
    OnExcess,
    RuleValues,
    Selection,
    Several,
    Truncated,
)
from gateway.policy.node import Problem
from gateway.policy.policyset import DEFAULT_TENANT, PolicySet, build_policy_set, builtin_policies
from gateway.policy.resolve import resolve
from gateway.policy.rule import MeasuredImage

__all__ = [
    "DEFAULT_TENANT",
    "CacheSalt",
    "ColourProfile",
    "EffectivePolicy",
    "EngineFields",
    "Excess",
    "FieldAction",
    "Geometry",
    "MeasuredImage",
    "Mode",
    "OnExcess",
    "PolicySet",
    "Problem",
    "RuleValues",
    "Selection",
    "Several",
    "Truncated",
    "build_policy_set",
    "builtin_policies",
    "check_declared",
    "check_measured",
    "resolve",
]
