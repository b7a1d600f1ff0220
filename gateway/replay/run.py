"""One exchange of the past under other policies: refused or not, tokens, KV, compute, what becomes of its images.

Decided here: what a line can tell of a request and what is assumed where it cannot. Every rule that looks at one
request by itself is applied, as enforced even where the policy says ``shadow``; rates and what is in flight depend on
moments, hosts on addresses, and are not. Images that the log does not list are taken to be like the oldest that it
does; videos cost what they cost. Not decided here: any rule, any number of a model: those are the gateway's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gateway.errors import GatewayError
from gateway.models.book import ModelBook, ServedModel
from gateway.models.cost import encoder_flops, prefill_flops
from gateway.models.kv import request_kv_bytes
from gateway.models.pace import Pace
from gateway.policy.check import check_declared, check_measured
from gateway.policy.choose import Asked as Looks
from gateway.policy.effective import EffectivePolicy, Mode
from gateway.policy.policyset import DEFAULT_TENANT, PolicySet
from gateway.policy.resolve import resolve
from gateway.policy.rule import MeasuredImage
from gateway.replay.line import Exchange, read_source
from gateway.stages.omission import MARKER, as_enforced
from gateway.stages.planning import Kept, cap_of, estimate_request, kv_bytes_of
from gateway.stages.rehearsal import refusal_of, rehearse
from gateway.types import (
    BackendName,
    BackendView,
    Call,
    EngineKind,
    ImagePart,
    LongString,
    SourceFacts,
    Span,
    TaskName,
    TenantId,
    TokenEstimate,
)

# English text in most vocabularies; what is compared is the difference a marker makes, not the text.
_MARKER_TOKENS = len(MARKER) // 4
_ENGINES = {kind.value: kind for kind in EngineKind}
_PACE = Pace()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became, or would become, of one request. Not ``sized``: nobody looked at its images, nothing is counted.

    ``refused`` is the rule, or the code where no rule is behind it. ``gpu_ms`` is prefill and encoder, uncached, on the
    seed pace; it and ``kv_bytes`` are 0 where the model's layers are not known. ``changes`` are images by rule.
    """

    refused: str | None
    sized: bool = False
    image_tokens: int = 0
    prompt_tokens: int = 0
    kv_tokens: int = 0
    kv_bytes: int = 0
    gpu_ms: float = 0.0
    patches: int = 0
    omitted: int = 0
    shrunk: int = 0
    changes: Mapping[str, int] = field(default_factory=dict)


class Replayer:
    """Replays exchanges under one set of policies; ``book`` knows the models, as the gateway's own does."""

    def __init__(self, policies: PolicySet, book: ModelBook) -> None:
        self._policies = policies
        self._book = book
        self._copies: dict[int, tuple[EffectivePolicy, EffectivePolicy, EffectivePolicy]] = {}

    def replay(self, line: Exchange) -> Outcome:
        """Raises BadLine where the line's images cannot be read."""
        asked = line.asked
        assert asked is not None, "whoever calls has looked"
        call, facts = request_of(line)
        try:
            enforced, shadow = self._policy(line, call)
        except GatewayError as error:
            return Outcome(refusal_of(error))
        declared = check_declared(shadow, as_enforced(shadow, call))
        if call.images and not facts:
            return Outcome(refusal_of(declared[0]) if declared else None)
        served = served_as(self._book, enforced.model, line)
        try:
            rehearsal = rehearse(enforced, served, call, facts, "replay")
        except GatewayError as error:
            return Outcome(refusal_of(error), sized=True)
        kept = rehearsal.kept
        estimate = self._estimate(line, served, enforced, kept)
        measured = [
            MeasuredImage.of(part, fact, cap_of(enforced, served), plan)
            for part, fact, plan in zip(kept.call.images, kept.facts, kept.plans, strict=True)
        ]
        context = served.context_tokens if served.is_exact else None
        kv_bytes = kv_bytes_of(enforced, served, estimate)
        errors = [*declared, *check_measured(shadow, measured, estimate, context, kv_bytes=kv_bytes)]
        patches = sum(plan.after.vit_patches for plan in kept.plans)
        return replace(
            priced(served, estimate.prompt_tokens, estimate.output_tokens, patches),
            refused=refusal_of(errors[0]) if errors else None,
            image_tokens=estimate.image_tokens,
            omitted=len(kept.call.omitted),
            shrunk=sum(plan.target != plan.original for plan in kept.plans),
            changes=rehearsal.changes,
        )

    def logged(self, line: Exchange) -> Outcome:
        """What the line says became of the request."""
        refused = (line.rule or line.code) if line.outcome in ("rejected", "shed") else None
        if line.estimate is None:
            return Outcome(refused)
        served = served_as(self._book, self._name(line), line)
        images, estimate = line.images, line.estimate
        return replace(
            priced(served, estimate.prompt, estimate.output, images.patches),
            refused=refused,
            image_tokens=estimate.image,
            omitted=images.omitted,
            shrunk=images.shrunk,
        )

    def _name(self, line: Exchange) -> str | None:
        """The served model behind the client's name, as far as these policies know it."""
        try:
            return self._policy(line, request_of(line)[0])[0].model
        except GatewayError:
            return line.model

    def _policy(self, line: Exchange, call: Call) -> tuple[EffectivePolicy, EffectivePolicy]:
        """As enforced, and as one that reports all it would refuse. Raises NotPermitted."""
        task, reason = line.task, line.task_reason
        looks = Looks(line.path, lambda _name: None, line.model, None, len(call.images), call.has_tools)
        found = resolve(
            self._policies,
            tenant=TenantId(line.tenant or DEFAULT_TENANT),
            header_task=task if reason.startswith("header") else None,
            model=line.model,
            body_task=task if reason.startswith("metadata") else None,
            key_task=TaskName(task) if task and reason.startswith("the caller's key") else None,
            asked=looks,
        )
        copies = self._copies.get(id(found))
        if copies is None or copies[0] is not found:
            enforced = replace(found, mode=Mode.ENFORCE, hosts=None)
            copies = self._copies[id(found)] = (found, enforced, replace(enforced, mode=Mode.SHADOW))
        return copies[1], copies[2]

    def _estimate(self, line: Exchange, served: ServedModel, policy: EffectivePolicy, kept: Kept) -> TokenEstimate:
        """As the gateway estimates, with the text and the videos that the line tells of."""
        told, asked = line.estimate, line.asked
        estimate = estimate_request(self._book, served, policy, kept.call, kept.plans)
        if told is None or asked is None:
            return estimate
        around = told.prompt - told.text - told.image
        overhead = min(around, estimate.image_overhead_tokens) if asked.videos else around
        text = told.text + _MARKER_TOKENS * (len(kept.call.omitted) - line.images.omitted)
        return replace(estimate, text_tokens=max(0, text), video_tokens=max(0, around - overhead))


