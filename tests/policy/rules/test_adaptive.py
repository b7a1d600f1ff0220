from __future__ import annotations

import pytest

from gateway.policy.effective import Adaptive
from gateway.policy.rules.adaptive import RULE
from tests.policy.examples import policy, policy_set, problems_of
from tests.policy.test_resolve import ask


def test_it_is_off_until_a_file_says_otherwise() -> None:
    assert RULE.default is None
    assert policy().adaptive is None
    tasks = "tasks: {chat: {adaptive: {}}, ocr: {adaptive: off}, document: {adaptive: 'off'}}"
    policies = policy_set(acme=f"tenant: acme\n{tasks}")
    assert ask(policies, header_task="chat").adaptive == Adaptive(262_144, 31)
    assert ask(policies, header_task="ocr").adaptive is ask(policies, header_task="document").adaptive is None


def test_knobs_are_laid_over_what_is_inherited() -> None:
    policies = policy_set(
        default="rules: {adaptive: {floor_pixels: 0.5MP}}",
        acme="tenant: acme\ntasks: {chat: {adaptive: {halving_psnr_db: 24}}, ocr: {adaptive: off}}\n"
        "models: {'small*': {adaptive: {floor_pixels: 256x256}}}",
    )
    assert ask(policies, header_task="chat").adaptive == Adaptive(500_000, 24)
    assert ask(policies, header_task="ocr").adaptive is None
    assert ask(policies, header_task="chat", model="small-vl").adaptive == Adaptive(65_536, 24)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("strong", "expected off or a mapping with some of floor_pixels, halving_psnr_db, found 'strong'"),
        ("true", "found the boolean true"),
        ("0", "found the number 0"),
        ("{floor_pixel: 5000}", "rules.adaptive.floor_pixel: unknown key; did you mean floor_pixels?"),
        ("{halving_psnr_db: 5}", "rules.adaptive.halving_psnr_db: 5 is out of range: halving_psnr_db is 20 to 60"),
        ("{floor_pixels: 1}", "1 is out of range"),
        ("{floor_pixels: 512x512, floor_pixels: 1MP}", "the key is written twice"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    (problem,) = problems_of(f"rules: {{adaptive: {text}}}")
    assert said in problem
