"""Paths that are never offered, and where a configured route leads. Pure.

``ADMIN_PATHS`` are what vLLM 0.32 (``entrypoints/serve``, dev mode included), SGLang 0.5.23 (``srt/entrypoints``) and
the routers of both serve beside inference: whoever reaches them stops engines, swaps weights or reads others' requests.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.types.names import BackendName

_ADMINISTRATION = """
    /pause /resume /is_paused /sleep /wake_up /is_sleeping /reset_prefix_cache /reset_mm_cache /reset_encoder_cache
    /collective_rpc /abort_request /abort_requests /server_info /get_server_info /metrics /start_profile /stop_profile
    /scale_elastic_ep /is_scaling_elastic_ep /load_lora_adapter /unload_lora_adapter /v1/load_lora_adapter
    /v1/unload_lora_adapter /flush_cache /clear_hicache_storage_backend /hicache /pause_generation /continue_generation
    /release_memory_occupation /resume_memory_occupation /update_weights /update_weights_from_disk
    /update_weights_from_tensor /update_weights_from_distributed /update_weights_from_ipc /update_weight_version
    /init_weights_update_group /destroy_weights_update_group /init_weight_transfer_engine /start_weight_update
    /finish_weight_update /get_weights_by_name /get_world_size /send_weights_to_remote_instance
    /init_weights_send_group_for_remote_instance /slow_down /configure_logging /freeze_gc /set_internal_state
    /get_internal_state /get_load /v1/loads /open_session /close_session /start_expert_distribution_record
    /stop_expert_distribution_record /dump_expert_distribution_record /set_trace_level /docs /redoc /openapi.json
    /add_worker /remove_worker /list_workers /workers /get_loads /engine_metrics /-
"""
ADMIN_PATHS = frozenset(_ADMINISTRATION.split())


def is_admin_path(path: str) -> bool:
    """Whether a path, or one that it stands below, is one of engines' administration."""
    lower = path.lower().rstrip("/")
    return any(lower == admin or lower.startswith(f"{admin}/") for admin in ADMIN_PATHS)


def is_plain_path(path: str) -> bool:
    """Whether a path has one spelling only: nothing that an engine would decode, join or drop on its way."""
    if not path.startswith("/") or any(sign in path for sign in "%\\;?#") or "//" in path:
        return False
    return all(0x21 <= ord(sign) < 0x7F for sign in path) and not {".", ".."} & set(path.split("/"))


@dataclass(frozen=True, slots=True)
class Lane:
    """Where a configured route leads and how much it may carry; empty or ``None``: anywhere, our own limit."""

    model: str | None = None
    backends: frozenset[BackendName] = frozenset()
    max_body_bytes: int | None = None
    max_message_bytes: int = 16 << 20
    idle_timeout_s: float = 3600.0


ANYWHERE = Lane()
