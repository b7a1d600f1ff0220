"""Records and their snapshots: configured before learnt, rebuilt only when something changed."""

from __future__ import annotations

from dataclasses import replace

from gateway.types import BackendName, BackendRole, EngineKind, RequestCost
from gateway.upstream.engines import engine_of
from gateway.upstream.engines.contract import EngineFacts, EngineLoad
from gateway.upstream.registry import Backend, Registry
from gateway.upstream.settings import BackendSettings, UpstreamSettings

VLLM = engine_of(EngineKind.VLLM)


def registry(*backends: BackendSettings) -> Registry:
    return Registry(UpstreamSettings(backends or (BackendSettings("http://a", name="a"),), breaker_failures=1))


def only(backends: Registry) -> Backend:
    return next(iter(backends))


def test_a_new_backend_is_hopeful_and_unknown() -> None:
    (view,) = registry().views(0.0)
    assert (view.engine, view.models, view.healthy, view.vision) == (EngineKind.GENERIC, (), True, True)
    assert view.scraped_age_s is None


def test_what_was_configured_outranks_what_was_learnt() -> None:
    backends = registry(BackendSettings("http://a", engine="vllm", max_pixels=1000, context_tokens=10, vision=False))  # type: ignore[arg-type]
    facts = EngineFacts("0.32.0", ("m",), "/m", 4096, 100_000, 16, 2000, 4, vision=True)
    only(backends).learn_facts(VLLM, facts)
    (view,) = backends.views(0.0)
    assert (view.max_pixels, view.context_tokens, view.vision) == (1000, 10, False)
    assert (view.kv_capacity_tokens, view.kv_block_tokens, view.max_images) == (100_000, 16, 4)
    assert (view.engine, view.engine_version, view.models, view.model_root) == (EngineKind.VLLM, "0.32.0", ("m",), "/m")


def test_an_unanswered_question_keeps_the_old_answer_unless_the_model_changed() -> None:
    backends = registry()
    only(backends).learn_facts(VLLM, EngineFacts("1", ("m",), "/m", 4096, 100_000))
    only(backends).learn_facts(VLLM, EngineFacts("1", ("m",), "/m", 4096, None))
    assert backends.views(0.0)[0].kv_capacity_tokens == 100_000
    only(backends).learn_facts(VLLM, EngineFacts("1", ("n",), "/n", 4096, None))
    assert backends.views(0.0)[0].kv_capacity_tokens is None


def test_views_are_the_same_objects_until_something_changes() -> None:
    backends = registry(BackendSettings("http://a", name="a"), BackendSettings("http://b", name="b"))
    before = backends.views(0.0)
    assert backends.views(0.1) is before
    account = backends[BackendName("a")].accounts.open(RequestCost(10, 5, 100))
    during = backends.views(0.2)
    assert during[1] is before[1]
    assert (during[0].inflight_requests, during[0].inflight_kv_tokens) == (1, 15)
    assert (during[0].queued_prefill_tokens, during[0].queued_encode_patches) == (10, 100)
    account.close()
    after = backends.views(0.3)
    assert after[0].recent_work_tokens > 0
    assert [replace(view, recent_work_tokens=0.0) for view in after] == list(before)


def test_helpers_take_no_requests() -> None:
    backends = registry(
        BackendSettings("http://a", name="a", role=BackendRole.CONSUMER),
        BackendSettings("http://b", name="b", role=BackendRole.ENCODER),
        BackendSettings("http://c", name="c", role=BackendRole.PREFILL),
    )
    assert [view.name for view in backends.helpers(0.0)] == ["b", "c"]
    assert [(view.name, view.role) for view in backends.views(0.0)] == [("a", BackendRole.CONSUMER)]
    assert registry().helpers(0.0) == ()


def test_behind_a_router_nobody_answers_for_ids() -> None:
    lent = BackendSettings("http://a", name="a", lend_affinity="vllm-router")
    told = BackendSettings("http://b", name="b", lend_affinity="vllm-router", takes_ids=True)
    assert [view.takes_ids for view in registry(lent, told).views(0.0)] == [False, True]


def test_marks_down_up_and_draining() -> None:
    backends = registry()
    backend = only(backends)
    backend.mark_draining(0.0)
    assert backends.views(0.0)[0].draining
    assert not backends.views(31.0)[0].draining, "the mark wears off"
    backend.mark_draining(31.0)
    backend.mark_down()
    (view,) = backends.views(31.0)
    assert (view.healthy, view.draining) == (False, False)
    assert backends.views(31.0)[0].returns == 0
    assert backend.mark_up(40.0)
    assert not backend.mark_up(40.0)
    assert backends.views(31.0)[0].healthy
    assert backends.views(31.0)[0].returns == 1


def test_no_two_lives_under_one_name_look_alike() -> None:
    backends = registry(BackendSettings("http://a", name="a"))
    seen = {only(backends).standing.returns}
    for number in range(3):
        busy = number == 1
        before = backends.leave(BackendName("a"))
        if not busy:
            backends.forget(before)
        after = backends.join(BackendSettings(f"http://other-{number}", name="a"))
        assert after is not before
        seen.add(after.standing.returns)
        after.mark_down()
        after.mark_up(0.0)
        seen.add(after.standing.returns)
    assert len(seen) == 7


def test_one_odd_probe_is_chance_two_are_not() -> None:
    backend = only(registry())
    backend.missed()
    assert backend.up
    assert not backend.mark_up(40.0)
    backend.missed()
    backend.missed()
    assert not backend.up


def test_an_open_breaker_shows_and_wears_off() -> None:
    backends = registry()
    only(backends).standing.breaker.failed(0.0)
    only(backends).refresh()
    assert not backends.views(0.0)[0].healthy
    assert backends.views(2.5)[0].healthy


def test_load_reports_have_an_age() -> None:
    backends = registry()
    only(backends).learn_load(EngineLoad(running=3, waiting=1, kv_use_ratio=0.5), 1.0)
    (view,) = backends.views(4.0)
    assert (view.engine_running, view.engine_waiting, view.kv_use_ratio, view.scraped_age_s) == (3, 1, 0.5, 3.0)


def test_the_pace_shows_once_it_was_observed() -> None:
    backends = registry(BackendSettings("http://a", name="a"))
    assert backends.views(0.0)[0].prefill_s_per_token is None
    backends[BackendName("a")].learn_pace(10_000, 0, 10.0)
    assert (backends.views(2.0)[0].prefill_s_per_token or 0.0) > 1e-4


def test_a_report_knows_what_was_ours_then() -> None:
    backends = registry(BackendSettings("http://a", name="a"))
    backend = backends[BackendName("a")]
    account = backend.accounts.open(RequestCost(10, 5, 100))
    backend.learn_load(EngineLoad(running=3, waiting=2), 1.0)
    account.close()
    view = backends.views(1.0)[0]
    assert (view.scraped_inflight_requests, view.inflight_requests) == (1, 0)
