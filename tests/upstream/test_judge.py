"""The comparison with the fleet reaches routing's view, and never takes the last backend."""

from __future__ import annotations

from gateway.types import BackendName, EngineKind, RequestCost
from gateway.upstream.engines import engine_of
from gateway.upstream.engines.contract import EngineFacts
from gateway.upstream.judge import Judge
from gateway.upstream.outliers import OutlierRules
from gateway.upstream.registry import Registry
from gateway.upstream.settings import BackendSettings, UpstreamSettings

COST = RequestCost(100, 10, 0)


def fleet(*models: str) -> tuple[Registry, Judge, list[dict[str, object]]]:
    settings = UpstreamSettings(tuple(BackendSettings(f"http://{n}", name=f"b{n}") for n in range(len(models))))
    registry = Registry(settings)
    for backend, model in zip(registry, models, strict=True):
        backend.learn_facts(engine_of(EngineKind.VLLM), EngineFacts(models=(model,)))
    lines: list[dict[str, object]] = []
    rules = OutlierRules(volume=10)
    return (
        registry,
        Judge(registry, rules, lambda level, event, **fields: lines.append(fields)),
        lines,
    )


def meet(registry: Registry, judge: Judge, name: str, *, good: bool, now_s: float = 1.0) -> None:
    for _ in range(20):
        (judge.answered if good else judge.failed)(registry[BackendName(name)], now_s)


def test_an_outlier_is_out_of_the_view_and_told() -> None:
    registry, judge, lines = fleet("m", "m")
    meet(registry, judge, "b0", good=True)
    meet(registry, judge, "b1", good=False)
    judge.answered(registry[BackendName("b0")], 12.0)
    assert [view.healthy for view in registry.views(12.0)] == [True, False]
    assert lines == [{"backend": "b1", "reason": "failures", "for_s": 30.0}]
    assert judge.ejections == {("b1", "failures"): 1}
    assert [view.healthy for view in registry.views(42.0)] == [True, True]
    assert registry.views(42.0)[1].ramp < 1.0, "and then a slow start"


def test_it_is_let_in_again_when_nobody_else_is_left() -> None:
    registry, judge, _ = fleet("m", "m")
    meet(registry, judge, "b0", good=True)
    meet(registry, judge, "b1", good=False)
    judge.answered(registry[BackendName("b0")], 12.0)
    registry[BackendName("b0")].mark_down()
    assert [view.healthy for view in registry.views(12.5)] == [False, True]


def test_backends_of_different_models_are_not_compared() -> None:
    registry, judge, lines = fleet("m", "n")
    meet(registry, judge, "b0", good=True)
    meet(registry, judge, "b1", good=False)
    judge.answered(registry[BackendName("b0")], 12.0)
    assert lines == []


def test_times_count_where_the_cost_is_known() -> None:
    registry, judge, lines = fleet("m", "m")
    for _ in range(20):
        for name, seconds in (("b0", 0.1), ("b1", 9.0)):
            backend = registry[BackendName(name)]
            judge.answered(backend, 1.0)
            judge.took(backend, 1.0, seconds, COST, streamed=True)
            judge.took(backend, 1.0, 99.0, None, streamed=True)
    judge.answered(registry[BackendName("b0")], 12.0)
    assert [line["reason"] for line in lines] == ["latency"]
    judge.forget(BackendName("b1"))
