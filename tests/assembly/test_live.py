"""The gateway at one moment, as the page is told it."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

from gateway.assembly.live import TENANTS_SHOWN, live
from gateway.policy.policyset import PolicySet
from gateway.record import ExchangeRecord
from gateway.telemetry.recent import Recent
from gateway.types import BackendName, BackendView, EngineKind, RequestId, TenantId
from tests.assembly.test_gauges import moment
from tests.policy.examples import policy_set

VIEW = BackendView(BackendName("a"), "http://user:secret@a:1", EngineKind.VLLM, kv_use_ratio=0.5, inflight_requests=3)


def tenants(count: int) -> PolicySet:
    files = {f"t{number}": f"tenant: t{number}\nkv_tokens_in_flight: 100\n" for number in range(count)}
    return policy_set(**files)


def test_all_of_it_is_json_and_no_address_is_in_it() -> None:
    lately = Recent(lambda: 0.0)
    record = ExchangeRecord(RequestId("r1"), "openai_chat", "/v1/chat/completions", 0.0, backend="a")
    lately.take(5.0, record, {"event": "exchange", "request_id": "r1"})
    look = live(moment(VIEW, inflight=((97.5, "openai_chat"),)), lately.look())
    text = json.dumps(look)
    assert "secret" not in text
    assert (look["inflight"], look["oldest_s"]) == (1, 2.5)
    (backend,) = json.loads(text)["backends"]
    assert (backend["name"], backend["breaker"], backend["kv_ratio"], backend["inflight"]) == ("a", "open", 0.5, 3)
    assert backend["sums"]["requests"] == 1
    assert json.loads(text)["decisions"] == [{"number": 1, "trail": [], "event": "exchange", "request_id": "r1"}]
    assert json.loads(text)["seconds"] == [[5, 1, 0, 0, 0]]


def test_of_many_tenants_those_that_hold_the_most_are_shown() -> None:
    held = {TenantId("t7"): 50, TenantId("t3"): 90}
    now = replace(
        moment(), tenants=MappingProxyType(dict(tenants(TENANTS_SHOWN + 20).tenants)),
        reserved_kv_tokens=lambda tenant: held.get(tenant, 0),
    )  # fmt: skip
    look = json.loads(json.dumps(live(now, Recent(lambda: 0.0).look())))
    assert len(look["tenants"]) == TENANTS_SHOWN
    assert [each["name"] for each in look["tenants"][:2]] == ["t3", "t7"]
    assert look["tenants"][0] == {"name": "t3", "reserved_tokens": 90, "limit_tokens": 100}
