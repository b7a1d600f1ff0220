"""A server of which nothing is known but its model list, if it has one."""

from __future__ import annotations

from gateway.upstream.engines.contract import EngineFacts, EngineLoad
from gateway.upstream.engines.generic import Generic

ENGINE = Generic()


def test_a_model_list_is_all_it_tells() -> None:
    models = b'{"data":[{"id":"m","max_model_len":4096,"root":"r"},{"id":7}]}'
    assert ENGINE.facts({"/v1/models": models}) == EngineFacts(models=("m",), model_root="r", context_tokens=4096)
    assert ENGINE.facts({}) == EngineFacts()


def test_it_reports_no_load_and_its_errors_prove_nothing() -> None:
    assert ENGINE.load_paths == ()
    assert ENGINE.load("/metrics", b"vllm:num_requests_running 1\n") == EngineLoad()
    assert ENGINE.refusal(503, b"The request queue is full.") is None
