"""SGLang 0.5.23's chat, generate and tokenize routes, as read in its source (the engine itself was not run).

What differs from vLLM: flat errors, `uuid` silently lost, no per-request model check, `content_hash` compared with the
bytes, no turning by EXIF, `prompt_tokens_details.image_tokens`, and a full queue which a stream reports inside a 200.
"""

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial

from aiohttp import web

from gateway.simulator import disaggregation, tokens
from gateway.simulator.answer import Sampling, ToolOffer, chosen_tool, compose
from gateway.simulator.core import Core, Run, Usage
from gateway.simulator.fields import Json, JsonObject, flag, integer, mapping, number, sequence, text, texts
from gateway.simulator.prompt import ImageInput, Piece, Prompt, Turn, last_user_text, render
from gateway.simulator.refusal import EngineLost, QueueFull, Refusal
from gateway.simulator.settings import SimulatorSettings, TransferRole
from gateway.simulator.web import CORE, DONE, RECORD, drift_tokens, event, json_answer, read_object, send_events

QUEUE_FULL = "The request queue is full."
_DETAILS = frozenset({"auto", "low", "high", "default"})


def flat_error(message: str, kind: str, code: int) -> JsonObject:
    """SGLang's error object, which stands at the top level of a body and under `error` in a stream."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def queue_full() -> Refusal:
    """The 503 of a request that is not streamed."""
    return Refusal(503, QUEUE_FULL, "503")


def turns_of(body: Mapping[str, Json], settings: SimulatorSettings) -> list[Turn]:
    """The messages; unknown part types are refused, unknown keys ignored. Raises Refusal."""
    if not isinstance(body.get("messages"), list):
        raise Refusal(400, "1 validation error: body.messages: Field required", "BadRequest")
    turns = []
    for index, message in enumerate(sequence(body["messages"])):
        fields = mapping(message)
        if not isinstance(fields.get("role"), str):
            raise Refusal(400, f"1 validation error: body.messages.{index}.role: Field required", "BadRequest")
        turns.append(Turn(text(fields["role"]), tuple(_pieces(fields, f"messages.{index}"))))
    images = sum(isinstance(piece, ImageInput) for turn in turns for piece in turn.pieces)
    _check_image_count(images, settings)
    return turns


def _check_image_count(images: int, settings: SimulatorSettings) -> None:
    if images > settings.limit_images:
        raise Refusal(400, f"Image count {images} exceeds limit {settings.limit_images} per request.")


def _pieces(message: Mapping[str, Json], pointer: str) -> list[Piece]:
    content = message.get("content")
    pieces: list[Piece] = [content] if isinstance(content, str) else []
    for index, part in enumerate(sequence(content)):
        pieces.append(_part(mapping(part), f"{pointer}.content.{index}"))
    calls = sequence(message.get("tool_calls"))
    if calls:
        pieces.append(json.dumps([mapping(call).get("function") for call in calls], ensure_ascii=False))
    return pieces


def _part(part: Mapping[str, Json], pointer: str) -> Piece:
    match part.get("type"):
        case "text":
            return text(part.get("text"))
        case "thinking" | "reasoning":
            return text(part.get("thinking") or part.get("reasoning") or part.get("text"))
        case "tool_reference":
            return text(part.get("name"))
        case "image_url":
            image = part.get("image_url")
            if not isinstance(image, dict) or not isinstance(image.get("url"), str):
                raise Refusal(400, f"1 validation error: body.{pointer}.image_url.url: Field required", "BadRequest")
            if image.get("detail", "auto") not in _DETAILS:
                raise Refusal(400, f"1 validation error: body.{pointer}.image_url.detail: unexpected", "BadRequest")
            content_hash = image.get("content_hash")
            return ImageInput(pointer, text(image["url"]), content_hash=text(content_hash) or None)
        case kind:
            message = f"1 validation error: body.{pointer}.type: unsupported content part type {kind!r}"
            raise Refusal(400, message, "BadRequest")


def sampling_of(
    fields: Mapping[str, Json], asked: int | None, length: int, settings: SimulatorSettings, tool: ToolOffer | None
) -> Sampling:
    """Bounds of the answer; what does not fit into the context is refused, not clamped. Raises Refusal."""
    limit = settings.max_model_len
    if length >= limit:
        message = f"The input ({length} tokens) is longer than the model's context length ({limit} tokens)."
        raise Refusal(400, message)
    if asked is not None and length + asked > limit:
        message = (
            f"Requested token count exceeds the model's maximum context length of {limit} tokens. You requested a "
            f"total of {length + asked} tokens: {length} tokens from the input messages and {asked} tokens for the "
            f"completion."
        )
        raise Refusal(400, message)
    if asked is not None and asked < 1:
        raise Refusal(400, f"max_new_tokens must be at least 1, got {asked}.")
    temperature = number(fields.get("temperature"))
    if temperature is not None and temperature < 0:
        raise Refusal(400, f"temperature must be non-negative, got {temperature}.")
    format_fields = mapping(fields.get("response_format"))
    schema: Json = None
    if format_fields.get("type") == "json_object":
        schema = {}
    elif format_fields.get("type") == "json_schema":
        schema = mapping(format_fields.get("json_schema")).get("schema") or {}
    return Sampling(
        max_tokens=limit - length if asked is None else asked,
        choices=max(1, integer(fields.get("n")) or 1),
        ignore_eos=flag(fields.get("ignore_eos")) and asked is not None,
        min_tokens=integer(fields.get("min_tokens")) or integer(fields.get("min_new_tokens")) or 0,
        stop=texts(fields.get("stop")),
        schema=schema,
        tool=tool,
    )


def usage_json(usage: Usage, *, with_cached: bool) -> JsonObject:
    """`usage`; `cached_tokens` appears only with the cache report switched on, `image_tokens` always with pictures."""
    details: JsonObject = {}
    if with_cached:
        details["cached_tokens"] = usage.cached_tokens
    if usage.image_tokens:
        details["image_tokens"] = usage.image_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "completion_tokens": usage.completion_tokens,
        "prompt_tokens_details": details or None,
        "reasoning_tokens": 0,
    }


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """POST /v1/chat/completions."""
    core = request.app[CORE]
    body = await read_object(request)
    turns = turns_of(body, core.settings)
    tools = body.get("tools") if body.get("tool_choice") != "none" else None
    pieces = render(turns, core.settings.geometry_family, tools or None)
    prompt = await core.prompt(pieces, text(body.get("cache_salt")) or None, last_user_text(turns), request[RECORD])
    tool = chosen_tool(body.get("tools"), body.get("tool_choice"), prompt.last_user_text)
    asked = integer(body.get("max_completion_tokens"))
    asked = integer(body.get("max_tokens")) if asked is None else asked
    room = disaggregation.check_room(body, core.settings)
    if core.settings.transfer_role is TransferRole.PREFILL:
        asked = 1
    run = _run(request, prompt, sampling_of(body, asked, prompt.length, core.settings, tool))
    if room is not None:
        run.is_prefilled = core.settings.transfer_role is TransferRole.DECODE
        run.hand_over = partial(disaggregation.meet, room, core.settings)
    identity = text(body.get("rid")) or core.new_id() * 2
    if flag(body.get("stream")):
        return await send_events(request, _chat_events(core, run, body, identity), _in_stream(EngineLost.MESSAGE, 500))
    await run.complete()
    return json_answer(_completion(core, run, identity, with_logprobs=flag(body.get("logprobs"))))


def _run(request: web.Request, prompt: Prompt, sampling: Sampling) -> Run:
    replies = [compose(prompt, sampling, choice) for choice in range(sampling.choices)]
    run = Run(request.app[CORE], prompt, replies, request[RECORD])
    run.drift_tokens = drift_tokens(request)
    return run


def _completion(core: Core, run: Run, identity: str, *, with_logprobs: bool) -> JsonObject:
    choices: list[Json] = []
    for index, reply in enumerate(run.replies):
        calls: list[Json] | None = None
        if reply.tool:
            function: JsonObject = {"name": reply.tool.name, "arguments": reply.content}
            calls = [{"id": f"call_{identity[:24]}", "index": 0, "type": "function", "function": function}]
        logprobs: Json = None
        if with_logprobs:
            entries: list[Json] = [
                {"token": piece, "bytes": list[Json](piece.encode()), "logprob": run.logprobs.of(n), "top_logprobs": []}
                for n, piece in enumerate(reply.pieces)
            ]
            logprobs = {"content": entries}
        message: JsonObject = {
            "role": "assistant",
            "content": None if reply.tool else reply.content,
            "reasoning_content": None,
            "tool_calls": calls,
        }
        choices.append(
            {
                "index": index,
                "message": message,
                "logprobs": logprobs,
                "finish_reason": reply.finish_reason,
                "matched_stop": reply.stop_reason,
            }
        )
    return {
        "id": identity,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": core.settings.served_model_name,
        "choices": choices,
        "usage": usage_json(run.usage, with_cached=core.settings.prompt_tokens_details),
        "metadata": {"weight_version": "default"},
    }


def _in_stream(message: str, code: int) -> bytes:
    kind = "InternalServerError" if code == 500 else str(code)
    return event({"error": flat_error(message, kind, code)})


async def _chat_events(core: Core, run: Run, body: Mapping[str, Json], identity: str) -> AsyncGenerator[bytes]:
    created_s = int(time.time())
    options = mapping(body.get("stream_options"))
    is_continuous = flag(options.get("include_usage")) and flag(options.get("continuous_usage_stats"))

    def chunk(choices: list[Json], usage: Json = None) -> bytes:
        return event(
            {
                "id": identity,
                "object": "chat.completion.chunk",
                "created": created_s,
                "model": core.settings.served_model_name,
                "choices": choices,
                "usage": usage_json(run.usage, with_cached=False) if is_continuous and usage is None else usage,
            }
        )

    try:
        async with aclosing(run.tokens()) as generated:
            async for emitted in generated:
                reply = run.replies[emitted.choice]
                if emitted.position == 0:
                    first: JsonObject = {"role": "assistant", "content": ""}
                    yield chunk([_chunk_choice(emitted.choice, first, None)])
                delta: JsonObject = {"content": emitted.piece}
                if reply.tool:
                    function: JsonObject = {"arguments": emitted.piece}
                    call: JsonObject = {"index": 0, "function": function}
                    if emitted.position == 0:
                        function["name"] = reply.tool.name
                        call |= {"id": f"call_{identity[:24]}", "type": "function"}
                    delta = {"tool_calls": [call]}
                yield chunk([_chunk_choice(emitted.choice, delta, None)])
                if emitted.finished:
                    yield chunk([_chunk_choice(emitted.choice, {}, emitted.finished.finish_reason)])
    except QueueFull:
        yield _in_stream(QUEUE_FULL, 503)
    except EngineLost:
        yield _in_stream(EngineLost.MESSAGE, 500)
    else:
        if flag(options.get("include_usage")):
            yield chunk([], usage_json(run.usage, with_cached=core.settings.prompt_tokens_details))
    yield DONE


def _chunk_choice(index: int, delta: JsonObject, finish_reason: str | None) -> JsonObject:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason, "matched_stop": None}


async def generate(request: web.Request) -> web.StreamResponse:
    """The native route: a text with placeholders, pictures beside it in `image_data`."""
    core = request.app[CORE]
    body = await read_object(request)
    pieces = _generate_pieces(body, core.settings)
    prompt = await core.prompt(pieces, text(body.get("cache_salt")) or None, text(body.get("text")), request[RECORD])
    parameters = mapping(body.get("sampling_params"))
    asked = integer(parameters.get("max_new_tokens"))
    # 128 is the native route's own default.
    asked = 128 if asked is None else asked
    run = _run(request, prompt, sampling_of(parameters, asked, prompt.length, core.settings, None))
    identity = text(body.get("rid")) or core.new_id() * 2
    if flag(body.get("stream")):
        return await send_events(request, _generate_events(run, identity), _in_stream(EngineLost.MESSAGE, 500))
    await run.complete()
    return json_answer(_generated(run, identity, run.replies[0].content, is_over=True))


def _generate_pieces(body: Mapping[str, Json], settings: SimulatorSettings) -> list[Piece]:
    """Text and pictures in order; pictures without a placeholder in the text come first. Raises Refusal."""
    given = body.get("image_data")
    items = given if isinstance(given, list) else [] if given is None else [given]
    hashes = sequence(body.get("mm_content_hashes"))
    images = []
    for index, item in enumerate(items):
        url = item if isinstance(item, str) else text(mapping(item).get("url"))
        content_hash = text(hashes[index]) or None if index < len(hashes) else None
        images.append(ImageInput(f"image_data.{index}", url, content_hash=content_hash))
    _check_image_count(len(images), settings)
    ids = [entry for entry in map(integer, sequence(body.get("input_ids"))) if entry is not None]
    if not isinstance(body.get("text"), str) and not ids:
        raise Refusal(400, "Either text, input_ids or input_embeds should be provided.")
    prompt_text = text(body.get("text")) if not ids else "".join(f" {entry}" for entry in ids)
    marked = tokens.VISION_START + tokens.IMAGE_PAD + tokens.VISION_END
    parts = prompt_text.split(marked)
    if len(parts) - 1 != len(images):
        return [*images, prompt_text]
    pieces: list[Piece] = [parts[0]]
    for image, following in zip(images, parts[1:], strict=True):
        pieces += [image, following]
    return pieces


def _generated(run: Run, identity: str, content: str, *, is_over: bool) -> JsonObject:
    usage, reply = run.usage, run.replies[0]
    finish: JsonObject = {"type": reply.finish_reason}
    if reply.finish_reason == "length":
        finish["length"] = len(reply.pieces)
    return {
        "text": content,
        "output_ids": [tokens.token_id(piece) for piece in tokens.pieces(content)],
        "meta_info": {
            "id": identity,
            "finish_reason": finish if is_over else None,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "weight_version": "default",
        },
    }


async def _generate_events(run: Run, identity: str) -> AsyncGenerator[bytes]:
    """Every event carries the whole text so far."""
    content = ""
    try:
        async with aclosing(run.tokens()) as generated:
            async for emitted in generated:
                content += emitted.piece
                yield event(_generated(run, identity, content, is_over=emitted.finished is not None))
    except QueueFull:
        yield _in_stream(QUEUE_FULL, 503)
    except EngineLost:
        yield _in_stream(EngineLost.MESSAGE, 500)
    yield DONE


async def tokenize(request: web.Request) -> web.Response:
    """Counts of a text, or of messages with one unexpanded placeholder for each picture; nothing is fetched."""
    core = request.app[CORE]
    body = await read_object(request)
    if isinstance(body.get("prompt"), str):
        ids = tokens.encode(text(body["prompt"]))
    else:
        pieces = render(turns_of(body, core.settings), core.settings.geometry_family, body.get("tools") or None)
        marked = tokens.VISION_START + tokens.IMAGE_PAD + tokens.VISION_END
        ids = [entry for piece in pieces for entry in tokens.encode(piece if isinstance(piece, str) else marked)]
    counted: JsonObject = {"tokens": list[Json](ids), "count": len(ids), "max_model_len": core.settings.max_model_len}
    return json_answer(counted)
