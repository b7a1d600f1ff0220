"""Two gateways replaced one after the other under load, behind HAProxy and Envoy: the short form of `tests.rollout`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.rollout.__main__ import table
from tests.rollout.drive import Plan, drive

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
_SHORT = Plan(requests=120, rounds=1, clients=6, pause_s=0.15, stream_tokens=(90, 180), kills=1)


def test_nothing_is_lost_while_gateways_are_replaced_and_only_what_was_there_while_one_is_killed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    verdict = drive(_SHORT, _short(tmp_path_factory))
    assert verdict.findings == [], "\n".join(table(verdict.facts))
    rolling, killed = (cast("dict[str, Any]", verdict.facts[name]) for name in ("rolling", "killed"))
    assert rolling["failed"] == 0
    assert rolling["requests"] >= _SHORT.requests
    assert rolling["streams_spanning_a_drain"] > 0
    assert rolling["books"]["tokens_charged"] == rolling["books"]["tokens_answered"] > 0
    assert killed["sent_twice"] == 0


def _short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sockets stand there, and their paths may not be long."""
    return tmp_path_factory.mktemp("r")
