"""What an operator is warned of at the start: odd settings, one line of the log each.

Decided here: the words of the log. Not decided here: what is odd (``config.advice``).
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.config.advice import advice, key_advice
from gateway.config.settings import Settings
from gateway.policy.policyset import PolicySet
from gateway.telemetry.log import JsonLog


def warn(
    settings: Settings, policies: PolicySet | None, environment: Mapping[str, str], log: JsonLog, now_s: float
) -> None:
    """Say each of them once. Without ``policies``, which somebody else finds unusable, nothing is said of keys."""
    of_keys = [] if policies is None else key_advice(settings, policies, now_s)
    for each in (*advice(settings, environment), *of_keys):
        log.event("warning", "odd_setting", setting=each.about, reason=each.text)
