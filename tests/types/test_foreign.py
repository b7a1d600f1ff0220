from __future__ import annotations

import pytest

from gateway.types import foreign


@pytest.mark.parametrize("kept", ["chat_template_kwargs", "guided_json", "seed", "logit_bias", "user", "metadata", "n"])
def test_the_apis_own_fields_are_kept(kept: str) -> None:
    assert kept not in foreign.BODY


@pytest.mark.parametrize(
    "taken",
    ["cache_salt", "mm_processor_kwargs", "priority", "request_id", "rid", "kv_transfer_params", "bootstrap_host"],
)
def test_the_engines_fields_are_taken(taken: str) -> None:
    assert taken in foreign.BODY
