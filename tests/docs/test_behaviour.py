"""The page of choices names only codes with their statuses, settings and policy keys that there are."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.config.sources import leaf_paths
from gateway.errors import all_errors

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "behaviour.md").read_text(encoding="utf-8")


def test_codes_have_the_statuses_that_the_page_says() -> None:
    statuses = {error.code: error.status for error in all_errors()}
    named = re.findall(r"\b([45]\d\d) `([a-z_]+)`", PAGE)
    assert len(named) > 12
    assert {code: int(status) for status, code in named} == {code: statuses.get(code) for _, code in named}


def test_settings_exist() -> None:
    named = set(re.findall(r"`((?:server|upstream|media|fetch|identity|log|tracing)\.\w+)`", PAGE))
    assert named
    assert named <= set(leaf_paths())


def test_policy_keys_are_on_the_page_of_policies() -> None:
    policies = (DOCS / "policies.md").read_text(encoding="utf-8")
    keys = {"queue_timeout_s", "output_reserve_tokens", "max_input_pixels", "background", "engine_fields"}
    assert all(f"`{key}" in PAGE and f"`{key}" in policies for key in keys)


def test_pages_link_to_pages_that_exist() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
