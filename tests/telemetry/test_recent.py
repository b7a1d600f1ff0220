"""What happened lately: bounded, summed, and told in full only to who watches."""

from __future__ import annotations

from gateway.record import ExchangeRecord
from gateway.telemetry import recent as module
from gateway.telemetry.recent import KEPT_EXCHANGES, KEPT_SECONDS, TRAILS_A_SECOND, Recent
from gateway.types import RequestId, TokenEstimate, Usage


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def exchange(**fields: object) -> ExchangeRecord:
    made = ExchangeRecord(RequestId("r"), "openai_chat", "/v1/chat/completions", 0.0)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def with_image(**fields: object) -> ExchangeRecord:
    estimate = TokenEstimate(10, 10, 10, 300, 2, 5)
    return exchange(
        images_shrunk=1, image_tokens_original=1000, estimate=estimate, family="qwen3_vl", image_bytes_in=500,
        image_bytes_out=100, **fields,
    )  # fmt: skip


def test_sums_of_all_and_of_each_second() -> None:
    lately = Recent(Clock())
    lately.take(1000.2, with_image(backend="a", images_known=1, usage=Usage(50, 5, cached_tokens=40)), {"n": 1})
    lately.take(1000.9, exchange(outcome="shed"), {"n": 2})
    lately.take(1003.0, exchange(outcome="backend_failed", backend="a"), {"n": 3})
    look = lately.look()
    assert look.sums["requests"] == 3
    assert (look.sums["shed"], look.sums["failed"], look.sums["rejected"]) == (1, 1, 0)
    assert look.sums["image_tokens_asked"] - look.sums["image_tokens_sent"] == 700
    assert look.sums["image_bytes_in"] - look.sums["image_bytes_out"] == 400
    assert [(second, sums["requests"]) for second, sums in look.seconds] == [(1000, 2), (1003, 1)]
    assert look.backends == {
        "a": {"requests": 2, "images": 1, "images_known": 1, "prompt_tokens": 50, "cached_tokens": 40}
    }


def test_only_what_is_new_is_told_and_no_more_than_is_kept() -> None:
    lately = Recent(Clock())
    for number in range(KEPT_EXCHANGES + KEPT_SECONDS + 5):
        lately.take(float(number), exchange(), {"n": number})
    look = lately.look()
    assert len(look.told) == KEPT_EXCHANGES
    assert len(look.seconds) == KEPT_SECONDS
    last = look.told[-1].number
    assert [told.number for told in lately.look(last - 2).told] == [last - 1, last]
    assert lately.look(last).told == ()


def test_decisions_are_told_only_while_somebody_watches_and_a_few_a_second() -> None:
    clock = Clock()
    lately = Recent(clock)
    asked = []

    def tell() -> tuple[str, ...]:
        asked.append(1)
        return ("picker: a",)

    lately.take(1.0, exchange(tell_decision=tell), {})
    assert asked == []
    lately.look()
    for _ in range(TRAILS_A_SECOND + 3):
        lately.take(1.5, exchange(tell_decision=tell), {})
    assert len(asked) == TRAILS_A_SECOND
    assert lately.look().told[1].trail == ("picker: a",)
    lately.take(2.0, exchange(tell_decision=tell), {})
    assert len(asked) == TRAILS_A_SECOND + 1
    clock.now_s += module.WATCHED_FOR_S + 0.1
    lately.take(3.0, exchange(tell_decision=tell), {})
    assert len(asked) == TRAILS_A_SECOND + 1


def test_backends_that_come_and_go_do_not_pile_up() -> None:
    lately = Recent(Clock())
    for number in range(600):
        lately.take(1.0, exchange(backend=f"b{number}"), {})
    assert len(lately.look().backends) <= 512
