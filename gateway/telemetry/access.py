"""The access line of one exchange, as a dictionary for the log.

Decided here: the fields and their order; those that do not apply are left out. Not decided here: the facts, and whether
lines are written (``log``). It is made once per exchange, so nothing is gathered only to be thrown away.
"""

from __future__ import annotations

from gateway.record import ExchangeRecord, stage_totals
from gateway.telemetry.asked import asked_line
from gateway.types import Usage


def access_line(x: ExchangeRecord, time_s: float, totals: dict[str, float] | None = None) -> dict[str, object]:
    """The access line's fields; those that do not apply are left out. ``time_s`` is the wall clock at its end,
    ``totals`` the seconds by stage, where they were summed already."""
    totals = stage_totals(x.stages) if totals is None else totals
    ended = x.ended_s if x.ended_s is not None else x.started_s
    line: dict[str, object] = {
        "time": time_s,
        "event": "exchange",
        "request_id": x.request_id,
        "dialect": x.dialect,
        "path": x.path[:256],
        "status": x.status,
        "outcome": x.outcome,
        "total_ms": _ms(ended - x.started_s),
        "stages_ms": {stage: int(seconds * 1e6) / 1000 for stage, seconds in totals.items()},
        "request_bytes": x.request_bytes,
        "forwarded_bytes": x.forwarded_bytes,
        "response_bytes": x.response_bytes,
    }
    _note_refusal(line, x)
    _note_caller(line, x)
    if x.backend is not None:
        _note_route(line, x)
    _note_attempts(line, x)
    if x.trace_id is not None:
        line["trace_id"] = x.trace_id
    if x.first_byte_s is not None:
        line["ttfb_ms"] = _ms(x.first_byte_s - x.started_s)
    if x.asked is not None:
        line["asked"] = asked_line(x.asked, x.sources)
    _note_media(line, x)
    _note_tokens(line, x)
    if x.findings:
        line["findings"] = x.findings
    if x.shadow_image_tokens is not None:
        line["shadow_image_tokens"] = x.shadow_image_tokens
        if x.shadow_changes:
            line["shadow_changes"] = dict(x.shadow_changes)
    return line


def _note_caller(line: dict[str, object], x: ExchangeRecord) -> None:
    """Whose request it is, and which policy and model it goes by."""
    if x.tenant is not None:
        line["tenant"] = x.tenant
    if x.key is not None:
        line["key"] = x.key
    if x.task is not None:
        line["task"], line["task_reason"] = x.task, x.task_reason
    if x.model:
        line["model"] = x.model[:128]
    if x.stream:
        line["stream"] = True
    if x.shadow:
        line["shadow"] = True


def _note_attempts(line: dict[str, object], x: ExchangeRecord) -> None:
    """What was out of the ordinary on the way."""
    if x.attempts > 1:
        line["attempts"] = x.attempts
    if x.retry_reasons:
        line["retries"] = x.retry_reasons
    if x.stranded is not None:
        line["stranded"] = x.stranded
    if x.stripped_fields:
        line["stripped"] = x.stripped_fields


def _note_media(line: dict[str, object], x: ExchangeRecord) -> None:
    if x.images:
        line["images"] = {
            "passed": x.images_passed,
            "shrunk": x.images_shrunk,
            "recoded": x.images_recoded,
            "omitted": x.images_omitted,
            "changes": x.changes,
            "bytes_in": x.image_bytes_in,
            "bytes_out": x.image_bytes_out,
            "pixels_in": x.image_pixels_in,
            "pixels_out": x.image_pixels_out,
            "tokens_original": x.image_tokens_original,
            "patches": x.image_patches,
            "digests": x.image_digests,
        }
        if x.image_ids_sent:
            line["image_ids"] = {"sent": x.image_ids_sent, "alone": x.image_ids_alone, "missed": x.image_ids_missed}
    if x.legs:
        line["legs"] = {f"{role} {end}": count for (role, end), count in x.legs.items()}
    if x.clips:
        line["clips"] = {
            "done": {f"{kind} {action}": count for (kind, action), count in x.clips.items()},
            "bytes_in": x.clip_bytes_in,
            "bytes_out": x.clip_bytes_out,
            "video_tokens": x.video_tokens,
            "digests": x.clip_digests,
        }


def _note_tokens(line: dict[str, object], x: ExchangeRecord) -> None:
    if x.estimate is not None:
        e = x.estimate
        line["estimate"] = {
            "text": e.text_tokens, "image": e.image_tokens, "prompt": e.prompt_tokens, "output": e.output_tokens,
        }  # fmt: skip
    if x.usage is not None:
        line["usage"] = _usage(x.usage)


def _note_refusal(line: dict[str, object], x: ExchangeRecord) -> None:
    if x.code is not None:
        line["code"] = x.code
    if x.rule is not None:
        line["rule"] = x.rule
    if x.detail is not None:
        line["detail"] = x.detail


def _note_route(line: dict[str, object], x: ExchangeRecord) -> None:
    """Where it went, and what became of that."""
    line["backend"] = x.backend
    if x.engine is not None:
        line["engine"] = x.engine
    if x.decision_reason is not None:
        line["decision"] = x.decision_reason
    if x.exact_prefix_tokens is not None:
        line["exact_prefix"] = x.exact_prefix_tokens
    if x.prefix_known_tokens:
        line["prefix_known"] = x.prefix_known_tokens
    if x.first_token_expected_s is not None:
        line["first_token_expected_ms"] = _ms(x.first_token_expected_s)


def _usage(usage: Usage) -> dict[str, int]:
    told: dict[str, int] = {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
    if usage.cached_tokens is not None:
        told["cached"] = usage.cached_tokens
    if usage.image_tokens is not None:
        told["image"] = usage.image_tokens
    if usage.video_tokens is not None:
        told["video"] = usage.video_tokens
    return told


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
