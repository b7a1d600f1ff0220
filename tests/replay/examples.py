"""Access lines as the gateway writes them, from exchanges that took the whole journey."""

from __future__ import annotations

import msgspec

from gateway.policy.policyset import PolicySet
from gateway.record import ExchangeRecord
from gateway.replay.line import Exchange, read_line
from gateway.telemetry.access import access_line
from gateway.types import Size
from tests.journey.fakes import facts
from tests.journey.scenes import DATA_URL, Setting, body
from tests.journey.test_journey import traveled


def recorded(policies: PolicySet, *sizes: Size, looked_at: int | None = None) -> ExchangeRecord:
    """The record of a request with images of these sizes; only the newest ``looked_at`` are looked at."""
    urls = [DATA_URL + "QUJD" * index for index in range(len(sizes))]
    known = tuple(facts(size, number=index) for index, size in enumerate(sizes))
    newest = known if looked_at is None else known[len(known) - looked_at :]
    return traveled(Setting(body(*urls, max_tokens=100), facts=newest, policies=policies)).record


def line_of(record: ExchangeRecord) -> bytes:
    return msgspec.json.encode(access_line(record, 1_700_000_000.0))


def exchange_of(record: ExchangeRecord) -> Exchange:
    found = read_line(line_of(record))
    assert found is not None
    return found
