"""The JSON that vLLM 0.32.0 answers with: completions, chunks, usage, errors. Shapes only; nothing is decided here."""

import json

from gateway.simulator.answer import Logprobs, Reply
from gateway.simulator.core import Emitted, Run, Usage
from gateway.simulator.fields import Json, JsonObject
from gateway.simulator.refusal import EngineLost, Refusal
from gateway.simulator.tokens import token_id

VERSION = "0.32.0"
FINGERPRINT = f"vllm-{VERSION}-simulated"


def error(refusal: Refusal) -> JsonObject:
    """The envelope of a refusal."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.kind,
            "param": refusal.param,
            "code": refusal.status,
        }
    }


def lost() -> JsonObject:
    """The engine's end, as a 500 body or an in-stream event."""
    return error(Refusal(500, EngineLost.MESSAGE, "InternalServerError"))


def usage(counted: Usage, *, with_details: bool) -> JsonObject:
    """`usage`, its details null unless the server reports them."""
    details: Json = None
    if with_details:
        details = {
            "cached_tokens": counted.cached_tokens,
            "created_cache_tokens": counted.created_cache_tokens,
            "multimodal_tokens": _by_modality(counted),
        }
    return {
        "prompt_tokens": counted.prompt_tokens,
        "total_tokens": counted.prompt_tokens + counted.completion_tokens,
        "completion_tokens": counted.completion_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": None,
    }


def _by_modality(counted: Usage) -> Json:
    """Tokens of each modality that is there; null for text alone."""
    found: dict[str, Json] = {"image": counted.image_tokens, "video": counted.video_tokens}
    return {name: count for name, count in found.items() if count} or None


def tool_call(reply: Reply, call_id: str) -> JsonObject:
    """A whole tool call."""
    name = reply.tool.name if reply.tool else ""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": reply.content}}


def chat_completion(
    run: Run, request_id: str, created_s: int, model: str, *, with_details: bool, top_logprobs: int | None
) -> JsonObject:
    """`top_logprobs` is None when no log probabilities were asked for."""
    choices: list[Json] = []
    for index, reply in enumerate(run.replies):
        message: JsonObject = {
            "role": "assistant",
            "content": None if reply.tool else reply.content,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": None,
        }
        if reply.tool:
            message["tool_calls"] = [tool_call(reply, f"chatcmpl-tool-{request_id[-16:]}{index}")]
        choices.append(
            {
                "index": index,
                "message": message,
                "logprobs": None if top_logprobs is None else content_logprobs(reply, run.logprobs, top_logprobs),
                "finish_reason": reply.finish_reason,
                "stop_reason": reply.stop_reason,
                "token_ids": None,
                "routed_experts": None,
            }
        )
    return {
        "id": request_id,
        "object": "chat.completion",
        "created": created_s,
        "model": model,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage(run.usage, with_details=with_details),
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "prompt_text": None,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


def content_logprobs(reply: Reply, logprobs: Logprobs, top: int) -> JsonObject:
    """Log probabilities of a whole answer with `top` alternatives a token."""
    return {"content": [_logprob(piece, position, logprobs, top) for position, piece in enumerate(reply.pieces)]}


def _logprob(piece: str, position: int, logprobs: Logprobs, top: int) -> JsonObject:
    ranked: list[Json] = []
    for rank in range(top):
        token = piece if rank == 0 else f"<alternative {rank}>"
        ranked.append({"token": token, "logprob": logprobs.of(position, rank), "bytes": list[Json](token.encode())})
    return {
        "token": piece,
        "logprob": logprobs.of(position),
        "bytes": list[Json](piece.encode()),
        "top_logprobs": ranked,
    }


def chunk(request_id: str, created_s: int, model: str, choices: list[Json]) -> JsonObject:
    """A chunk of a stream."""
    return {
        "id": request_id,
        "object": "chat.completion.chunk",
        "created": created_s,
        "model": model,
        "choices": choices,
        "system_fingerprint": FINGERPRINT,
    }


def role_choice(index: int) -> JsonObject:
    """The choice of the first chunk."""
    return {"index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}


def delta_choice(emitted: Emitted, run: Run, call_id: str, top_logprobs: int | None) -> JsonObject:
    """One token as the choice of a chunk: text, or a fragment of a tool call's arguments."""
    reply = run.replies[emitted.choice]
    delta: JsonObject = {"content": emitted.piece}
    if reply.tool is not None:
        function: JsonObject = {"arguments": emitted.piece}
        call: JsonObject = {"index": 0, "function": function}
        if emitted.position == 0:
            function["name"] = reply.tool.name
            call |= {"id": call_id, "type": "function"}
        delta = {"tool_calls": [call]}
    logprobs: Json = None
    if top_logprobs is not None:
        logprobs = {"content": [_logprob(emitted.piece, emitted.position, run.logprobs, top_logprobs)]}
    return {
        "index": emitted.choice,
        "delta": delta,
        "logprobs": logprobs,
        "finish_reason": emitted.finished.finish_reason if emitted.finished else None,
        "stop_reason": emitted.finished.stop_reason if emitted.finished else None,
        "token_ids": None,
    }


def text_choice(index: int, content: str, reply: Reply | None, logprobs: Json = None) -> JsonObject:
    """A choice of /v1/completions; `reply` is given once the choice has ended."""
    return {
        "index": index,
        "text": content,
        "logprobs": logprobs,
        "finish_reason": reply.finish_reason if reply else None,
        "stop_reason": reply.stop_reason if reply else None,
    }


def text_completion(request_id: str, created_s: int, model: str, choices: list[Json]) -> JsonObject:
    """A completion, or a chunk of its stream."""
    return {"id": request_id, "object": "text_completion", "created": created_s, "model": model, "choices": choices}


def text_logprobs(reply: Reply, logprobs: Logprobs) -> JsonObject:
    """Log probabilities in the older completion format."""
    offsets, position = list[Json](), 0
    for piece in reply.pieces:
        offsets.append(position)
        position += len(piece)
    return {
        "tokens": list[Json](reply.pieces),
        "token_logprobs": [logprobs.of(index) for index in range(len(reply.pieces))],
        "top_logprobs": None,
        "text_offset": offsets,
    }


def model_list(model: str, root: str, created_s: int, max_model_len: int) -> JsonObject:
    """The one model served."""
    return {
        "object": "list",
        "data": [
            {
                "id": model,
                "object": "model",
                "created": created_s,
                "owned_by": "vllm",
                "root": root,
                "parent": None,
                "max_model_len": max_model_len,
                "permission": [],
            }
        ],
    }


def load_header(waiting: int, kv_usage: float, wanted: str) -> str:
    """The value of `endpoint-load-metrics`, in the format that the request named."""
    named = {"num_requests_waiting": float(waiting), "kv_cache_usage_perc": kv_usage}
    if wanted == "json":
        return f"JSON {json.dumps({'named_metrics': named})}"
    return "TEXT " + ", ".join(f"named_metrics.{name}={value}" for name, value in named.items())


def tokenized(ids: list[int], max_model_len: int, strings: list[str] | None) -> JsonObject:
    """The answer of /tokenize."""
    return {
        "count": len(ids),
        "max_model_len": max_model_len,
        "tokens": list[Json](ids),
        "token_strs": None if strings is None else list[Json](strings),
    }


def ids_of(strings: list[str]) -> list[int]:
    """Ids of given pieces."""
    return [token_id(piece) for piece in strings]
