from __future__ import annotations

from dataclasses import replace

from gateway.models.book import ModelBook, ServedModel
from gateway.models.catalog import shipped_catalog
from gateway.models.kv import bytes_per_encoder_token, request_kv_bytes
from gateway.policy.effective import EffectivePolicy, Mode, RateRule, Urgency
from gateway.quota.claim import Charge, Claim, Hold, Priority, Unit
from gateway.quota.gcra import Rate
from gateway.stages.claiming import claim_of, claim_unread, kv_bytes_held
from gateway.stages.planning import plan_images
from gateway.types import BackendName, BackendView, EngineKind, Size
from tests.journey.fakes import facts
from tests.policy.examples import call, estimate, part, policy

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
VIEW = BackendView(BackendName("a"), "http://a", EngineKind.VLLM, models=(MODEL,))
EVERY_UNIT = tuple(
    RateRule(unit.value, 10**9, 60) for unit in Unit if unit not in {Unit.KV_TOKENS, Unit.KV_BYTES}
)  # fmt: skip


def served() -> ServedModel:
    return ModelBook(shipped_catalog()).serve(MODEL, [VIEW])


def made(images: int = 2, views: tuple[BackendView, ...] = (VIEW,), **values: object) -> Claim:
    asked = call(*(part(index) for index in range(images)))
    rules: EffectivePolicy = policy(**values)
    plans = plan_images(rules, served(), asked, [facts(Size(1024, 512))] * images, "v")
    return claim_of(rules, served(), asked, estimate(text=20, image_tokens=512 * images, output=16), plans, views)


def test_every_unit_is_charged_with_what_the_request_has_of_it() -> None:
    amounts = {charge.unit: charge.amount for charge in made(rates=EVERY_UNIT).charges}
    assert amounts == {
        Unit.REQUESTS: 1,
        Unit.TOKENS: 20 + 1024 + 2 + 16,
        Unit.IMAGES: 2,
        Unit.MEGAPIXELS: 2 * 1024 * 512,
        Unit.IMAGE_TOKENS: 1024,
        Unit.PROMPT_TOKENS: 20 + 1024 + 2,
        Unit.OUTPUT_TOKENS: 16,
        Unit.KV_TOKEN_SECONDS: 0,
    }


def test_rates_keep_their_window_and_burst() -> None:
    rates = (RateRule("images", 600, 60, 50), RateRule("images", 9_000, 3_600))
    assert made(rates=rates).charges == (
        Charge(Unit.IMAGES, 2, Rate(600, 60, 50)),
        Charge(Unit.IMAGES, 2, Rate(9_000, 3_600)),
    )


def test_kv_tokens_are_counted_whether_they_are_limited_or_not() -> None:
    kv_tokens = estimate(20, 1024, 16).kv_tokens
    assert made().holds == (Hold(Unit.KV_TOKENS, kv_tokens, None),)
    shape = served().checkpoint.kv
    assert shape is not None
    kv_bytes = request_kv_bytes(shape, kv_tokens - 16, 16)
    limited = made(kv_tokens_in_flight=5_000, requests_in_flight=3, kv_bytes_in_flight=2**30)
    assert [(hold.amount, hold.limit) for hold in limited.holds] == [(kv_tokens, 5_000), (1, 3), (kv_bytes, 2**30)]


def test_cost_counts_the_encoders_work_too() -> None:
    text, images = made(images=0), made(images=2)
    assert text.cost == text.held(Unit.KV_TOKENS)
    assert images.cost == images.held(Unit.KV_TOKENS) + 2 * (1024 * 512 // 16**2) // 5


def test_the_pool_is_the_model_where_a_backend_lists_it() -> None:
    assert made().pool == MODEL
    assert made(views=(replace(VIEW, models=()),)).pool is None


def test_what_the_policy_says_of_waiting() -> None:
    claim = made(mode=Mode.SHADOW, priority=Urgency.LOW, weight=2.5, queue_timeout_s=3.0)
    assert (claim.shadow, claim.priority, claim.weight, claim.queue_timeout_s) == (True, Priority.LOW, 2.5, 3.0)


def test_images_that_stand_beside_the_prompt_hold_kv_of_their_own() -> None:
    name = "meta-llama/Llama-3.2-11B-Vision-Instruct"
    llama = ModelBook(shipped_catalog()).serve(name, [replace(VIEW, models=(name,))])
    shape = llama.checkpoint.kv
    assert shape is not None
    with_image, without = (kv_bytes_held(llama, 100, estimate(20, tokens, 16)) for tokens in (1601, 0))
    assert with_image is not None
    assert without is not None
    assert with_image - without == 1601 * bytes_per_encoder_token(shape) > 0


def test_an_unread_request_asks_for_one_request_where_requests_are_limited() -> None:
    assert claim_unread(policy(kv_tokens_in_flight=5, rates=(RateRule("images", 5, 1),))) is None
    claim = claim_unread(policy(requests_in_flight=3, priority=Urgency.HIGH, weight=2.0, mode=Mode.SHADOW))
    assert claim is not None
    assert (claim.holds, claim.charges) == ((Hold(Unit.REQUESTS, 1, 3),), ())
    assert (claim.priority, claim.weight, claim.shadow) == (Priority.HIGH, 2.0, True)
    rates = (RateRule("requests", 5, 1), RateRule("requests", 100, 3_600), RateRule("tokens", 5, 1))
    rated = claim_unread(policy(rates=rates))
    assert rated is not None
    assert [(charge.unit, charge.amount) for charge in rated.charges] == [(Unit.REQUESTS, 1)] * 2
