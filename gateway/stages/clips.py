"""The videos and sounds of one request, stage by stage: looked at, planned, priced, prepared, written into the body.

Decided here: which of them are looked at, what becomes of what cannot be read, and how videos share a token budget. Not
decided here: limits (``policy``), the model's arithmetic (``models``), decoding (the Clips port), the order of stages
(``journey``). A request without any of them costs one look at an empty tuple.

A clip whose header cannot be read is passed on as it is, unless the policy wants something of it that only the header
or the frames could give: then it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.errors import GatewayError, MediumUndecodable, MediumUnsupported
from gateway.models.book import ServedModel
from gateway.models.clips import FrameCaps, sample
from gateway.models.video import Clip, VideoTokens, frames_tokens, rules_of, video_tokens
from gateway.policy.effective import EffectivePolicy, Excess, Geometry, Video
from gateway.policy.rule import MeasuredClip
from gateway.ports import Body, ClipJob, ClipRef, Clips, ClipScope, LookedClips
from gateway.record import ExchangeRecord
from gateway.splice.edit import Operation, SetString
from gateway.stages.exchange import World
from gateway.types import (
    BackendView,
    Call,
    ClipFacts,
    ClipPlan,
    Container,
    EngineKind,
    MediumKind,
    OtherMedium,
    PreparedClip,
    Size,
    Usage,
)


@dataclass(slots=True)
class ClipItem:
    """One video or sound: ``plan`` None = its source stays as it is; ``price`` None = not known, or a sound."""

    part: OtherMedium
    ref: ClipRef
    facts: ClipFacts
    plan: ClipPlan | None = None
    price: VideoTokens | None = None

    @property
    def measured(self) -> MeasuredClip:
        probe, price = self.facts.probe, self.price
        frames = None if price is None else price.sampled_frames
        tokens = None if price is None else price.prompt_tokens
        return MeasuredClip(
            self.part.name, self.part.kind, self.facts.byte_count, probe.duration_s, probe.size, frames, tokens
        )


class ClipWork:
    """What is known and held of a request's clips. ``close`` gives up what was fetched; safe to repeat."""

    def __init__(self, policy: EffectivePolicy, served: ServedModel, call: Call, views: Sequence[BackendView]) -> None:
        self._policy = policy
        self._served = served
        self._parts = call.other_media
        self._views = views
        self._looked: LookedClips | None = None
        self._edits: tuple[Operation, ...] | None = None
        self.items: tuple[ClipItem, ...] = ()
        self.bytes_made = 0

    # --- stages -----------------------------------------------------------------------------------------------------

    async def look(self, body: Body, clips: Clips, world: World, findings: list[str]) -> None:
        """Facts and plans of all clips that are looked at. Raises what the policy or the Clips port refuses.

        In shadow mode a refusal is a finding, and nothing is looked at then.
        """
        refs = [(part, ref) for part in self._parts if (ref := self._ref(part, clips.version)) is not None]
        if not refs:
            return
        policy = self._policy
        hosts = policy.hosts if world.may_fetch else ()
        scope = ClipScope(policy.tenant, policy.max_input_pixels, hosts, world.media_deadline_s)
        try:
            self._looked = await clips.look(body, [ref for _, ref in refs], scope)
            facts = self._looked.facts
            self.items = tuple(ClipItem(part, ref, fact) for (part, ref), fact in zip(refs, facts, strict=True))
            self._plan(clips.version)
        except GatewayError as error:
            if not policy.shadow:
                raise
            findings.append(error.finding)
            self.close()
            self.items = ()

    async def prepare(self, body: Body, clips: Clips, world: World) -> Sequence[Operation]:
        """What is written into the body in place of the clips' sources; made once, however often it is sent."""
        if self._edits is not None:
            return self._edits
        if not self.items:
            self._edits = ()
            return ()
        changing = [item for item in self.items if item.plan is not None and not self._policy.shadow]
        prepared: Sequence[PreparedClip] = ()
        if changing and self._looked is not None:
            scope = ClipScope(self._policy.tenant, self._policy.max_input_pixels, (), world.media_deadline_s)
            jobs = [ClipJob(item.ref, item.facts, item.plan) for item in changing if item.plan is not None]
            prepared = await clips.prepare(body, self._looked, jobs, scope)
        self.bytes_made = sum(clip.file_byte_count for clip in prepared)
        self._edits = tuple(
            SetString(item.part.pointer, clip.data_url) for item, clip in zip(changing, prepared, strict=True)
        )
        return self._edits

    def close(self) -> None:
        if self._looked is not None:
            self._looked.close()

    # --- what others need to know ---------------------------------------------------------------------------------

    @property
    def tokens(self) -> int:
        """Prompt positions of all videos whose price is known."""
        if not self.items:
            return 0
        return sum(item.price.prompt_tokens for item in self.items if item.price is not None)

    @property
    def patches(self) -> int:
        if not self.items:
            return 0
        return sum(item.price.vit_patches for item in self.items if item.price is not None)

    @property
    def placements(self) -> tuple[bytes, ...]:
        if not self.items:
            return ()
        return tuple(item.facts.placement for item in self.items if item.part.kind is MediumKind.VIDEO)

    @property
    def video_patches(self) -> list[int]:
        """Patches of each of ``placements``; 0 where no header told."""
        videos = [item for item in self.items if item.part.kind is MediumKind.VIDEO]
        return [0 if item.price is None else item.price.vit_patches for item in videos]

    @property
    def measured(self) -> tuple[MeasuredClip, ...]:
        if not self.items:
            return ()
        return tuple(item.measured for item in self.items)

    @property
    def has_video(self) -> bool:
        return bool(self._parts) and any(part.kind is MediumKind.VIDEO for part in self._parts)

    @property
    def needs_frames(self) -> bool:
        """Whether only an engine that takes sampled frames can take the request."""
        return (
            bool(self.items)
            and not self._policy.shadow
            and any(item.plan is not None and item.plan.indices for item in self.items)
        )

    def settle(self, usage: Usage | None, record: ExchangeRecord) -> None:
        """Hold the videos' price against what the engine counted, where it says so and every price was known."""
        if not self._parts:
            return
        record.clip_bytes_out += self.bytes_made
        videos = [part for part in self._parts if part.kind is MediumKind.VIDEO]
        prices = [item.price for item in self.items if item.price is not None]
        if usage is None or usage.video_tokens is None or len(prices) != len(videos):
            return
        record.video_tokens_expected = sum(price.reported_tokens for price in prices)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ref(self, part: OtherMedium, version: str | None) -> ClipRef | None:
        """How a part is looked at; ``None`` where nobody needs to know more of it."""
        policy = self._policy
        if part.source is None or part.kind is MediumKind.FILE:
            return None
        if part.kind is MediumKind.VIDEO:
            limit, is_of_use = policy.max_video_bytes, version is not None or self._must_read(part.kind)
        else:
            limit, is_of_use = policy.max_audio_bytes, self._must_read(part.kind)
        if part.is_inline and not is_of_use:
            return None
        return ClipRef(part.name, part.source, part.kind, part.is_bare, limit)

    def _has_vllm(self) -> bool:
        name = self._served.name
        return any(view.engine is EngineKind.VLLM and (not view.models or name in view.models) for view in self._views)

    def _must_read(self, kind: MediumKind) -> bool:
        """Whether the policy asks for what only a clip's header or frames can tell."""
        policy = self._policy
        if kind is MediumKind.AUDIO:
            return policy.max_audio_s is not None
        limits = (policy.max_video_s, policy.max_video_frames, policy.max_video_tokens)
        return policy.video is Video.FRAMES or any(limit is not None for limit in limits)

    def _plan(self, version: str | None) -> None:
        videos = [item for item in self.items if item.part.kind is MediumKind.VIDEO]
        for item in self.items:
            try:
                self._plan_one(item, version, len(videos))
            except GatewayError as error:
                raise error.at(item.part.name) from None

    def _plan_one(self, item: ClipItem, version: str | None, videos: int) -> None:
        """Raises MediumUndecodable, MediumUnsupported, AspectRatioExceeded."""
        facts = item.facts
        if facts.remote:
            item.plan = ClipPlan("file")
        if facts.flaw is not None:
            if not self._must_read(item.part.kind):
                return
            if facts.flaw == MediumUndecodable.code:
                raise MediumUndecodable
            raise MediumUnsupported
        if item.part.kind is not MediumKind.VIDEO or facts.probe.size is None:
            return
        if self._policy.video is Video.FRAMES and facts.probe.container is not Container.FRAMES:
            self._plan_frames(item, facts.probe.size, version, videos)
        else:
            item.price = self._price(facts)

    def _price(self, facts: ClipFacts) -> VideoTokens | None:
        """What a file, or a client's own frames, will cost; ``None`` where the model's rule is not known."""
        probe, checkpoint = facts.probe, self._served.checkpoint
        rules = rules_of(checkpoint)
        if rules is None or probe.size is None:
            return None
        if probe.container is Container.FRAMES:
            serving = self._served.frames
            count = min(probe.frames, serving.frames)
            return frames_tokens(probe.size, count, serving.frames_per_s, checkpoint, rules)
        return video_tokens(Clip(probe.size, probe.frames, probe.frames_per_s), checkpoint, rules)

    def _plan_frames(self, item: ClipItem, size: Size, version: str | None, videos: int) -> None:
        policy, probe, checkpoint = self._policy, item.facts.probe, self._served.checkpoint
        rules = rules_of(checkpoint)
        if rules is None:
            raise MediumUnsupported("How this model samples videos is not known; none can be sampled for it.")
        if not self._has_vllm():
            raise MediumUnsupported("No backend of this model takes sampled frames.")
        if version is None:
            raise MediumUnsupported("Videos cannot be sampled here.")
        budget = policy.max_video_tokens
        shrinks = policy.on_excess.max_video_tokens is Excess.SHRINK
        share = budget // videos if budget is not None and shrinks else None
        preserve = policy.geometry is Geometry.PRESERVE
        caps = FrameCaps(policy.max_video_frames, None if preserve else policy.max_pixels, share)
        clip = Clip(size, probe.frames, probe.frames_per_s)
        found = sample(clip, checkpoint, rules, self._served.frames, caps)
        if preserve:
            rate = self._served.frames.frames_per_s
            price = frames_tokens(size, len(found.indices), rate, checkpoint, rules)
            found = replace(found, target=size, price=price)
        item.plan = ClipPlan(version, found.target, found.indices, policy.jpeg_quality)
        item.price = found.price

    def note(self, record: ExchangeRecord) -> None:
        """What the clips are, and what is planned for them."""
        record.video_tokens = self.tokens
        for item in self.items:
            record.clip_bytes_in += item.facts.byte_count
            action = "passed" if item.plan is None else "inlined" if item.plan.keeps_file else "sampled"
            key = (item.part.kind.value, action)
            record.clips[key] = record.clips.get(key, 0) + 1
            if item.plan is None:
                record.clip_bytes_out += item.facts.byte_count
            record.clip_digests.append(item.facts.placement.hex())


def explained(work: ClipWork) -> list[dict[str, object]]:
    """What would be done with each clip that is looked at, for people."""
    told: list[dict[str, object]] = []
    for item in work.items:
        probe, plan, price = item.facts.probe, item.plan, item.price
        told.append(
            {
                "part": item.part.name,
                "kind": item.part.kind.value,
                "container": probe.container.value,
                "codec": probe.codec,
                "bytes": item.facts.byte_count,
                "digest": item.facts.placement.hex(),
                "duration_s": probe.duration_s,
                "original": None if probe.size is None else [probe.size.width, probe.size.height],
                "unreadable": item.facts.flaw,
                "untouched": plan is None,
                "frames": None if price is None else price.sampled_frames,
                "target": None if plan is None or plan.target is None else [plan.target.width, plan.target.height],
                "tokens": None if price is None else price.prompt_tokens,
            }
        )
    return told
