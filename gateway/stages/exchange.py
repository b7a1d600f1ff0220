"""The frame of an exchange: the snapshot it lives in, the ports it may use, its record, and how it ends.

Decided here: that every exchange is answered once and recorded once, whatever became of it, and what its record takes
from a policy, an estimate, a decision. Not decided here: the order of stages (``journey``), metrics and log lines (the
recorder).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from traceback import extract_tb
from typing import cast

from gateway.errors import (
    BackendFailed,
    Blame,
    DrainEnded,
    Draining,
    Exhausted,
    GatewayBug,
    GatewayError,
    ModelNotFound,
    NotTaken,
    Overloaded,
)
from gateway.legwork import Legs
from gateway.models.book import ModelBook, ServedModel
from gateway.policy.choose import Asked
from gateway.policy.effective import EffectivePolicy, Profile
from gateway.policy.keys import Caller
from gateway.policy.policyset import PolicySet
from gateway.policy.profiles import PROFILES
from gateway.policy.resolve import resolve
from gateway.policy.visible import hidden_adapter
from gateway.ports import (
    Aside,
    Body,
    Budgets,
    Client,
    Clips,
    Clock,
    Media,
    PreparedResult,
    PromptCounter,
    Recorder,
    Reservation,
    Upstream,
    UpstreamResponse,
)
from gateway.quota.standing import Standing, rate_headers
from gateway.record import AskedFor, ExchangeRecord, RequestHead
from gateway.routing.ask import Decision
from gateway.routing.ask import Profile as RoutingProfile
from gateway.routing.decide import DEFAULT_PROFILE
from gateway.routing.kept_responses import KeptResponses
from gateway.routing.sent_ids import SentIds
from gateway.splice.skeleton import Skeleton
from gateway.stages.identities import Identify
from gateway.types import (
    BackendView,
    Call,
    Change,
    ImagePlan,
    JsonObject,
    MediumKind,
    SourceFacts,
    TenantId,
)

TASK_HEADER = "x-vlmgw-task"


@dataclass(frozen=True, slots=True)
class World:
    """One complete snapshot of what can be reloaded; an exchange keeps the one it began with.

    ``has_tenants``: callers prove who they are to us, so that their credentials are ours and go no further.
    """

    policies: PolicySet
    book: ModelBook
    admit: Callable[[RequestHead], Caller]
    has_tenants: bool
    max_body_bytes: int
    media_deadline_s: float
    may_fetch: bool
    keepalive_comment_s: float | None
    cache_salt: Callable[[TenantId, str | None], str]
    identify: Identify
    prompts: PromptCounter | None = None
    routing: RoutingProfile = DEFAULT_PROFILE


@dataclass(frozen=True, slots=True)
class Ports:
    """The shell, as the journey sees it. ``cut_elsewhere`` parses bodies too laborious for the loop.

    ``sent_ids`` is what all exchanges together believe of the engines' caches; it is memory, not a door.
    """

    clock: Clock
    media: Media
    clips: Clips
    budgets: Budgets
    upstream: Upstream
    recorder: Recorder
    cut_elsewhere: Callable[[Body], Awaitable[Skeleton]]
    aside: Aside
    sent_ids: SentIds = field(default_factory=SentIds)
    responses: KeptResponses = field(default_factory=KeptResponses)
    legs: Legs | None = None


class Watch:
    """Attributes the time since the last lap to a stage."""

    def __init__(self, clock: Clock, record: ExchangeRecord) -> None:
        self._now_s = clock.now_s
        self._record = record
        self._last_s = record.started_s

    def lap(self, stage: str) -> None:
        now_s = self._now_s()
        self._record.stages.append((stage, now_s - self._last_s))
        self._last_s = now_s


def new_record(client: Client, dialect_name: str, clock: Clock) -> ExchangeRecord:
    """The empty record of an exchange that begins now."""
    head = client.head
    return ExchangeRecord(
        head.request_id,
        dialect_name,
        head.path,
        clock.now_s(),
        trace_id=head.trace_id,
        trace=head.trace,
        method=head.method,
    )


async def conclude(client: Client, ports: Ports, record: ExchangeRecord, stages: Awaitable[None]) -> None:
    """Run the stages, answer what they refuse, and record the exchange exactly once, whatever became of it."""
    try:
        try:
            await stages
        except GatewayError as error:
            await refuse(client, record, error)
        except Exception as error:  # the one place where the unforeseen is wrapped
            if isinstance(error, ConnectionError) and client.left:
                raise
            await refuse(client, record, GatewayBug(detail=_place_of(error)))
    except ConnectionError:
        record.outcome = "client_gone"
    except Exception:
        record.outcome = "bug"
        raise
    except (GeneratorExit, KeyboardInterrupt, SystemExit):
        record.outcome = "client_gone"
        raise
    except BaseException:  # cancelled: the client left, or the drain's time is over and it shall hear of that
        record.outcome = "client_gone"
        if not client.left:
            await refuse(client, record, DrainEnded() if record.attempts else Draining())
        raise
    finally:
        record.ended_s = ports.clock.now_s()
        ports.recorder.record(record)


def _place_of(error: Exception) -> str:
    """The unforeseen by its type and where it was raised; its text may repeat what a client sent."""
    frames = extract_tb(error.__traceback__)
    places = [f"{PurePath(each.filename).name}:{each.lineno} {each.name}" for each in frames[-3:]]
    return f"{type(error).__name__} in {' > '.join(places)}"


async def refuse(client: Client, record: ExchangeRecord, error: GatewayError) -> None:
    """Answer with an error and note it."""
    if record.profile is not None:
        error.spelling = PROFILES[record.profile].spelling(error)
    record.outcome = outcome_of(error)
    record.code, record.detail, record.rule = error.code, error.detail, error.rule
    if error.standing is not None:
        error.headers = tuple(rate_headers(cast("Standing", error.standing), record.dialect))
    elif record.rate_headers:  # it was charged, and failed later
        error.headers = tuple(record.rate_headers)
    if not client.started:
        record.status = error.told_status
    await client.refuse(error)


def refused_answer(refusal: NotTaken) -> UpstreamResponse | None:
    """What the backend answered when it refused; whoever does not relay it closes it."""
    return cast("UpstreamResponse | None", refusal.response)  # errors lie below ports and cannot name it


def check_continues(response: UpstreamResponse) -> None:
    """Within an event stream that we have begun, only the backend's event stream can follow.

    Raises BackendFailed, without the backend's own text: it may quote the prompt.
    """
    if response.status != 200:
        raise BackendFailed(f"The backend refused the request with status {response.status}.")
    kinds = [value.lower() for name, value in response.headers if name.lower() == "content-type"]
    if not any(kind.startswith("text/event-stream") for kind in kinds):
        raise BackendFailed("The backend did not answer with an event stream.")


def outcome_of(error: GatewayError) -> str:
    """The closed set of outcomes that metrics use: who or what ended the exchange."""
    if isinstance(error, Overloaded | Exhausted):
        return "shed"
    return {Blame.CLIENT: "rejected", Blame.TENANT: "shed", Blame.BACKEND: "backend_failed", Blame.GATEWAY: "bug"}[
        error.blame
    ]


def note_caller(record: ExchangeRecord, caller: Caller) -> None:
    """Whose request it is, and by which key."""
    record.tenant, record.key = caller.tenant, caller.key


def note_call(record: ExchangeRecord, call: Call) -> None:
    """What the body asks for."""
    record.stream, record.model = call.stream, call.model
    media = call.other_media
    record.asked = AskedFor(
        len(call.images),
        tuple([image.detail for image in call.images]) if call.images else (),
        sum([part.kind is MediumKind.VIDEO for part in media]) if media else 0,
        sum([part.kind is MediumKind.AUDIO for part in media]) if media else 0,
        call.message_count,
        call.text_bytes,
        call.output_limit_tokens,
        call.choices,
        call.has_tools,
    )


def note_served(record: ExchangeRecord, served: ServedModel) -> None:
    """Which model it is, and the caps of it that plans go by."""
    record.known_model, record.family = True, served.family.name
    if record.asked is not None:
        record.asked.max_pixels, record.asked.context_tokens = served.checkpoint.max_pixels, served.context_tokens


def note_policy(record: ExchangeRecord, policy: EffectivePolicy) -> None:
    """Which policy holds, and why that task."""
    record.task, record.task_reason, record.shadow = policy.task, policy.task_reason, policy.shadow
    record.sent_model = policy.model
    record.profile = None if policy.profile is Profile.NONE else policy.profile


def policy_for(world: World, caller: Caller, head: RequestHead, call: Call, tree: JsonObject) -> EffectivePolicy:
    """What a request is measured against. Raises NotPermitted, ModelNotFound."""
    asked = Asked(head.path, head.header, call.model, call.user, len(call.images), call.has_tools)
    policy = resolve(
        world.policies,
        tenant=caller.tenant,
        header_task=head.header(TASK_HEADER),
        model=call.model,
        body_task=call.task,
        key_task=caller.task,
        asked=asked,
    )
    if policy.allowed_models is not None:
        hidden = hidden_adapter(policy.allowed_models, policy.model, tree.get("lora_path"))
        if hidden is not None:
            raise ModelNotFound(f"The model {hidden[:128]!r} is not served here.", part="lora_path")
    return policy


def note_facts(record: ExchangeRecord, facts: Sequence[SourceFacts]) -> None:
    """What the images are as they came."""
    record.sources = facts
    for fact in facts:
        record.image_bytes_in += fact.byte_count
        record.image_pixels_in += fact.probe.raster.pixels
        record.image_digests.append(fact.placement.hex())


def note_plans(record: ExchangeRecord, facts: Sequence[SourceFacts], plans: Sequence[ImagePlan]) -> None:
    """What is planned: untouched images count with their own bytes, the others once they are prepared."""
    for fact, plan in zip(facts, plans, strict=True):
        record.image_tokens_original += plan.before.tokens
        record.image_pixels_out += plan.target.pixels
        record.image_patches += plan.after.vit_patches
        record.geometry.append(_disclosed(plan))
        for change in plan.changes:
            record.changes[change.value] = record.changes.get(change.value, 0) + 1
        if plan.untouched:
            record.images_passed += 1
            record.image_bytes_out += fact.byte_count
        elif Change.RESIZED in plan.changes:
            record.images_shrunk += 1
        else:
            record.images_recoded += 1


def _disclosed(plan: ImagePlan) -> str:
    """The upright original and, where it is another, the delivered size with what leads from one to the other."""
    if plan.target == plan.original:
        return str(plan.original)
    across, down = plan.scale
    why = " reason=adaptive" if Change.ADAPTED in plan.changes else ""
    return f"{plan.original} {plan.target} scale={across:.6g}x{down:.6g} offset=0x0{why}"


def note_prepared(record: ExchangeRecord, results: Sequence[PreparedResult]) -> None:
    """What the changed images became, and which of them the cache had."""
    record.cache_queries += len(results)
    for result in results:
        record.cache_hits += result.from_cache
        record.image_bytes_out += result.prepared.file_byte_count


def note_reservation(record: ExchangeRecord, reservation: Reservation) -> None:
    """How the tenant stands against its rates now; in shadow mode, where clients notice nothing, what is refused."""
    if not record.shadow:
        record.rate_headers = rate_headers(reservation.standing, record.dialect)
    if reservation.finding is not None:
        record.findings.append(reservation.finding.finding)


def note_decision(record: ExchangeRecord, decision: Decision, view: BackendView) -> None:
    """Where the request goes; the last decision counts when it went elsewhere."""
    record.backend, record.backend_url, record.engine = decision.backend, view.url, view.engine.value
    record.decision_reason, record.images_known = decision.reason, decision.known_images
    record.tell_decision = decision.tell
    record.exact_prefix_tokens = decision.holding.prefix_tokens if decision.holding.exact else None
    record.first_token_expected_s, record.prefix_known_tokens = (
        decision.ahead.expected_s,
        decision.holding.prefix_tokens,
    )
