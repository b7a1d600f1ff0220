"""vLLM 0.32.0 under ``--runner pooling``: embeddings, pooling, classify, score, rerank; and audio transcriptions.

The numbers are made of the tokens and pictures alone, so that equal inputs give equal answers and others do not. Shapes
of requests and answers as in ``entrypoints/pooling``; a generate server has none of these paths, a pooling server none
that generate.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence

from aiohttp import web

from gateway.simulator import tokens
from gateway.simulator.fields import Json, JsonObject, flag, mapping, sequence, text
from gateway.simulator.prompt import Prompt, render
from gateway.simulator.refusal import Refusal
from gateway.simulator.vllm import refuse_while_draining
from gateway.simulator.vllm_request import check_cheap, check_text_length, schema_error, turns_of
from gateway.simulator.web import CORE, RECORD, json_answer, read_object

WIDTH = 8
_SIDES = (("queries", "documents"), ("queries", "items"), ("data_1", "data_2"), ("text_1", "text_2"))


async def embeddings(request: web.Request) -> web.Response:
    """POST /v1/embeddings."""
    body = await _read(request)
    prompts = await _prompts(request, body, _inputs(body))
    data: list[Json] = [
        {"index": index, "object": "embedding", "embedding": list[Json](vector(prompt))}
        for index, prompt in enumerate(prompts)
    ]
    return _answer(request, "embd", data, prompts)


async def pool(request: web.Request) -> web.Response:
    """POST /pooling: one vector per input, as a model with a pooler over the whole prompt."""
    body = await _read(request)
    prompts = await _prompts(request, body, _inputs(body))
    data: list[Json] = [
        {"index": index, "object": "pooling", "data": list[Json](vector(prompt))}
        for index, prompt in enumerate(prompts)
    ]
    return _answer(request, "pool", data, prompts)


async def classify(request: web.Request) -> web.Response:
    """POST /classify, of two classes."""
    body = await _read(request)
    prompts = await _prompts(request, body, _inputs(body))
    data: list[Json] = []
    for index, prompt in enumerate(prompts):
        share = (vector(prompt)[0] + 1) / 2
        probs: list[Json] = [share, 1 - share]
        label = "LABEL_0" if share >= 0.5 else "LABEL_1"
        data.append({"index": index, "label": label, "probs": probs, "num_classes": 2})
    return _answer(request, "classify", data, prompts)


async def score(request: web.Request) -> web.Response:
    """POST /score: one with one, one with each of many, or many with as many."""
    body = await _read(request)
    first, second = _two_sides(body)
    if len(first) > 1 and len(first) != len(second):
        raise Refusal(400, "Input lengths must be either 1:1, 1:N or N:N")
    prompts, scores = await _compared(request, body, first, second)
    data: list[Json] = [{"index": n, "object": "score", "score": each} for n, each in enumerate(scores)]
    return _answer(request, "embd", data, prompts)


async def rerank(request: web.Request) -> web.Response:
    """POST /rerank: the documents by their scores, the best first."""
    body = await _read(request)
    if "query" not in body or "documents" not in body:
        raise schema_error("missing", "body.query", "Field required")
    documents = _listed(body["documents"])
    prompts, scores = await _compared(request, body, [body["query"]], documents)
    order = sorted(range(len(scores)), key=lambda n: -scores[n])
    results: list[Json] = [
        {"index": n, "document": _document(documents[n]), "relevance_score": scores[n]} for n in order
    ]
    length = sum(prompt.length for prompt in prompts)
    usage: JsonObject = {"prompt_tokens": length, "total_tokens": length}
    core = request.app[CORE]
    return json_answer(
        {
            "id": f"rerank-{core.new_id()}",
            "model": core.settings.served_model_name,
            "usage": usage,
            "results": results,
        }
    )


async def detokenize(request: web.Request) -> web.Response:
    """POST /detokenize. Ids cannot be taken back to texts here, so each stands for itself."""
    body = await read_object(request)
    ids = sequence(body.get("tokens"))
    if not all(isinstance(each, int) for each in ids):
        raise schema_error("int_type", "body.tokens", "Input should be a valid integer")
    return json_answer({"prompt": " ".join(str(each) for each in ids)})


async def transcribe(request: web.Request) -> web.Response:
    """POST /v1/audio/transcriptions: how many bytes were heard."""
    core = request.app[CORE]
    form = await request.post()
    model = form.get("model")
    if isinstance(model, str) and model != core.settings.served_model_name:
        raise Refusal(404, f"The model `{model}` does not exist.", "NotFoundError", "model")
    sound = form.get("file")
    if not isinstance(sound, web.FileField):
        raise schema_error("missing", "body.file", "Field required")
    return json_answer({"text": f"{len(sound.file.read())} bytes", "usage": {"type": "duration", "seconds": 1}})


def vector(prompt: Prompt) -> list[float]:
    """WIDTH numbers in [-1, 1), of the tokens and the pictures behind them."""
    spelt = repr((prompt.token_ids, [span.identifier for span in prompt.spans])).encode()
    digest = hashlib.sha256(spelt).digest()
    return [round(digest[n] / 128 - 1, 6) for n in range(WIDTH)]


async def _read(request: web.Request) -> JsonObject:
    core = request.app[CORE]
    if not core.settings.pooling:
        raise web.HTTPNotFound
    refuse_while_draining(core)
    body = await read_object(request)
    check_cheap(body, core.settings, request.headers)
    if "normalize" in body:
        raise Refusal(400, "Parameter `normalize` was removed; use `use_activation` instead.", param="normalize")
    return body


def _inputs(body: Mapping[str, Json]) -> list[Json]:
    """Every input by itself: a text, ids, or a conversation."""
    given = body.get("messages", body.get("input"))
    if given is None:
        raise schema_error("missing", "body.input", "Field required")
    if isinstance(given, str):
        return [given]
    listed = sequence(given)
    is_one = all(isinstance(each, int) for each in listed) or all(mapping(each).get("role") for each in listed)
    return [given] if is_one else listed


async def _prompts(request: web.Request, body: Mapping[str, Json], inputs: Sequence[Json]) -> list[Prompt]:
    return [await _prompt(request, body, each) for each in inputs]


async def _prompt(request: web.Request, body: Mapping[str, Json], given: Json) -> Prompt:
    core = request.app[CORE]
    salt = text(body.get("cache_salt")) or None
    if isinstance(given, str):
        found = Prompt(tuple(tokens.encode(given)), salt=salt)
    elif isinstance(given, list) and given and all(isinstance(each, int) for each in given):
        found = Prompt(tuple(each for each in sequence(given) if isinstance(each, int)), salt=salt)
    else:
        messages: Json = given
        if isinstance(given, dict):  # a side of a score: parts without a role
            messages = [{"role": "user", "content": given.get("content")}]
        turns = turns_of({"messages": messages}, core.settings)
        opens = flag(body.get("add_generation_prompt"))
        pieces = render(turns, core.settings.geometry_family, open_answer=opens)
        found = await core.prompt(pieces, salt, "", request[RECORD])
    check_text_length(found.length - found.image_tokens, core.settings)
    record = request[RECORD]
    record.prompt_tokens += found.length
    record.image_tokens += found.image_tokens
    return found


def _listed(given: Json) -> list[Json]:
    return given if isinstance(given, list) else [given]


def _two_sides(body: Mapping[str, Json]) -> tuple[list[Json], list[Json]]:
    for first, second in _SIDES:
        if first in body and second in body:
            return _listed(body[first]), _listed(body[second])
    raise schema_error("missing", "body.queries", "Field required")


async def _compared(
    request: web.Request, body: Mapping[str, Json], first: Sequence[Json], second: Sequence[Json]
) -> tuple[list[Prompt], list[float]]:
    """The prompts of every pair, each input read as often as it is compared, and the pairs' scores."""
    left = await _prompts(request, body, first)
    right = await _prompts(request, body, second)
    if len(left) == 1:
        left *= len(right)
    pairs = list(zip(left, right, strict=True))
    scores = [1 / (1 + sum(abs(a - b) for a, b in zip(vector(x), vector(y), strict=True))) for x, y in pairs]
    return [prompt for pair in pairs for prompt in pair], scores


def _document(given: Json) -> JsonObject:
    return {"text": given} if isinstance(given, str) else {"text": None, "multi_modal": mapping(given).get("content")}


def _answer(request: web.Request, prefix: str, data: list[Json], prompts: Sequence[Prompt]) -> web.Response:
    core = request.app[CORE]
    length = sum(prompt.length for prompt in prompts)
    usage: JsonObject = {
        "prompt_tokens": length,
        "total_tokens": length,
        "completion_tokens": 0,
        "prompt_tokens_details": None,
    }
    return json_answer(
        {
            "id": f"{prefix}-{core.new_id()}",
            "object": "list",
            "created": int(time.time()),
            "model": core.settings.served_model_name,
            "data": data,
            "usage": usage,
        }
    )
