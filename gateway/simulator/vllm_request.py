"""Reading a vLLM chat or completion body: which parts exist, what is refused, with vLLM 0.32.0's statuses and texts.

What needs no media is checked by `check_cheap` before any picture is touched, the sampling values by `sampling_of`
after the media work, as the real server does.
"""

import json
from collections.abc import Mapping

from gateway.simulator.answer import Sampling, ToolOffer
from gateway.simulator.disaggregation import check_mixture, embedded_part
from gateway.simulator.fields import Json, flag, integer, mapping, number, sequence, text, texts
from gateway.simulator.prompt import ImageInput, Piece, Turn
from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import SimulatorSettings
from gateway.simulator.video import VideoInput

_PART_TYPES = (
    "audio_embeds, audio_url, image_embeds, image_pil, image_url, input_audio, input_image, input_text, output_text, "
    "prompt_embeds, refusal, text, thinking, tool_reference, video_embeds, video_url"
)
_DETAILS = frozenset({"auto", "low", "high", "original"})
_LONGEST_SALT = 1024
# VLLM_MAX_N_SEQUENCES and --max-logprobs, at their defaults.
_MOST_CHOICES = 16_384
_MOST_LOGPROBS = 20
_UNTRUSTED_KWARGS = (
    "Per-request {0} are disabled by default because they can change multimodal preprocessing resource usage. "
    "Start the server with --trust-request-mm-kwargs only when clients are trusted. (parameter={0})"
)


def schema_error(kind: str, location: str, problem: str) -> Refusal:
    """The 400 of a body that does not fit the schema; `location` is a dotted path."""
    return Refusal(
        400,
        f"1 validation error:\n  {{'type': '{kind}', 'loc': '{location}', 'msg': '{problem}'}}",
        "Bad Request",
        location,
    )


def check_cheap(body: Mapping[str, Json], settings: SimulatorSettings, headers: Mapping[str, str]) -> None:
    """Model, switches and salt. Raises Refusal."""
    model = body.get("model")
    if model is not None and model != settings.served_model_name:
        message = f"The model `{model}` does not exist. Valid aliases: {settings.served_model_name}."
        raise Refusal(404, message, "NotFoundError", "model")
    for name in ("mm_processor_kwargs", "media_io_kwargs"):
        if body.get(name) is not None:
            raise Refusal(400, _UNTRUSTED_KWARGS.format(name), param=name)
    if body.get("stream_options") and not flag(body.get("stream")):
        raise schema_error("value_error", "body.stream_options", "Stream options need stream=True")
    top = integer(body.get("top_logprobs"))
    if top is not None and not 0 <= top <= _MOST_LOGPROBS:
        message = f"Requested sample logprobs of {top}, which is greater than max allowed: {_MOST_LOGPROBS}"
        raise Refusal(400, message, param="top_logprobs")
    salt = body.get("cache_salt")
    if salt is not None and (not isinstance(salt, str) or not 0 < len(salt) <= _LONGEST_SALT):
        raise Refusal(400, "Parameter 'cache_salt' must be a non-empty string if provided.", param="cache_salt")
    rank = headers.get("X-data-parallel-rank", "0")
    if rank.isdigit() and int(rank) != 0:
        raise Refusal(400, f"data_parallel_rank {rank} is out of range [0, 1).")


def turns_of(body: Mapping[str, Json], settings: SimulatorSettings) -> list[Turn]:
    """The messages with their parts, counted against the picture limit. Raises Refusal."""
    if "messages" not in body:
        raise schema_error("missing", "body.messages", "Field required")
    messages = body["messages"]
    if not isinstance(messages, list):
        raise schema_error("list_type", "body.messages", "Input should be a valid list")
    turns = [_turn(message, f"messages.{index}", settings) for index, message in enumerate(messages)]
    given = [piece for turn in turns for piece in turn.pieces if isinstance(piece, ImageInput)]
    check_mixture(given)
    images = len(given)
    if images > settings.limit_images:
        message = f"At most {settings.limit_images} image(s) may be provided in one prompt. (parameter=image)"
        raise Refusal(400, message, param="image")
    return turns


def _turn(message: Json, pointer: str, settings: SimulatorSettings) -> Turn:
    fields = mapping(message)
    role = fields.get("role")
    if not isinstance(role, str):
        raise schema_error("missing", f"body.{pointer}.role", "Field required")
    content = fields.get("content")
    pieces: list[Piece] = []
    if isinstance(content, str):
        pieces.append(content)
    elif isinstance(content, list):
        for index, part in enumerate(content):
            pieces += _part(part, f"{pointer}.content.{index}", settings)
    elif content is not None:
        raise schema_error("string_type", f"body.{pointer}.content", "Input should be a valid string")
    calls = sequence(fields.get("tool_calls"))
    if calls:
        pieces.append(json.dumps([mapping(call).get("function") for call in calls], ensure_ascii=False))
    return Turn(role, tuple(pieces))


