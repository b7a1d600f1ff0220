from __future__ import annotations

from gateway.errors import (
    BackendsFull,
    InFlightExhausted,
    KvBudgetExhausted,
    LimitExceeded,
    RateExceeded,
    TooManyTokens,
)
from gateway.quota.claim import Charge, Claim, Hold, Unit
from gateway.quota.gcra import Rate
from gateway.quota.refusal import impossible, refusal
from gateway.quota.store import Denied
from gateway.types import TenantId


def claim(*holds: Hold, charges: tuple[Charge, ...] = ()) -> Claim:
    return Claim(tenant=TenantId("acme"), holds=holds, charges=charges)


def test_what_could_never_fit_is_told_with_its_rule() -> None:
    assert impossible(claim(Hold(Unit.KV_TOKENS, 10**9), Hold(Unit.REQUESTS, 1, 1))) is None
    error = impossible(claim(Hold(Unit.KV_BYTES, 11, 10)))
    assert isinstance(error, TooManyTokens)
    assert (error.rule, error.status) == ("kv_bytes_in_flight", 400)
    error = impossible(claim(charges=(Charge(Unit.MEGAPIXELS, 24_000_000, Rate(12_000_000, 60)),)))
    assert isinstance(error, LimitExceeded)
    assert (error.rule, error.message) == (
        "rates.megapixels",
        "The request has 24 megapixels; no more than 12 may come at once.",
    )


def test_each_refusal_has_its_error_and_words() -> None:
    kv = refusal(Denied(Hold(Unit.KV_TOKENS, 30, 100), 0, 80, (), 0), 2.0, 900)
    assert isinstance(kv, KvBudgetExhausted)
    assert kv.message == "The request may need 30 KV tokens; 80 of 100 are in flight."
    requests = refusal(Denied(Hold(Unit.REQUESTS, 1, 4), 0, 4, (), 0), 2.0, 900)
    assert isinstance(requests, InFlightExhausted)
    rate = refusal(Denied(Charge(Unit.REQUESTS, 1, Rate(5, 3_600)), 9, 0, (), 0), 2.0, 900)
    assert isinstance(rate, RateExceeded)
    assert rate.message == "The rate of 5 requests per hour is used up for now; this request has 1."
    full = refusal(None, 3.0, 900)
    assert isinstance(full, BackendsFull)
    assert (full.rule, full.retry_after_s) == ("backend_kv", 3.0)
    assert (
        full.message == f"{BackendsFull.summary} It may need 900 KV tokens."
    )  # also where it is requests that are full
