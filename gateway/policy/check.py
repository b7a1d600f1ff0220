"""Stages *check (declared)* and *check (measured)*: a request against its effective policy.

Decided here: the order of checks, the context's limit and the hosts. Rules decide for themselves (`rules`). Enforced
policies raise the first finding; in shadow mode all are returned and nothing is raised. Every finding names its rule,
and the line of the policy that decided it in its private detail.

The context: 400 only when the prompt's lower bound and one token of output do not fit, the condition under which vLLM
refuses. A prompt that fits with an output limit that does not is passed on unchanged: vLLM shortens the output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from gateway.errors import ContextTooLong, GatewayError, NotPermitted, SourceBlocked
from gateway.policy.effective import EffectivePolicy, FieldAction
from gateway.policy.rule import Measured, MeasuredClip, MeasuredImage
from gateway.policy.rules import RULES
from gateway.types import Call, ImagePart, OtherMedium, TokenEstimate, dotted

_DECLARED = tuple(rule.declared for rule in RULES if rule.declared is not None)
_MEASURED = tuple(rule.measured for rule in RULES if rule.measured is not None)
# What is left to check where a request has no image, which is most of them.
_OF_TEXT = tuple(rule for rule in RULES if not rule.of_images and not rule.of_clips)
_DECLARED_OF_TEXT = tuple(rule.declared for rule in _OF_TEXT if rule.declared is not None)
_MEASURED_OF_TEXT = tuple(rule.measured for rule in _OF_TEXT if rule.measured is not None)
# As much of a list and of a name as a message holds; 253 characters are a whole name (RFC 1035 §2.3.4, in text).
_HOSTS_TOLD = 8
_HOST_CHARACTERS = 253
_REMOTE = re.compile(r"https?://", re.IGNORECASE)


def check_declared(effective: EffectivePolicy, call: Call) -> tuple[GatewayError, ...]:
    """Check what the body says of itself, before any image is fetched or looked at.

    Raises TooManyImages, ImageTooLarge, TooManyTokens, TooManyMedia, MediumTooLarge, NotPermitted, SourceBlocked; in
    shadow mode returns them.
    """
    checks = _DECLARED if call.images or call.other_media else _DECLARED_OF_TEXT
    found = [error for check in checks if (error := check(effective, call)) is not None]
    if call.foreign_fields:
        found += _refused_fields(effective, call)
    found += [
        SourceBlocked("Only images, videos and sounds are fetched; send files inline.", part=medium.name, rule="hosts")
        for medium in call.other_media
        if not medium.is_inline and medium.source is None
    ]
    if effective.hosts is not None:
        found += _blocked_sources(effective.hosts, "images", call.images)
        if call.other_media:
            found += _blocked_sources(effective.hosts, "videos or sounds", call.other_media)
    return _deliver(effective, found)


def check_measured(
    effective: EffectivePolicy,
    images: Sequence[MeasuredImage],
    estimate: TokenEstimate,
    context_tokens: int | None,
    *,
    clips: Sequence[MeasuredClip] = (),
    kv_bytes: int | None = None,
    prompt_field: str = "messages",
) -> tuple[GatewayError, ...]:
    """Check sizes, formats and tokens once they are known. ``None``: not known, not checked.

    What is too much of the whole prompt names the body's field that holds it.

    Raises ImageTooLarge, UnsupportedFormat, TooManyTokens, MediumTooLarge, MediumTooLong, ContextTooLong; in shadow
    mode returns them.
    """
    measured = Measured(images, estimate, clips, kv_bytes)
    checks = _MEASURED if images or clips else _MEASURED_OF_TEXT
    found = [error for check in checks if (error := check(effective, measured)) is not None]
    if context_tokens is not None and estimate.prompt_lower_bound + 1 > context_tokens:
        found.append(_too_long(estimate, context_tokens))
    for error in found:
        error.at(prompt_field)
    return _deliver(effective, found)


def _deliver(effective: EffectivePolicy, found: list[GatewayError]) -> tuple[GatewayError, ...]:
    for error in found:
        error.detail = effective.reasons.get(error.rule or "")
    if found and not effective.shadow:
        raise found[0]
    return tuple(found)


def _refused_fields(effective: EffectivePolicy, call: Call) -> list[GatewayError]:
    actions = effective.engine_fields
    return [
        NotPermitted(
            f"The field {pointer[-1]} is internal to engines and is not accepted here.",
            part=dotted(pointer),
            rule="engine_fields",
        )
        for pointer in call.foreign_fields
        if actions.action(str(pointer[-1])) is FieldAction.REJECT
    ]


def _too_long(estimate: TokenEstimate, context_tokens: int) -> ContextTooLong:
    bound = "" if estimate.exact else "at least "
    images = estimate.image_tokens + estimate.image_overhead_tokens
    share = f" ({images} of them for images)" if images else ""
    return ContextTooLong(
        f"The prompt needs {bound}{estimate.prompt_lower_bound} tokens{share} and one more for output, "
        f"the model's context holds {context_tokens}.",
        rule="context",
    )


def _blocked_sources(
    hosts: tuple[str, ...], what: str, media: Sequence[ImagePart] | Sequence[OtherMedium]
) -> list[GatewayError]:
    """Remote media whose host is visibly not allowed; the fetcher checks every hop, this only saves the wait."""
    blocked: list[GatewayError] = []
    for image in media:
        if not isinstance(image.source, str) or not _REMOTE.match(image.source):
            continue
        host = _host(image.source)
        if host is not None and not any(host_matches(pattern, host) for pattern in hosts):
            blocked.append(SourceBlocked(_not_among(host, hosts, what), part=image.name, rule="hosts"))
    return blocked


def _not_among(host: str, hosts: tuple[str, ...], what: str) -> str:
    """Names nothing that the tenant does not know: its own request's host and its own policy's list."""
    if not hosts:
        return f"The policy lets no {what} be fetched."
    more = f" and {len(hosts) - _HOSTS_TOLD} more" if len(hosts) > _HOSTS_TOLD else ""
    allowed = ", ".join(hosts[:_HOSTS_TOLD]) + more
    return f"The policy lets no {what} be fetched from {host[:_HOST_CHARACTERS]}; allowed: {allowed}."


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # not a URL at all: the fetcher says so in its own words
        return None


def host_matches(pattern: str, host: str) -> bool:
    """``*.example.com`` fits every name below example.com but not that name itself; other patterns fit literally."""
    name = host.lower().removesuffix(".")
    return name.endswith(pattern[1:]) and len(name) >= len(pattern) if pattern.startswith("*.") else name == pattern
