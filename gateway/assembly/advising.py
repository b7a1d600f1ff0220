"""What an operator is warned of at the start: odd settings, one line of the log each.

Decided here: the words of the log. Not decided here: what is odd (``config.advice``).
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.config.advice import advice
from gateway.config.settings import Settings
from gateway.telemetry.log import JsonLog


def warn(settings: Settings, environment: Mapping[str, str], log: JsonLog) -> None:
    """Say each of them once."""
    for each in advice(settings, environment):
        log.event("warning", "odd_setting", setting=each.about, reason=each.text)
