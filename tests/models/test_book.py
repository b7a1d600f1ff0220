"""The models that are served now: caps and contexts over all their backends, and what is learnt of text."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.models.book import _REMEMBERED, Computed, ModelBook
from gateway.models.catalog import ModelOverride, shipped_catalog
from gateway.models.drift import ENOUGH, Finding, counted
from gateway.types import BackendName, BackendView, EngineKind, Size

MODEL = "Qwen/Qwen3-VL-8B-Instruct"


def view(name: str = "a", **known: Any) -> BackendView:
    return BackendView(BackendName(name), f"http://{name}", **({"engine": "vllm", "models": (MODEL,)} | known))


def book() -> ModelBook:
    return ModelBook(shipped_catalog())


def shipped_cap() -> int:
    return shipped_catalog().find(MODEL).checkpoint.max_pixels


def test_a_model_is_what_its_name_says() -> None:
    served = book().serve(MODEL, [view()])
    assert (served.name, served.checkpoint.name, served.match.known) == (MODEL, MODEL, True)
    assert served.checkpoint.max_pixels == shipped_cap()
    assert served.family.name == served.checkpoint.family


def test_an_alias_is_what_its_backend_loaded() -> None:
    served = book().serve("fast", [view(models=("fast",), model_root=MODEL)])
    assert (served.name, served.checkpoint.name) == ("fast", MODEL)


def test_the_largest_cap_of_the_group_counts_when_all_are_known() -> None:
    caps = [view("a", max_pixels=500_000), view("b", max_pixels=700_000)]
    assert book().serve(MODEL, caps).checkpoint.max_pixels == 700_000
    assert book().serve(MODEL, [*caps, view("c")]).checkpoint.max_pixels == shipped_cap()


def test_the_longest_context_counts_when_all_are_known() -> None:
    contexts = [view("a", context_tokens=1000), view("b", context_tokens=2000)]
    assert book().serve(MODEL, contexts).context_tokens == 2000
    assert book().serve(MODEL, [*contexts, view("c")]).context_tokens is None
    assert book().serve(MODEL, []).context_tokens is None


def test_one_sglang_backend_makes_the_group_count_as_sglang_does() -> None:
    """A square is 9 tiles and an overview there, one tile in vLLM: the estimate is an upper bound for both."""
    name = "OpenGVLab/InternVL2-8B"
    vllm = view("a", models=(name,), engine=EngineKind.VLLM)
    sglang = view("b", models=(name,), engine=EngineKind.SGLANG)
    kept = book()
    served = [kept.serve(name, views) for views in ([vllm], [sglang], [vllm, sglang])]
    tokens = [one.family.image_tokens(Size(224, 224), one.checkpoint).tokens for one in served]
    assert tokens == [256, 2560, 2560]


def test_each_backend_of_a_mixed_group_is_compared_with_its_own_engines_rule() -> None:
    name = "OpenGVLab/InternVL2-8B"
    vllm = view("a", models=(name,), engine=EngineKind.VLLM)
    sglang = view("b", models=(name,), engine=EngineKind.SGLANG)
    kept = book()
    served = kept.serve(name, [vllm, sglang])
    for one, tokens in ((vllm, 256), (sglang, 2560)):
        verdict = kept.learn_images(served, one, [Size(224, 224)], tokens)
        assert (verdict.expected_tokens, verdict.finding) == (tokens, None)


def test_backends_of_other_models_do_not_count() -> None:
    served = book().serve(MODEL, [view("a", max_pixels=500_000), view("b", models=("other",), max_pixels=900_000)])
    assert served.checkpoint.max_pixels == 500_000
    anything = view("c", models=(), max_pixels=900_000)
    assert book().serve(MODEL, [view("a", max_pixels=500_000), anything]).checkpoint.max_pixels == 900_000


def test_the_operator_knows_better() -> None:
    override = ModelOverride(checkpoint=MODEL, context_tokens=123)
    served = ModelBook(shipped_catalog(), {"mine": override}).serve("mine", [view(models=("mine",), context_tokens=9)])
    assert (served.checkpoint.name, served.context_tokens) == (MODEL, 123)


def test_a_model_serves_images_if_one_backend_does() -> None:
    assert book().serve(MODEL, [view(vision=False), view("b")]).serves_images
    assert not book().serve(MODEL, [view(vision=False)]).serves_images


def test_what_was_worked_out_is_kept_and_bounded() -> None:
    kept = book()
    assert kept.serve(MODEL, [view()]) is kept.serve(MODEL, [view(inflight_requests=7)])
    for number in range(_REMEMBERED + 1):
        kept.serve(f"name-{number}", [])
    assert len(kept._served) <= _REMEMBERED


def test_an_unknown_model_gets_an_upper_estimate() -> None:
    served = book().serve("mystery", [view(models=("mystery",))])
    assert not served.match.known
    assert served.name == "mystery"


def test_text_bounds_enclose_the_expectation() -> None:
    kept = book()
    served = kept.serve(MODEL, [view()])
    found = kept.estimate_text(served, 4_000, 2)
    assert 0 < found.lower_bound <= found.expected <= found.upper_bound


def test_what_an_engine_counted_moves_the_next_estimate_and_no_other_models() -> None:
    kept = book()
    served, other = kept.serve(MODEL, [view()]), kept.serve("Qwen/Qwen2-VL-7B-Instruct", [])
    before, untouched = kept.estimate_text(served, 4_000, 1), kept.estimate_text(other, 4_000, 1)
    for _ in range(20):
        kept.learn_text(served, 4_000, 1, 2_000)
    after = kept.estimate_text(served, 4_000, 1)
    assert abs(after.expected - 2_000) < abs(before.expected - 2_000)
    assert kept.estimate_text(other, 4_000, 1) == untouched


@pytest.mark.parametrize("tokens", [-5, 0, 1])
def test_a_count_that_cannot_be_teaches_nothing(tokens: int) -> None:
    kept = book()
    served = kept.serve(MODEL, [view()])
    before = kept.estimate_text(served, 4_000, 1)
    kept.learn_text(served, 4_000, 1, tokens)
    assert kept.estimate_text(served, 4_000, 1) == before


PHOTOGRAPHS = (Size(4032, 3024), Size(1920, 1080), Size(3000, 3000))
CAP = 1280 * 32 * 32


def shown(kept: ModelBook, backend: BackendView, cap: int) -> list[Finding | None]:
    """What responses of a backend with this cap show, each to the book as it then is."""
    found = []
    for size in PHOTOGRAPHS:
        served = kept.serve(MODEL, [backend])
        actual = counted([size], served.family, served.checkpoint.with_(max_pixels=cap))
        found.append(kept.learn_images(served, backend, [size], actual).finding)
    return found


def test_a_cap_learnt_from_drift_counts_as_the_backends_own() -> None:
    kept, backend = book(), view()
    assert shown(kept, backend, CAP) == [Finding.DEVIATES, None, Finding.CAP_LEARNT]
    assert kept.serve(MODEL, [backend]).checkpoint.max_pixels == CAP
    assert kept.learnt_caps(MODEL) == {"a": CAP}
    assert kept.cap_on(MODEL, backend) == CAP
    assert kept.serve(MODEL, [backend, view("b")]).checkpoint.max_pixels == shipped_cap()
    assert shown(kept, backend, CAP) == [None, None, None]


def test_each_backend_is_held_to_its_own_cap() -> None:
    kept, small, large = book(), view(max_pixels=CAP), view("b", max_pixels=4 * CAP)
    served = kept.serve(MODEL, [small, large])
    size = PHOTOGRAPHS[0]
    for backend in (small, large):
        actual = counted([size], served.family, served.checkpoint.with_(max_pixels=backend.max_pixels or 1))
        verdict = kept.learn_images(served, backend, [size], actual)
        assert (verdict.expected_tokens, verdict.finding) == (actual, None)


@pytest.mark.parametrize("told_by", ["backend", "operator"])
def test_what_the_operator_told_is_not_learnt_over(told_by: str) -> None:
    overrides = {MODEL: ModelOverride(max_pixels=4 * CAP)} if told_by == "operator" else {}
    kept = ModelBook(shipped_catalog(), overrides)
    backend = view(max_pixels=4 * CAP) if told_by == "backend" else view()
    assert shown(kept, backend, CAP)[-1] is Finding.DISTRUSTED
    served = kept.serve(MODEL, [backend])
    assert (served.is_trusted, served.is_exact, served.checkpoint.max_pixels) == (False, False, 4 * CAP)
    assert kept.learnt_caps(MODEL) == {}


def test_a_disproved_model_reserves_what_it_was_exceeded_by() -> None:
    kept, backend = book(), view()
    assert kept.surplus_tokens(kept.serve(MODEL, [backend]), 1000) == 0
    for _ in range(ENOUGH):
        kept.learn_images(kept.serve(MODEL, [backend]), backend, [Size(448, 448)], 392)
    assert kept.surplus_tokens(kept.serve(MODEL, [backend]), 1000) == 1500


def test_in_one_family_images_share_what_the_text_leaves() -> None:
    kept, name = book(), "nvidia/Nemotron-3-Nano-Omni"
    backend = view(models=(name,), context_tokens=8192)
    served = kept.serve(name, [backend])
    short, long = (kept.beside_text(served, count, 1).checkpoint.image_budget_tokens for count in (400, 4000))
    assert short is not None
    assert long is not None
    assert long < short < 8192
    sizes = [Size(4032, 3024)] * 3
    crowded = kept.beside_text(served, 20_000, 1)
    assert counted(sizes, crowded.family, crowded.checkpoint) < counted(sizes, served.family, served.checkpoint)
    agreed = counted(sizes, crowded.family, crowded.checkpoint)
    assert kept.learn_images(crowded, backend, sizes, agreed).finding is None
    others = kept.serve(MODEL, [view()])
    assert kept.beside_text(others, 400, 1) is others


def test_the_pace_is_learnt_per_backend_where_the_compute_is_known() -> None:
    kept, backend = book(), view()
    served = kept.serve(MODEL, [backend])
    before = kept.pace_on(served, backend.name)
    kept.learn_pace(served, backend.name, Computed(2000, 0, (784,)), 2.0)
    after = kept.pace_on(served, backend.name)
    assert after.prefill_flops_per_s < before.prefill_flops_per_s
    assert kept.pace_on(served, BackendName("b")) == before
    nobody = kept.serve("mystery", [view("c", models=("mystery",))])
    kept.learn_pace(nobody, BackendName("c"), Computed(2000, 5000, ()), 2.0)
    assert kept.pace_on(nobody, BackendName("c")) == before


def test_what_is_learnt_of_names_that_clients_choose_is_bounded() -> None:
    kept = book()
    for number in range(_REMEMBERED + 5):
        served = kept.serve(f"my-qwen3-vl-8b-{number}", [view(models=())])
        kept.learn_images(served, view(models=()), [Size(448, 448)], 1)
        kept.learn_pace(served, BackendName("a"), Computed(100, 0, ()), 0.1)
    assert len(kept._ledgers) <= _REMEMBERED
    assert len(kept._paces) <= _REMEMBERED


def test_a_tokenizer_that_is_not_the_engines_is_not_believed_for_long() -> None:
    kept = book()
    served = kept.serve(MODEL, [view()])
    for _ in range(ENOUGH):
        assert kept.trusts_text(served)
        kept.learn_exact(served, agrees=False)
    assert not kept.trusts_text(served)
    kept.learn_exact(served, agrees=True)
    assert kept.trusts_text(served)


def test_a_backend_that_came_back_is_judged_anew() -> None:
    """It may have been started with a larger cap; images shrunk to the earlier one would never show that."""
    kept, backend = book(), view()
    assert shown(kept, backend, CAP)[-1] is Finding.CAP_LEARNT
    again = view(returns=1)
    assert kept.serve(MODEL, [again]).checkpoint.max_pixels == shipped_cap()
    assert kept.learnt_caps(MODEL) == {}
    assert shown(kept, again, CAP)[-1] is Finding.CAP_LEARNT
    assert kept.serve(MODEL, [again]).checkpoint.max_pixels == CAP
