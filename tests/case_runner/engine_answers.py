"""What the stand-in backend says of itself and says by default: vLLM's answers to probes, and small completions.

Shapes as vLLM 0.1x prints them, enough for a gateway that discovers engines to take it for vLLM with the model vl-test.
"""

from __future__ import annotations

import json
from typing import Any

from tests.case_runner.behaviour import Behaviour, Write

MODEL = "vl-test"
_JSON = (("Content-Type", "application/json"),)
_EVENTS = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))
_METRICS = f"""\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="{MODEL}"}} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="{MODEL}"}} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="{MODEL}"}} 0.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{{block_size="16",engine="0",num_gpu_blocks="16777216"}} 1.0
"""
PROBE_PATHS = ("/v1/models", "/health", "/version", "/metrics", "/tokenize", "/ping", "/server_info", "/get_model_info")


def probe_answer(path: str, body: bytes, max_model_len: int) -> Behaviour:
    """The answer to a gateway's own probe; 404 for what vLLM does not have."""
    match path:
        case "/v1/models":
            card = {
                "id": MODEL, "object": "model", "created": 1, "owned_by": "vllm", "root": MODEL, "parent": None,
                "max_model_len": max_model_len, "permission": [],
            }  # fmt: skip
            return _json({"object": "list", "data": [card]})
        case "/version":
            return _json({"version": "0.11.0"})
        case "/health" | "/ping":
            return Behaviour()
        case "/metrics":
            text = (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),)
            return Behaviour(headers=text, writes=(Write(_METRICS.encode(), flush=True),))
        case "/tokenize":
            tokens = list(range(max(1, len(body) // 4)))
            return _json({"count": len(tokens), "max_model_len": max_model_len, "tokens": tokens})
        case _:
            return _json({"detail": "Not Found"}, status=404)


def _json(value: object, status: int = 200) -> Behaviour:
    return Behaviour(status=status, headers=_JSON, writes=(Write(json.dumps(value).encode(), flush=True),))


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-d", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice],
    }  # fmt: skip


def event(value: dict[str, Any] | str) -> bytes:
    """One server-sent event."""
    return b"data: " + (value if isinstance(value, str) else json.dumps(value)).encode() + b"\n\n"


def default_answer(path: str, body: bytes) -> Behaviour:
    """The small valid completion, as an event stream when the request asks for one."""
    try:
        streams = json.loads(body).get("stream") is True
    except (ValueError, AttributeError, RecursionError):
        streams = False
    if streams:
        return stream_of(2, 0.0)
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    if path == "/v1/messages":
        content = [{"type": "text", "text": "Red."}]
        message = {"id": "msg_d", "type": "message", "role": "assistant", "model": MODEL, "content": content}
        return _json({**message, "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 1}})
    if path == "/v1/responses":
        text = {"type": "output_text", "text": "Red.", "annotations": []}
        output = [{"type": "message", "id": "msg_d", "role": "assistant", "status": "completed", "content": [text]}]
        return _json({"id": "resp_d", "object": "response", "status": "completed", "model": MODEL, "output": output})
    message = {"role": "assistant", "content": "Red."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "chatcmpl-d", "object": "chat.completion", "created": 1, "model": MODEL}
    return _json({**head, "choices": [choice], "usage": usage})


def stream_of(events: int, pace_s: float) -> Behaviour:
    """A stream of so many events at that pace, complete with its end marker."""
    writes = [Write(event(_chunk({"content": "tok"})), flush=True, sleep_s=pace_s) for _ in range(events)]
    writes.append(Write(event(_chunk({}, "stop")) + event("[DONE]"), flush=True))
    return Behaviour(headers=_EVENTS, framing="chunked", writes=tuple(writes), end="chunked-end")


def endless_stream() -> Behaviour:
    """A stream that stays open after its first event."""
    return Behaviour(
        headers=_EVENTS, framing="chunked", writes=(Write(event(_chunk({"content": "tok"})), flush=True),), end="hang"
    )
