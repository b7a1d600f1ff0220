"""Fields that are engine-internal and no part of the API: a client's are taken out before a request is forwarded.

Decided here: which fields those are. Each lets a client of one tenant reach what is not its own: another tenant's cache
(``uuid``, ``cache_salt``), the scheduler (``priority``, ranks), other hosts (``bootstrap_host``), code or templates
(``custom_logit_processor``, ``chat_template``), or the token counts that limits rest on (``mm_processor_kwargs``).
Kept on purpose: ``chat_template_kwargs``, ``guided_*``, ``structured_outputs``, sampling fields and all unknown ones.
Sources: vLLM 0.32.0 ``ChatCompletionRequest`` and content parts, SGLang ``entrypoints/openai/protocol.py``.
"""

from __future__ import annotations

VLLM_BODY = frozenset(
    {
        "cache_salt",
        "chat_template",
        "ec_transfer_params",
        "image_embeds",
        "kv_transfer_params",
        "logits_processors",
        "media_io_kwargs",
        "mm_payload",
        "mm_processor_kwargs",
        "priority",
        "prompt_embeds",
        "request_id",
        "session_id",
        "vllm_xargs",
    }
)
SGLANG_BODY = frozenset(
    {
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
        "cache_salt",
        "conversation_id",
        "custom_logit_processor",
        "custom_params",
        "data_parallel_rank",
        "disagg_prefill_dp_rank",
        "extra_key",
        "images_config",
        "input_ids",
        "mm_content_hashes",
        "mm_hashes",
        "priority",
        "rid",
        "routed_dp_rank",
        "session_id",
        "session_params",
    }
)
BODY = VLLM_BODY | SGLANG_BODY

# On SGLang's own routes a prompt may come as ids; embeddings are tensors, and which ones are whose nobody can tell.
NATIVE_BODY = (SGLANG_BODY - {"input_ids"}) | {"input_embeds"}

# Beside any medium of a message (vLLM's cache identity, trusted blindly by the engine).
PART = frozenset({"uuid"})

# Inside ``image_url`` or ``video_url`` (SGLang): an identity, and sizes that would falsify the token count.
MEDIUM = frozenset({"content_hash", "max_dynamic_patch", "min_dynamic_patch", "max_long_side_pixel"})

# Content parts that hand an engine tensors or objects of its own. No field can be taken out of them, so the request is
# refused: they pass every limit by, and broken ones fail inside the engine.
PART_TYPES = frozenset({"audio_embeds", "image_embeds", "image_pil", "prompt_embeds", "video_embeds"})

# What a policy may name: the fields that can be taken out one by one.
ENGINE_FIELDS = BODY | NATIVE_BODY | PART | MEDIUM
