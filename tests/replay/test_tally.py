"""Sums: only what is served before and after is compared."""

from __future__ import annotations

import json

from gateway.replay.line import Estimate, Exchange
from gateway.replay.run import Outcome
from gateway.replay.tally import Prices, Shadowed, Tally, place_of

SERVED = Outcome(None, sized=True, image_tokens=1_000, prompt_tokens=2_000_000, kv_tokens=2_100_000, gpu_ms=3_600_000.0)
SMALLER = Outcome(
    None, sized=True, image_tokens=400, prompt_tokens=500_000, shrunk=2, omitted=1, changes={"history": 1}
)


def test_tokens_of_what_is_served_twice_are_compared() -> None:
    tally = Tally("acme", "chat")
    tally.add(SERVED, SMALLER)
    tally.add(Outcome("max_images"), SMALLER)
    tally.add(SERVED, Outcome("max_images", sized=True, image_tokens=9))
    tally.add(SERVED, Outcome(None))
    assert (tally.requests, tally.compared, tally.unsized) == (4, 1, 1)
    assert (tally.before.image_tokens, tally.after.image_tokens) == (1_000, 400)
    assert (dict(tally.before.refused), dict(tally.after.refused)) == ({"max_images": 1}, {"max_images": 1})
    assert (tally.after.shrunk, tally.after.omitted, dict(tally.changes)) == (2, 1, {"history": 1})
    assert tally.saved(Prices(per_million_tokens=2.0)) == 3.0
    assert tally.saved(Prices(per_gpu_hour=4.0)) == 4.0
    assert tally.saved(Prices()) == 0
    json.dumps(tally.before.to_json(Prices()))


def test_what_shadow_mode_found() -> None:
    found = Shadowed("acme", "chat")
    changed = Exchange(
        request_id="a", estimate=Estimate(image=100), shadow_image_tokens=40, shadow_changes={"max_pixels": 2}
    )
    found.add(changed)
    found.add(Exchange(request_id="b", estimate=Estimate(image=100), shadow_image_tokens=100))
    for number in range(5):
        found.add(Exchange(request_id=str(number), findings=["x:y", "x:y", "z"], shadow_changes={"history": 9}))
    told = found.to_json()
    assert (told["requests"], told["would_be_refused"], told["would_be_changed"]) == (7, 5, 1)
    assert (told["image_tokens"], told["image_tokens_left"]) == (200, 140)
    assert told["findings"] == {"x:y": 5, "z": 5}
    assert told["images_changed"] == {"max_pixels": 2}
    assert told["examples"] == {"x:y": ["0", "1", "2"], "z": ["0", "1", "2"]}


def test_made_up_names_count_together_in_the_end() -> None:
    known = {(str(number), "chat"): None for number in range(1_000)}
    assert place_of(Exchange(tenant="new", task="chat"), known) == ("other", "other")
    assert place_of(Exchange(tenant="7", task="chat"), known) == ("7", "chat")
    assert place_of(Exchange(), {}) == ("-", "-")
