"""`/v1/responses` in its basic forms: text and picture input, function tools, streaming or not.

Whole responses are stored, so that `previous_response_id` and a fetch find them; what was said in them is not added to
the prompt. Pointers in records name the place in the translated chat
messages.
"""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from aiohttp import web

from gateway.simulator import vllm_response as shape
from gateway.simulator.core import Core, Run
from gateway.simulator.fields import Json, JsonObject, flag, mapping, sequence
from gateway.simulator.refusal import EngineLost, Refusal
from gateway.simulator.vllm import chat_prompt, refuse_while_draining, start_run
from gateway.simulator.vllm_request import schema_error
from gateway.simulator.web import CORE, event, json_answer, read_object, send_events


def chat_body(body: Mapping[str, Json]) -> JsonObject:
    """The chat request that a responses request stands for. Raises Refusal."""
    if body.get("previous_response_id"):
        message = f"Response with id '{body['previous_response_id']}' not found."
        raise Refusal(404, message, "invalid_request_error", "response_id")
    if body.get("input") is None:
        raise schema_error("missing", "body.input", "Field required")
    messages: list[Json] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    given = body["input"]
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    messages += [_message(mapping(item)) for item in sequence(given)]
    kept = ("model", "temperature", "tools", "tool_choice", "cache_salt", "stream", "ignore_eos")
    translated: JsonObject = {name: body[name] for name in kept if name in body}
    translated["messages"] = messages
    if body.get("max_output_tokens") is not None:
        translated["max_tokens"] = body["max_output_tokens"]
    return translated


def _message(item: Mapping[str, Json]) -> Json:
    match item.get("type", "message"):
        case "function_call_output":
            return {"role": "tool", "content": item.get("output"), "tool_call_id": item.get("call_id")}
        case "function_call":
            function: JsonObject = {"name": item.get("name"), "arguments": item.get("arguments")}
            return {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}
        case _:
            return {"role": item.get("role"), "content": item.get("content")}


async def create(request: web.Request) -> web.StreamResponse:
    """POST /v1/responses."""
    core = request.app[CORE]
    refuse_while_draining(core)
    given = await read_object(request)
    if given.get("previous_response_id") in core.responses:
        del given["previous_response_id"]
    body = chat_body(given)
    prompt, _ = await chat_prompt(request, body)
    run, _ = await start_run(request, body, prompt)
    identity = f"resp_{request.headers.get('X-Request-Id') or core.new_id()}"
    if flag(body.get("stream")):
        return await send_events(request, _events(core, run, body, identity), event(shape.lost()))
    await run.complete()
    whole = core.responses[identity] = _response(core, run, body, identity, "completed")
    return json_answer(whole)


async def fetch(request: web.Request) -> web.Response:
    """GET /v1/responses/{identity}."""
    identity = request.match_info["identity"]
    found = request.app[CORE].responses.get(identity)
    if found is None:
        raise Refusal(404, f"Response with id '{identity}' not found.", "invalid_request_error", "response_id")
    return json_answer(found)


def _response(core: Core, run: Run, body: Mapping[str, Json], identity: str, status: str) -> JsonObject:
    reply = run.replies[0]
    is_over = status == "completed"
    is_cut = is_over and reply.finish_reason == "length"
    return {
        "id": identity,
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if is_cut else status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": None,
        "metadata": None,
        "model": core.settings.served_model_name,
        "output": [_item(run, identity, is_over=is_over)] if is_over else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": _usage(run) if is_over else None,
    }


def _item(run: Run, identity: str, *, is_over: bool) -> JsonObject:
    reply, status = run.replies[0], "completed" if is_over else "in_progress"
    suffix = identity.removeprefix("resp_")
    if reply.tool is not None:
        return {
            "type": "function_call",
            "id": f"fc_{suffix}",
            "call_id": f"call_{suffix}",
            "name": reply.tool.name,
            "arguments": reply.content if is_over else "",
            "status": status,
        }
    content: list[Json] = [_text_part(reply.content)] if is_over else []
    return {"type": "message", "id": f"msg_{suffix}", "role": "assistant", "status": status, "content": content}


def _text_part(content: str) -> JsonObject:
    return {"type": "output_text", "text": content, "annotations": [], "logprobs": []}


def _usage(run: Run) -> JsonObject:
    usage = run.usage
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.created_cache_tokens,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


async def _events(core: Core, run: Run, body: Mapping[str, Json], identity: str) -> AsyncGenerator[bytes]:
    number = -1

    def named(kind: str, fields: JsonObject) -> bytes:
        nonlocal number
        number += 1
        return event({"type": kind, "sequence_number": number, **fields}, kind)

    reply = run.replies[0]
    opened = _item(run, identity, is_over=False)
    place: JsonObject = {"item_id": opened["id"], "output_index": 0}
    if reply.tool is None:
        place["content_index"] = 0
    channel = "response.output_text" if reply.tool is None else "response.function_call_arguments"
    yield named("response.created", {"response": _response(core, run, body, identity, "in_progress")})
    yield named("response.in_progress", {"response": _response(core, run, body, identity, "in_progress")})
    try:
        async with aclosing(run.tokens()) as generated:
            async for emitted in generated:
                if emitted.position == 0:
                    yield named("response.output_item.added", {"output_index": 0, "item": opened})
                    if reply.tool is None:
                        yield named("response.content_part.added", {**place, "part": _text_part("")})
                yield named(f"{channel}.delta", {**place, "delta": emitted.piece})
    except EngineLost:
        yield event(shape.lost())
        return
    if reply.tool is None:
        yield named(f"{channel}.done", {**place, "text": reply.content, "logprobs": []})
        yield named("response.content_part.done", {**place, "part": _text_part(reply.content)})
    else:
        yield named(f"{channel}.done", {**place, "arguments": reply.content, "name": reply.tool.name})
    yield named("response.output_item.done", {"output_index": 0, "item": _item(run, identity, is_over=True)})
    yield named("response.completed", {"response": _response(core, run, body, identity, "completed")})
