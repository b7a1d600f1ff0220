"""The past under other policies: under its own it comes out as it did."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.policy.policyset import PolicySet, builtin_policies
from gateway.replay.line import Exchange
from gateway.replay.run import Outcome, Replayer
from gateway.types import Size
from tests.policy.examples import policy_set
from tests.replay.examples import exchange_of, recorded

BUILT_IN = builtin_policies()
SIZES = (Size(2048, 2048), Size(512, 512), Size(640, 480), Size(512, 512), Size(512, 512))


def replayed(line: Exchange, policies: PolicySet) -> Outcome:
    return Replayer(policies, ModelBook(shipped_catalog())).replay(line)


@pytest.mark.parametrize(
    ("rules", "looked_at"),
    [
        ("{}", None),
        ("{max_pixels: 100000}", None),
        ("{max_images: 2, on_excess: {max_images: drop_oldest}}", 2),
        ("{history: {trigger: {images: 4}, batch: 3, keep_newest: 2}}", 2),
        ("{history: {trigger: {tokens: 900}, batch: 2, keep_newest: 1}}", None),
        ("{max_image_tokens: 700}", None),
        ("{max_total_pixels: 1000000, on_excess: {max_total_pixels: drop_oldest}}", None),
    ],
)
def test_under_its_own_policy_a_request_comes_out_as_it_did(rules: str, looked_at: int | None) -> None:
    policies = policy_set(default=f"rules: {rules}\n")
    record = recorded(policies, *SIZES, looked_at=looked_at)
    line = exchange_of(record)
    assert record.estimate is not None
    logged = Replayer(policies, ModelBook(shipped_catalog())).logged(line)
    again = replayed(line, policies)
    assert (again.image_tokens, again.prompt_tokens) == (record.estimate.image_tokens, record.estimate.prompt_tokens)
    assert (again.omitted, again.shrunk) == (record.images_omitted, record.images_shrunk)
    assert (logged.image_tokens, logged.kv_tokens, logged.gpu_ms) == (again.image_tokens, again.kv_tokens, again.gpu_ms)
    assert again.refused is logged.refused is None
    assert again.kv_bytes == logged.kv_bytes > 0


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ("{max_images: 4}", "max_images"),
        ("{max_image_tokens: 10}", "max_image_tokens"),
        ("{max_prompt_tokens: 300}", "max_prompt_tokens"),
        ("{max_input_pixels: 1000000}", "max_input_pixels"),
        ("{max_kv_bytes: 1MB}", "max_kv_bytes"),
        ("{max_output_tokens: 50}", "max_output_tokens"),
        ("{formats: [png]}", "formats"),
        ("{max_input_side: 2000}", "max_input_side"),
    ],
)
def test_what_other_rules_would_refuse_is_told_by_rule(rules: str, rule: str) -> None:
    line = exchange_of(recorded(BUILT_IN, *SIZES))
    assert replayed(line, BUILT_IN).refused is None
    assert replayed(line, policy_set(default=f"mode: shadow\nrules: {rules}\n")).refused == rule


def test_changes_are_told_and_tokens_saved() -> None:
    line = exchange_of(recorded(BUILT_IN, *SIZES))
    found = replayed(line, policy_set(default="rules: {history: {trigger: {images: 4}, batch: 3, keep_newest: 2}}\n"))
    assert found.changes == {"history": 3}
    assert (found.omitted, found.image_tokens) == (3, 2 * 256)
    assert found.prompt_tokens < replayed(line, BUILT_IN).prompt_tokens


def test_the_task_is_chosen_again_but_where_the_request_named_it() -> None:
    line = exchange_of(recorded(BUILT_IN, *SIZES))
    chosen = policy_set(default="choose: [{task: ocr, min_images: 5}]\ntasks: {chat: {}, ocr: {max_images: 1}}\n")
    assert replayed(line, chosen).refused == "max_images"
    for reason in ("header x-vlmgw-task", "metadata of the body", "the caller's key or token"):
        named = msgspec.structs.replace(line, task_reason=reason)
        assert replayed(named, chosen).refused is None
        assert replayed(msgspec.structs.replace(named, task="grounding"), chosen).refused == "tasks"
    assert replayed(msgspec.structs.replace(line, tenant="gone"), chosen).refused == "tenant"


def test_a_request_nobody_looked_at_is_only_counted() -> None:
    policies = policy_set(default="rules: {max_images: 2}\n")
    line = exchange_of(recorded(policies, *SIZES))
    logged = Replayer(policies, ModelBook(shipped_catalog())).logged(line)
    assert (logged.refused, logged.sized) == ("max_images", False)
    assert replayed(line, policies) == Outcome("max_images")
    assert replayed(line, BUILT_IN) == Outcome(None)


def test_videos_cost_what_they_cost() -> None:
    line = exchange_of(recorded(BUILT_IN, Size(512, 512)))
    assert line.asked is not None
    assert line.estimate is not None
    told: Any = msgspec.structs.replace(line.estimate, prompt=line.estimate.prompt + 5_000)
    asked: Any = msgspec.structs.replace(line.asked, videos=1)
    found = replayed(msgspec.structs.replace(line, estimate=told, asked=asked), BUILT_IN)
    assert found.prompt_tokens == told.prompt
