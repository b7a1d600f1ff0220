"""SGLang's route table: inference, information, load, metrics and administration."""

import time
from collections.abc import Sequence

from aiohttp import web

from gateway.simulator import sglang
from gateway.simulator.fields import Json, JsonObject
from gateway.simulator.metrics import render_sglang
from gateway.simulator.refusal import Refusal
from gateway.simulator.web import CORE, json_answer

VERSION = "0.5.23"
ADMIN_POSTS = ("/abort_request", "/flush_cache", "/pause_generation", "/continue_generation")
_OPEN_PATHS = frozenset({"/health", "/ready", "/metrics", "/ping"})
_ARCHITECTURES = {
    "qwen2_vl": "Qwen2VLForConditionalGeneration",
    "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
    "qwen3_vl": "Qwen3VLForConditionalGeneration",
    "qwen3_5": "Qwen3_5ForConditionalGeneration",
}


class SglangContract:
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [
            web.post("/v1/chat/completions", sglang.chat_completions),
            web.post("/generate", sglang.generate),
            web.put("/generate", sglang.generate),
            web.post("/tokenize", sglang.tokenize),
            web.post("/v1/tokenize", sglang.tokenize),
            web.get("/v1/models", _models),
            *(web.get(path, _model_info) for path in ("/model_info", "/get_model_info")),
            *(web.get(path, _server_info) for path in ("/server_info", "/get_server_info")),
            *(web.get(path, _health) for path in ("/health", "/health_generate", "/ready", "/ping")),
            web.get("/v1/loads", _loads),
            web.get("/metrics", _metrics),
            *(web.post(path, _administer) for path in ADMIN_POSTS),
        ]

    def envelope(self, path: str, refusal: Refusal) -> JsonObject:
        if path in {"/generate", "/abort_request"}:
            return {"error": {"message": refusal.message}}
        # FastAPI's own failures are rewritten as BadRequest; vLLM's spelling has a space.
        return sglang.flat_error(refusal.message, refusal.kind.replace(" ", ""), refusal.status)

    def queue_full(self) -> Refusal:
        return sglang.queue_full()

    def is_guarded(self, path: str) -> bool:
        return path not in _OPEN_PATHS


async def _models(request: web.Request) -> web.Response:
    settings = request.app[CORE].settings
    card: JsonObject = {
        "id": settings.served_model_name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": settings.model_root or settings.served_model_name,
        "parent": None,
        "max_model_len": settings.max_model_len,
    }
    return json_answer({"object": "list", "data": [card]})


async def _model_info(request: web.Request) -> web.Response:
    settings = request.app[CORE].settings
    root = settings.model_root or settings.served_model_name
    family = settings.geometry_family.value
    return json_answer(
        {
            "model_path": root,
            "served_model_name": settings.served_model_name,
            "tokenizer_path": root,
            "is_generation": True,
            "weight_version": "default",
            "has_image_understanding": True,
            "has_audio_understanding": False,
            "model_type": family,
            "architectures": [_ARCHITECTURES[family]],
            "disaggregation_mode": "null",
        }
    )


async def _server_info(request: web.Request) -> web.Response:
    core = request.app[CORE]
    settings = core.settings
    capacity = settings.kv_blocks * settings.block_size
    image_limit: Json = {"image": settings.limit_images}
    return json_answer(
        {
            "model_path": settings.model_root or settings.served_model_name,
            "served_model_name": settings.served_model_name,
            "page_size": settings.block_size,
            "context_length": settings.max_model_len,
            "max_running_requests": settings.max_num_seqs,
            "max_queued_requests": settings.max_num_queued_reqs,
            "limit_mm_data_per_request": image_limit,
            "tp_size": 1,
            "dp_size": 1,
            "chunked_prefill_size": 8192,
            "enable_cache_report": settings.prompt_tokens_details,
            "status": "ready",
            "max_total_num_tokens": capacity,
            "max_req_input_len": settings.max_model_len - 6,
            "version": VERSION,
            "frontend": "python",
            "kv_events": None,
            "internal_states": [
                {
                    "effective_max_running_requests_per_dp": settings.max_num_seqs,
                    "memory_usage": {"token_capacity": capacity},
                }
            ],
        }
    )


async def _health(request: web.Request) -> web.Response:
    """200 at once (the default health check of the real server computes a token and takes a second)."""
    core = request.app[CORE]
    is_bad = core.engine.is_lost or (request.path == "/ready" and core.engine.is_paused)
    return web.Response(status=503 if is_bad else 200)


async def _loads(request: web.Request) -> web.Response:
    core = request.app[CORE]
    load, tally = core.engine.load(), core.tally
    capacity = core.settings.kv_blocks * core.settings.block_size
    entry: JsonObject = {
        "timestamp": time.time(),
        "dp_rank": 0,
        "num_running_reqs": load.running,
        "num_waiting_reqs": load.waiting,
        "num_waiting_uncached_tokens": load.waiting_tokens,
        "num_used_tokens": load.used_tokens,
        "num_total_tokens": load.used_tokens,
        "num_active_tokens": load.used_tokens,
        "max_total_num_tokens": capacity,
        "max_running_requests": core.settings.max_num_seqs,
        "token_usage": load.kv_usage,
        "gen_throughput": 0.0,
        "cache_hit_rate": tally.prefix_hits / tally.prefix_queries if tally.prefix_queries else 0.0,
        "utilization": load.running / core.settings.max_num_seqs,
    }
    return json_answer(
        {
            "timestamp": time.time(),
            "version": VERSION,
            "accelerator": "simulated",
            "num_accelerators": 1,
            "loads": [entry],
        }
    )


async def _metrics(request: web.Request) -> web.Response:
    core = request.app[CORE]
    page = render_sglang(core.tally, core.gauges(), core.started_s)
    return web.Response(text=page, content_type="text/plain", charset="utf-8")


async def _administer(request: web.Request) -> web.Response:
    """Does what the path says where the simulator has the thing, and remembers that it was called."""
    core = request.app[CORE]
    core.admin_calls.append(request.path)
    match request.path:
        case "/pause_generation":
            core.engine.pause()
        case "/continue_generation":
            core.engine.resume()
        case "/flush_cache":
            core.engine.pool.forget_idle()
        case _:
            pass
    return web.Response(text="ok")