def request_of(line: Exchange) -> tuple[Call, Sequence[SourceFacts]]:
    """The request that a line tells of; no facts where nobody looked at its images. Raises BadLine."""
    asked = line.asked
    assert asked is not None, "whoever calls has looked"
    known = [read_source(text) for text in asked.sources]
    count = max(asked.images, len(known))
    if known:
        known = [known[0]] * (count - len(known)) + known
    images = tuple(
        _part(index, known[index].facts if known else None, known[index].detail if known else None)
        for index in range(count)
    )
    call = Call(
        model=line.model,
        stream=False,
        wants_usage=False,
        output_limit_tokens=asked.output_limit,
        images=images,
        text_bytes=asked.text_bytes,
        message_count=asked.messages,
        choices=asked.choices,
        has_tools=asked.tools,
    )
    return call, [source.facts for source in known]


def _part(index: int, facts: SourceFacts | None, detail: str | None) -> ImagePart:
    """An image that is spelled in as many bytes as its file takes in base64; one with an address in a few."""
    pointer = ("messages", 0, "content", index, "image_url", "url")
    if facts is None or facts.remote:
        return ImagePart(pointer, pointer[:4], "https://replayed.invalid/", detail)
    spelled = LongString(Span(0, -(-facts.byte_count // 3) * 4), has_escapes=False)
    return ImagePart(pointer, pointer[:4], spelled, detail)


def served_as(book: ModelBook, model: str | None, line: Exchange) -> ServedModel:
    """The model as the backends of that time served it."""
    asked, name = line.asked, model or ""
    kind = _ENGINES.get(line.engine or "", EngineKind.VLLM)
    caps = (None, None) if asked is None else (asked.max_pixels, asked.context)
    view = BackendView(BackendName("log"), "", kind, models=(name,), max_pixels=caps[0], context_tokens=caps[1])
    return book.serve(name, (view,))


def priced(served: ServedModel, prompt_tokens: int, output_tokens: int, patches: int) -> Outcome:
    """What a prompt, its output and its patches hold and cost."""
    checkpoint = served.checkpoint
    gpu_ms = 0.0
    if checkpoint.decoder is not None:
        gpu_ms += _PACE.prefill_ms(prefill_flops(checkpoint.decoder, prompt_tokens))
    if checkpoint.encoder is not None and patches:
        gpu_ms += _PACE.encode_ms(encoder_flops(checkpoint.encoder, patches))
    kv_bytes = 0 if checkpoint.kv is None else request_kv_bytes(checkpoint.kv, prompt_tokens, output_tokens)
    return Outcome(
        None,
        sized=True,
        prompt_tokens=prompt_tokens,
        kv_tokens=prompt_tokens + output_tokens,
        kv_bytes=kv_bytes,
        gpu_ms=gpu_ms,
        patches=patches,
    )
