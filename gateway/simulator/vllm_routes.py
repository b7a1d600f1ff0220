"""vLLM's route table: inference, information, metrics, and the administration paths that no proxy may expose."""

import time
from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.simulator import anthropic, pooling, responses, vllm
from gateway.simulator import vllm_response as shape
from gateway.simulator.fields import JsonObject
from gateway.simulator.metrics import render_vllm
from gateway.simulator.realtime import realtime
from gateway.simulator.refusal import Refusal
from gateway.simulator.web import CORE, json_answer

BUSY = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
ADMIN_POSTS = (
    "/pause",
    "/resume",
    "/reset_prefix_cache",
    "/reset_mm_cache",
    "/reset_encoder_cache",
    "/sleep",
    "/wake_up",
    "/collective_rpc",
    "/abort_requests",
)
ADMIN_GETS = ("/is_paused", "/is_sleeping", "/server_info")
_SCALE_OUT_ONLY = ("/v1/chat/completions/render", "/inference/v1/generate")
_GUARDED = ("/v1", "/v2", "/inference", "/cohere")


class VllmContract:
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [
            web.post("/v1/chat/completions", _generating(vllm.chat_completions)),
            web.post("/v1/completions", _generating(vllm.completions)),
            web.post("/v1/messages", _generating(anthropic.messages)),
            web.post("/v1/messages/count_tokens", _generating(anthropic.count_tokens)),
            web.post("/v1/responses", _generating(responses.create)),
            web.get("/v1/responses/{identity}", _generating(responses.fetch)),
            web.post("/v1/audio/transcriptions", _generating(pooling.transcribe)),
            web.post("/v1/audio/translations", _generating(pooling.transcribe)),
            web.post("/tokenize", vllm.tokenize),
            web.post("/detokenize", pooling.detokenize),
            web.post("/v1/embeddings", pooling.embeddings),
            web.post("/pooling", pooling.pool),
            web.post("/classify", pooling.classify),
            *(web.post(path, pooling.score) for path in ("/score", "/v1/score")),
            *(web.post(path, pooling.rerank) for path in ("/rerank", "/v1/rerank", "/v2/rerank")),
            web.get("/v1/models", _models),
            web.get("/health", _health),
            web.get("/ping", _health),
            web.get("/version", _version),
            web.get("/load", _load),
            web.get("/v1/realtime", realtime),
            web.get("/metrics", _metrics),
            *(web.post(path, _scale_out) for path in _SCALE_OUT_ONLY),
            *(web.post(path, _administer) for path in ADMIN_POSTS),
            *(web.get(path, _administer) for path in ADMIN_GETS),
        ]

    def envelope(self, path: str, refusal: Refusal) -> JsonObject:
        return anthropic.error(refusal) if path.startswith("/v1/messages") else shape.error(refusal)

    def queue_full(self) -> Refusal:
        return Refusal(503, BUSY, "Service Unavailable")

    def is_guarded(self, path: str) -> bool:
        return path.startswith(_GUARDED)


def _generating(handler: Handler) -> Handler:
    """A path that only a server which generates has."""

    async def checked(request: web.Request) -> web.StreamResponse:
        if request.app[CORE].settings.pooling:
            raise web.HTTPNotFound
        return await handler(request)

    return checked


async def _models(request: web.Request) -> web.Response:
    settings = request.app[CORE].settings
    root = settings.model_root or settings.served_model_name
    return json_answer(shape.model_list(settings.served_model_name, root, int(time.time()), settings.max_model_len))


async def _health(request: web.Request) -> web.Response:
    """Empty 200, while draining too; 503 once the engine is gone."""
    return web.Response(status=503 if request.app[CORE].engine.is_lost else 200)


async def _version(_: web.Request) -> web.Response:
    return json_answer({"version": shape.VERSION})


async def _load(_: web.Request) -> web.Response:
    """Always 0, as on a server without load tracking."""
    return json_answer({"server_load": 0})


async def _metrics(request: web.Request) -> web.Response:
    core = request.app[CORE]
    page = render_vllm(core.tally, core.gauges(), core.started_s)
    return web.Response(text=page, content_type="text/plain", charset="utf-8")


async def _scale_out(_: web.Request) -> web.Response:
    message = "This endpoint is disabled. Start the server with --enable-scale-out."
    raise Refusal(403, message, "ForbiddenError")


async def _administer(request: web.Request) -> web.Response:
    """Does what the path says where the simulator has the thing, and remembers that it was called."""
    core = request.app[CORE]
    core.admin_calls.append(request.path)
    match request.path:
        case "/pause" | "/sleep":
            core.engine.pause()
        case "/resume" | "/wake_up":
            core.engine.resume()
        case "/reset_prefix_cache":
            core.engine.pool.forget_idle()
        case "/reset_mm_cache":
            core.loader.clear()
        case "/reset_encoder_cache":
            core.engine.encoder_cache.clear()
        case "/is_paused" | "/is_sleeping":
            return json_answer({request.path.removeprefix("/"): core.engine.is_paused})
        case _:
            pass
    return json_answer({"status": "ok"})