def _part(part: Json, pointer: str, settings: SimulatorSettings) -> list[Piece]:
    if isinstance(part, str):
        return [part]
    fields = mapping(part)
    kind = fields.get("type")
    if kind is None:
        return [_untyped_image(fields, pointer)]
    match kind:
        case "text" | "input_text" | "output_text" | "thinking" | "refusal":
            return [text(fields.get("text") or fields.get("thinking") or fields.get("refusal"))]
        case "tool_reference":
            return [text(fields.get("name"))]
        case "image_url" | "input_image":
            return [_image(fields, pointer, is_typed_string_allowed=kind == "input_image")]
        case "image_embeds":
            return [embedded_part(fields, pointer, settings)]
        case "audio_embeds" | "video_embeds" | "prompt_embeds":
            raise Refusal(400, f"You must set `--enable-mm-embeds` to input `{kind}`")
        case "video_url":
            url = mapping(fields.get("video_url")).get("url")
            if not isinstance(url, str):
                raise schema_error("string_type", f"body.{pointer}.video_url.url", "Input should be a valid string")
            return [VideoInput(pointer, url)]
        case "audio_url" | "input_audio" | "image_pil":
            modality = "audio" if "audio" in kind else "image_pil"
            message = f"At most 0 {modality}(s) may be provided in one prompt. (parameter={modality})"
            raise Refusal(400, message, param=modality)
        case _:
            raise Refusal(400, f"Unknown part type: {kind}. Supported types: {_PART_TYPES}.")


def _untyped_image(fields: Mapping[str, Json], pointer: str) -> ImageInput:
    if "image_url" not in fields:
        raise Refusal(400, "Missing 'type' field in multimodal part.")
    return _image(fields, pointer, is_typed_string_allowed=True)


def _image(fields: Mapping[str, Json], pointer: str, *, is_typed_string_allowed: bool) -> ImageInput:
    if "image_url" not in fields and "file_id" not in fields:
        raise schema_error("missing", f"body.{pointer}.image_url", "Field required")
    given = fields.get("image_url")
    raw_uuid = fields.get("uuid")
    uuid = None if raw_uuid is None else raw_uuid if isinstance(raw_uuid, str) else json.dumps(raw_uuid)
    detail = fields.get("detail")
    if isinstance(given, dict):
        url, detail = given.get("url"), given.get("detail", detail)
        if url is not None and not isinstance(url, str):
            raise schema_error("string_type", f"body.{pointer}.image_url.url", "Input should be a valid string")
    elif isinstance(given, str) and not is_typed_string_allowed and uuid is None:
        raise schema_error("dict_type", f"body.{pointer}.image_url", "Input should be a valid dictionary")
    else:
        url = given
    if detail is not None and detail not in _DETAILS:
        raise schema_error("literal_error", f"body.{pointer}.image_url.detail", "Input should be auto, low or high")
    return ImageInput(pointer, url if isinstance(url, str) else None, uuid)


def check_text_length(text_tokens: int, settings: SimulatorSettings) -> None:
    """Raises Refusal when the text alone is above the context."""
    limit = settings.max_model_len
    if text_tokens > limit:
        message = (
            f"This model's maximum context length is {limit} tokens. However, your prompt contains at least "
            f"{limit + 1} input tokens, more than fit. Please reduce the length of the input prompt. "
            f"(parameter=input_tokens, value={limit + 1})"
        )
        raise Refusal(400, message, param="input_tokens")


def sampling_of(
    body: Mapping[str, Json], prompt_length: int, settings: SimulatorSettings, tool: ToolOffer | None = None
) -> Sampling:
    """What bounds the answer, once the prompt is known. Raises Refusal; a sum above the context is clamped."""
    limit = settings.max_model_len
    if prompt_length > limit:
        raise Refusal(400, f"Input length ({prompt_length}) exceeds model's maximum context length ({limit}).")
    if prompt_length == limit:
        message = (
            f"The decoder prompt (length {prompt_length}) plus the number of requested output tokens (at least 1) is "
            f"longer than the maximum model length of {limit}."
        )
        raise Refusal(400, message)
    temperature = number(body.get("temperature"))
    if temperature is not None and temperature < 0:
        raise Refusal(400, f"temperature must be non-negative, got {temperature}.", param="temperature")
    asked = integer(body.get("max_completion_tokens"))
    asked = integer(body.get("max_tokens")) if asked is None else asked
    if asked is not None and asked < 1:
        raise Refusal(400, f"max_tokens must be at least 1, got {asked}.", param="max_tokens")
    if asked is not None and asked > limit:
        message = f"max_tokens={asked} cannot be greater than max_model_len={limit}. Please ask for fewer."
        raise Refusal(400, message, param="max_tokens")
    choices = integer(body.get("n"))
    if choices is not None and not 1 <= choices <= _MOST_CHOICES:
        raise Refusal(400, f"n must be between 1 and {_MOST_CHOICES}, got {choices}.", param="n")
    room = limit - prompt_length
    return Sampling(
        max_tokens=room if asked is None else min(asked, room),
        choices=choices or 1,
        ignore_eos=flag(body.get("ignore_eos")) and asked is not None,
        min_tokens=integer(body.get("min_tokens")) or 0,
        stop=texts(body.get("stop")),
        schema=_schema(body.get("response_format")),
        tool=tool,
    )


def _schema(response_format: Json) -> Json:
    fields = mapping(response_format)
    match fields.get("type"):
        case "json_object":
            return {}
        case "json_schema":
            return mapping(fields.get("json_schema")).get("schema") or {}
        case _:
            return None
