"""`/v1/messages` and its token count as vLLM 0.32.0 serves them: translated into a chat request.

`usage.input_tokens` leaves out cached tokens, as the real server does; `message_start` counts them in. Pointers in
records name the place in the translated chat messages.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from aiohttp import web

from gateway.simulator.core import Core, Run
from gateway.simulator.fields import Json, JsonObject, flag, mapping, sequence, text
from gateway.simulator.refusal import EngineLost, Refusal
from gateway.simulator.vllm import chat_prompt, refuse_while_draining, start_run
from gateway.simulator.vllm_request import schema_error
from gateway.simulator.web import CORE, event, json_answer, read_object, send_events

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    503: "overloaded_error",
}
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def error(refusal: Refusal) -> JsonObject:
    """The Messages API's envelope."""
    kind = _KINDS.get(refusal.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": refusal.message}}


def chat_body(body: Mapping[str, Json]) -> JsonObject:
    """The chat request that a messages request stands for. Raises Refusal for a body without messages."""
    if not isinstance(body.get("messages"), list):
        raise schema_error("missing", "body.messages", "Field required")
    messages: list[Json] = []
    system = body.get("system")
    if system:
        messages.append({"role": "system", "content": system if isinstance(system, str) else _parts(sequence(system))})
    for entry in sequence(body["messages"]):
        messages += _messages(mapping(entry))
    kept = ("model", "max_tokens", "temperature", "tools", "tool_choice", "cache_salt", "stream", "ignore_eos")
    translated: JsonObject = {name: body[name] for name in kept if name in body}
    translated["messages"] = messages
    translated["stop"] = body.get("stop_sequences")
    return translated


def _messages(message: Mapping[str, Json]) -> list[Json]:
    """One message, preceded by a tool message for each tool result in it."""
    content = message.get("content")
    if not isinstance(content, list):
        return [dict(message)]
    results: list[Json] = []
    others: list[Json] = []
    for block in content:
        fields = mapping(block)
        if fields.get("type") == "tool_result":
            inner = fields.get("content")
            parts = _parts(inner) if isinstance(inner, list) else inner
            results.append({"role": "tool", "content": parts, "tool_call_id": fields.get("tool_use_id")})
        else:
            others.append(block)
    if others or not results:
        results.append({"role": message.get("role"), "content": _parts(others)})
    return results


def _parts(blocks: list[Json]) -> list[Json]:
    return [_part(mapping(block)) for block in blocks]


def _part(block: Mapping[str, Json]) -> Json:
    match block.get("type"):
        case "image":
            return {"type": "image_url", "image_url": {"url": _source(mapping(block.get("source")))}}
        case "tool_use":
            return {"type": "text", "text": json.dumps({"name": block.get("name"), "arguments": block.get("input")})}
        case _:
            return {name: value for name, value in block.items() if name != "cache_control"}


def _source(source: Mapping[str, Json]) -> str:
    if source.get("type") == "url":
        return text(source.get("url"))
    if source.get("type") == "base64":
        return f"data:{text(source.get('media_type'))};base64,{text(source.get('data'))}"
    raise schema_error("literal_error", "body.messages.content.source.type", "Input should be base64 or url")


async def messages(request: web.Request) -> web.StreamResponse:
    """POST /v1/messages."""
    core = request.app[CORE]
    refuse_while_draining(core)
    body = chat_body(await read_object(request))
    if body.get("max_tokens") is None:
        raise schema_error("missing", "body.max_tokens", "Field required")
    prompt, _ = await chat_prompt(request, body)
    run, _ = await start_run(request, body, prompt)
    identity = f"msg_{core.new_id()}"
    if flag(body.get("stream")):
        lost = event(error(Refusal(500, EngineLost.MESSAGE)), "error")
        return await send_events(request, _events(core, run, identity), lost)
    await run.complete()
    reply_body = _message(core, run, identity)
    reply_body["content"] = [_block(run, identity)]
    reply_body["stop_reason"] = _STOP_REASONS[run.replies[0].finish_reason]
    reply_body["usage"] = _usage(run)
    return json_answer(reply_body)


async def count_tokens(request: web.Request) -> web.Response:
    """POST /v1/messages/count_tokens: the whole prompt, pictures expanded."""
    body = chat_body(await read_object(request))
    prompt, _ = await chat_prompt(request, body)
    counted: JsonObject = {"input_tokens": prompt.length}
    return json_answer({**counted, "context_management": {"original_input_tokens": prompt.length}})


def _message(core: Core, run: Run, identity: str) -> JsonObject:
    return {
        "id": identity,
        "type": "message",
        "role": "assistant",
        "model": core.settings.served_model_name,
        "content": [],
        "stop_reason": None,
        "stop_sequence": run.replies[0].stop_reason,
    }


def _block(run: Run, identity: str) -> JsonObject:
    reply = run.replies[0]
    if reply.tool is None:
        return {"type": "text", "text": reply.content}
    try:
        arguments: Json = json.loads(reply.content)
    except ValueError:
        # max_tokens cut the arguments short.
        arguments = {}
    return {"type": "tool_use", "id": f"toolu_{identity[4:]}", "name": reply.tool.name, "input": arguments}


def _usage(run: Run) -> JsonObject:
    usage = run.usage
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
    }


async def _events(core: Core, run: Run, identity: str) -> AsyncGenerator[bytes]:
    reply = run.replies[0]
    is_first = True
    try:
        async with aclosing(run.tokens()) as generated:
            async for emitted in generated:
                if is_first:
                    is_first = False
                    start = _message(core, run, identity)
                    start["usage"] = {"input_tokens": run.usage.prompt_tokens, "output_tokens": 0}
                    yield event({"type": "message_start", "message": start}, "message_start")
                    opened = _block(run, identity)
                    opened["input" if reply.tool else "text"] = {} if reply.tool else ""
                    block_start: JsonObject = {"type": "content_block_start", "index": 0, "content_block": opened}
                    yield event(block_start, "content_block_start")
                delta: JsonObject = {"type": "text_delta", "text": emitted.piece}
                if reply.tool:
                    delta = {"type": "input_json_delta", "partial_json": emitted.piece}
                yield event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    except EngineLost:
        yield event(error(Refusal(500, EngineLost.MESSAGE)), "error")
        return
    yield event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    ended: JsonObject = {"stop_reason": _STOP_REASONS[reply.finish_reason], "stop_sequence": reply.stop_reason}
    yield event({"type": "message_delta", "delta": ended, "usage": _usage(run)}, "message_delta")
    yield event({"type": "message_stop"}, "message_stop")
