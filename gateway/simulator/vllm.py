"""vLLM 0.32.0's chat, completion and tokenize routes. Order of checks as observed there: model and switches, parts and
their count, media, text length, total length, sampling values."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from aiohttp import web

from gateway.simulator import disaggregation, tokens
from gateway.simulator import vllm_response as shape
from gateway.simulator.answer import Reply, Sampling, chosen_tool, compose
from gateway.simulator.core import Core, Run
from gateway.simulator.fields import Json, flag, integer, mapping, sequence, text
from gateway.simulator.prompt import Piece, Prompt, last_user_text, render, text_tokens_of
from gateway.simulator.refusal import EngineLost, Refusal
from gateway.simulator.vllm_request import check_cheap, check_text_length, sampling_of, schema_error, turns_of
from gateway.simulator.web import CORE, DONE, RECORD, drift_tokens, event, json_answer, read_object, send_events

DRAINING = "cannot schedule new futures after shutdown"


def refuse_while_draining(core: Core) -> None:
    """Raise the 500 by which a vLLM that is shutting down with grace refuses new work."""
    if core.is_draining:
        raise Refusal(500, DRAINING, "InternalServerError")


async def chat_prompt(request: web.Request, body: Mapping[str, Json]) -> tuple[Prompt, list[Piece]]:
    """From a chat body to its expanded prompt (and the template's pieces). Raises Refusal."""
    core = request.app[CORE]
    check_cheap(body, core.settings, request.headers)
    turns = turns_of(body, core.settings)
    tools = body.get("tools") if body.get("tool_choice") != "none" else None
    open_answer = flag(body.get("add_generation_prompt"), default=True)
    pieces = render(turns, core.settings.geometry_family, tools or None, open_answer=open_answer)
    salt = body.get("cache_salt")
    prompt = await core.prompt(pieces, text(salt) or None, last_user_text(turns), request[RECORD])
    check_text_length(text_tokens_of(pieces), core.settings)
    return prompt, pieces


async def start_run(request: web.Request, body: Mapping[str, Json], prompt: Prompt) -> tuple[Run, Sampling]:
    """Sampling and replies for a prompt; nothing is computed yet. Raises Refusal."""
    core = request.app[CORE]
    tool = chosen_tool(body.get("tools"), body.get("tool_choice"), prompt.last_user_text)
    sampling = sampling_of(body, prompt.length, core.settings, tool)
    replies = [compose(prompt, sampling, choice) for choice in range(sampling.choices)]
    if disaggregation.is_producer(core.settings):
        replies = [Reply((), "stop")]
    run = Run(core, prompt, replies, request[RECORD])
    run.is_prefilled = disaggregation.is_prefilled(body, prompt, core.settings)
    run.drift_tokens = drift_tokens(request)
    core.engine.refuse_when_full()
    return run, sampling


def request_id(request: web.Request, body: Mapping[str, Json], prefix: str) -> str:
    """The response's id: the caller's, from the header or the body, else a new one."""
    given = request.headers.get("X-Request-Id") or text(body.get("request_id"))
    return f"{prefix}-{given or request.app[CORE].new_id()}"


def load_headers(request: web.Request) -> dict[str, str]:
    """The load report in the answer's header when the request asked for one."""
    wanted = request.headers.get("endpoint-load-metrics-format", "").lower()
    if wanted not in {"json", "text"}:
        return {}
    load = request.app[CORE].engine.load()
    return {"endpoint-load-metrics": shape.load_header(load.waiting, load.kv_usage, wanted)}


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """POST /v1/chat/completions."""
    core = request.app[CORE]
    refuse_while_draining(core)
    body = await read_object(request)
    prompt, _ = await chat_prompt(request, body)
    run, _ = await start_run(request, body, prompt)
    identity = request_id(request, body, "chatcmpl")
    if flag(body.get("stream")):
        return await send_events(request, _chat_events(core, run, body, identity), event(shape.lost()))
    await run.complete()
    reply_body = shape.chat_completion(
        run,
        identity,
        int(time.time()),
        core.settings.served_model_name,
        with_details=core.settings.prompt_tokens_details,
        top_logprobs=_top_logprobs(body),
    )
    if disaggregation.is_producer(core.settings):
        reply_body["ec_transfer_params"] = disaggregation.write_pictures(prompt, core.settings)
    reply_body["kv_transfer_params"] = disaggregation.kv_answer(body, prompt, core.settings)
    return json_answer(reply_body, headers=load_headers(request))


def _top_logprobs(body: Mapping[str, Json]) -> int | None:
    return (integer(body.get("top_logprobs")) or 0) if flag(body.get("logprobs")) else None


async def _chat_events(core: Core, run: Run, body: Mapping[str, Json], identity: str) -> AsyncGenerator[bytes]:
    model, created_s = core.settings.served_model_name, int(time.time())
    options = mapping(body.get("stream_options"))
    is_continuous = flag(options.get("include_usage")) and flag(options.get("continuous_usage_stats"))
    top_logprobs = _top_logprobs(body)

    def chunk(choices: list[Json]) -> bytes:
        payload = shape.chunk(identity, created_s, model, choices)
        if is_continuous:
            payload["usage"] = shape.usage(run.usage, with_details=False)
        return event(payload)

    is_first = True
    try:
        async with aclosing(run.tokens()) as generated:
            async for emitted in generated:
                if is_first:
                    is_first = False
                    for index in range(len(run.replies)):
                        yield chunk([shape.role_choice(index)])
                call_id = f"chatcmpl-tool-{identity[-16:]}{emitted.choice}"
                yield chunk([shape.delta_choice(emitted, run, call_id, top_logprobs)])
    except EngineLost:
        yield event(shape.lost())
    else:
        if flag(options.get("include_usage")):
            last = shape.chunk(identity, created_s, model, [])
            last["usage"] = shape.usage(run.usage, with_details=core.settings.prompt_tokens_details)
            yield event(last)
    yield DONE


async def completions(request: web.Request) -> web.StreamResponse:
    """POST /v1/completions, for one prompt."""
    core = request.app[CORE]
    refuse_while_draining(core)
    body = await read_object(request)
    check_cheap(body, core.settings, request.headers)
    prompt = _text_prompt(body)
    check_text_length(prompt.length, core.settings)
    request[RECORD].prompt_tokens = prompt.length
    run, _ = await start_run(request, body, prompt)
    identity, created_s = request_id(request, body, "cmpl"), int(time.time())
    if flag(body.get("stream")):
        return await send_events(request, _text_events(core, run, body, identity, created_s), event(shape.lost()))
    await run.complete()
    wants_logprobs = integer(body.get("logprobs")) is not None
    choices: list[Json] = [
        shape.text_choice(
            index, reply.content, reply, shape.text_logprobs(reply, run.logprobs) if wants_logprobs else None
        )
        for index, reply in enumerate(run.replies)
    ]
    reply_body = shape.text_completion(identity, created_s, core.settings.served_model_name, choices)
    reply_body["usage"] = shape.usage(run.usage, with_details=core.settings.prompt_tokens_details)
    return json_answer(reply_body, headers=load_headers(request))


async def _text_events(
    core: Core, run: Run, body: Mapping[str, Json], identity: str, created_s: int
) -> AsyncGenerator[bytes]:
    model = core.settings.served_model_name
    try:
        async with aclosing(run.tokens()) as generated:
            async for emitted in generated:
                choice = shape.text_choice(emitted.choice, emitted.piece, emitted.finished)
                yield event(shape.text_completion(identity, created_s, model, [choice]))
    except EngineLost:
        yield event(shape.lost())
    else:
        if flag(mapping(body.get("stream_options")).get("include_usage")):
            last = shape.text_completion(identity, created_s, model, [])
            last["usage"] = shape.usage(run.usage, with_details=core.settings.prompt_tokens_details)
            yield event(last)
    yield DONE


def _text_prompt(body: Mapping[str, Json]) -> Prompt:
    """The prompt of /v1/completions: a text or token ids, or a list with one of either."""
    given = body.get("prompt")
    salt = text(body.get("cache_salt")) or None
    listed = sequence(given)
    if len(listed) == 1 and not isinstance(listed[0], int):
        given, listed = listed[0], sequence(listed[0])
    if isinstance(given, str):
        return Prompt(tuple(tokens.encode(given)), salt=salt, last_user_text=given)
    ids = [entry for entry in map(integer, listed) if entry is not None]
    if not ids or len(ids) != len(listed):
        raise schema_error("missing", "body.prompt", "Field required")
    return Prompt(tuple(ids), salt=salt)


async def tokenize(request: web.Request) -> web.Response:
    """Counts for a text, or for messages with every picture expanded; the multimodal cache plays no part."""
    core = request.app[CORE]
    body = await read_object(request)
    wants_strings = flag(body.get("return_token_strs"))
    if isinstance(body.get("prompt"), str):
        strings = tokens.pieces(text(body["prompt"]))
        ids = shape.ids_of(strings)
        return _tokenized(core, ids, strings if wants_strings else None)
    check_cheap(body, core.settings, request.headers)
    turns = turns_of(body, core.settings)
    pieces = render(
        turns,
        core.settings.geometry_family,
        body.get("tools") or None,
        open_answer=flag(body.get("add_generation_prompt"), default=True),
    )
    prompt = await core.prompt(pieces, None, "", request[RECORD], is_cached=False)
    strings = [str(identity) for identity in prompt.token_ids]
    return _tokenized(core, list(prompt.token_ids), strings if wants_strings else None)


def _tokenized(core: Core, ids: list[int], strings: list[str] | None) -> web.Response:
    return json_answer(shape.tokenized(ids, core.settings.max_model_len, strings))
