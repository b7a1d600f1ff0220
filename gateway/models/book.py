"""The models that are served now: what each costs, and what was learnt of its text.

Decided here: which checkpoint, caps and context count for one served name over all backends that serve it. Not decided
here: which backend a request goes to, and what is refused.

What engines count for images is compared per backend (`drift`): a cap that several responses agree on counts as that
backend's own unless the operator told one, and a model whose counts deviate without such a reason is not believed.
What was learnt so is forgotten when the backend has been away.

SGLang counts some families otherwise than vLLM does and hardly ever less, so one such backend makes a group count so.

Backends of one model may be started with different pixel caps. A plan is made before a backend is chosen, so it uses
the *largest* effective cap of the group: no backend gets less than it would have looked at, the others shrink the rest
themselves, and the estimate is an upper bound for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gateway.models.catalog import Catalog, CatalogMatch, ModelOverride
from gateway.models.checkpoint import Checkpoint
from gateway.models.clips import USUAL_SERVING, FrameServing
from gateway.models.cost import encoder_flops, prefill_flops
from gateway.models.drift import ENOUGH, Finding, Ledger, Observation, counted
from gateway.models.families import family_of
from gateway.models.families.nemotron3_nano_omni import NEMOTRON3_NANO_OMNI, RESERVED_TOKENS
from gateway.models.family import Family
from gateway.models.hub.describe import ModelFiles
from gateway.models.pace import Pace
from gateway.models.text import RatioLearner, TextEstimate
from gateway.models.tiling import TileEngine
from gateway.types import BackendName, BackendView, EngineKind, Size

# How many served names are remembered; names come from backends, so this is only a bound on a bound.
_REMEMBERED = 1024
# A ratio learnt from this many answers moves slowly, and looks at one answer in so many from then on.
_SAMPLED_AFTER = 256
_SAMPLE_EVERY = 16


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One served name as all its backends together serve it. ``context_tokens`` None = nobody said."""

    name: str
    match: CatalogMatch
    family: Family
    checkpoint: Checkpoint
    context_tokens: int | None
    serves_images: bool
    is_trusted: bool = True
    frames: FrameServing = USUAL_SERVING

    @property
    def is_exact(self) -> bool:
        """Whether image counts are the engine's own rather than upper estimates or disproved ones."""
        return self.match.known and self.is_trusted


@dataclass(frozen=True, slots=True)
class ImageVerdict:
    """What one response showed: the count that its backend should have come to, and what is new about it."""

    expected_tokens: int
    finding: Finding | None
    learnt_max_pixels: int | None


@dataclass(frozen=True, slots=True)
class Computed:
    """What an engine had to compute before a first token: its prompt less a cached prefix, and images by patches."""

    prompt_tokens: int
    cached_tokens: int
    patches: tuple[int, ...]


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_NOTHING_SEEN = Ledger()
_SEED_PACE = Pace()


class ModelBook:
    """Look-ups are kept per (name, facts of its backends); learning is per served name."""

    def __init__(
        self,
        catalog: Catalog,
        overrides: Mapping[str, ModelOverride] | None = None,
        files: Mapping[str, ModelFiles] | None = None,
    ) -> None:
        """``files`` are the configuration files of served models, where the operator named a folder."""
        self._catalog = catalog
        self._overrides = dict(overrides or {})
        self._files = dict(files or {})
        self._served: dict[tuple[object, ...], ServedModel] = {}
        self._learners: dict[str, RatioLearner] = {}
        self._ledgers: dict[tuple[str, BackendName], Ledger] = {}
        self._returns: dict[BackendName, int] = {}
        self._answers = 0
        self._paces: dict[tuple[str, BackendName], Pace] = {}
        self._text_faults: dict[str, int] = {}

    def serve(self, name: str, views: Iterable[BackendView]) -> ServedModel:
        """The model ``name`` on those of ``views`` that serve it (a backend that lists no models serves any)."""
        serving = [view for view in views if not view.models or name in view.models]
        key = (
            name,
            *[
                (
                    view.name,
                    view.engine,
                    view.max_pixels,
                    view.context_tokens,
                    view.model_root,
                    view.vision,
                    view.returns,
                )
                for view in serving
            ],
        )
        found = self._served.get(key)
        if found is None:
            _make_room(self._served)
            found = self._served[key] = self._make(name, serving)
        return found

    def _make(self, name: str, serving: Sequence[BackendView]) -> ServedModel:
        for view in serving:
            self._forget_earlier(view)
        caps = {self.cap_on(name, view) for view in serving}
        contexts = {view.context_tokens for view in serving}
        root = next((view.model_root for view in serving if view.model_root is not None), None)
        vision = any(view.vision for view in serving)
        override = self._overrides.get(name)
        if (files := self._files.get(name)) is not None:
            match = self._catalog.find_described(name, files, override=override)
        else:
            match = self._catalog.find(name, root=root, override=override)
        checkpoint = match.checkpoint
        if any(view.engine is EngineKind.SGLANG for view in serving):
            checkpoint = checkpoint.counted_by(TileEngine.SGLANG)
        known_caps = [cap for cap in caps if cap is not None]
        if known_caps and None not in caps:
            checkpoint = checkpoint.with_(max_pixels=max(known_caps))
        context: int | None
        if override is not None and override.context_tokens is not None:
            context = override.context_tokens
        elif contexts and None not in contexts:
            context = max(tokens for tokens in contexts if tokens is not None)
        else:
            context = None
        trusted = all(self._ledger(name, view).is_trusted for view in serving)
        frames = USUAL_SERVING if override is None or override.frames is None else override.frames
        return ServedModel(name, match, family_of(checkpoint.family), checkpoint, context, vision, trusted, frames)

    def _forget_earlier(self, view: BackendView) -> None:
        """A backend that was away may have been started with another cap, or mended."""
        if self._returns.get(view.name, 0) < view.returns:
            self._returns[view.name] = view.returns
            for key in [key for key in self._ledgers if key[1] == view.name]:
                del self._ledgers[key]

    def cap_on(self, name: str, view: BackendView) -> int | None:
        """The pixel cap of one backend for one model: told or discovered, else learnt; ``None`` = the shipped one."""
        return self._ledger(name, view).learnt_max_pixels if view.max_pixels is None else view.max_pixels

    def learn_images(
        self, served: ServedModel, view: BackendView, sizes: Sequence[Size], actual_tokens: int
    ) -> ImageVerdict:
        """Compare what an engine counted for the rasters it was given with what this backend should have."""
        cap = self.cap_on(served.name, view)
        is_sglang = view.engine is EngineKind.SGLANG
        checkpoint = served.match.checkpoint.counted_by(TileEngine.SGLANG if is_sglang else TileEngine.PROCESSOR)
        family = family_of(checkpoint.family)
        if served.checkpoint.image_budget_tokens is not None:
            checkpoint = replace(checkpoint, image_budget_tokens=served.checkpoint.image_budget_tokens)
        if cap is not None:
            checkpoint = checkpoint.with_(max_pixels=cap)
        expected = counted(sizes, family, checkpoint)
        ledger = self._ledgers.get((served.name, view.name))
        if ledger is None:
            if expected == actual_tokens:
                return ImageVerdict(expected, None, None)  # nothing to remember of those that agree
            _make_room(self._ledgers)
            self._ledgers[served.name, view.name] = ledger = Ledger()
        override = self._overrides.get(served.name)
        is_told = view.max_pixels is not None or (override is not None and override.max_pixels is not None)
        seen = Observation(tuple(sizes), actual_tokens)
        finding = ledger.take(seen, family, checkpoint, may_learn=served.match.known and not is_told)
        if finding is not None:
            self._served.clear()
        return ImageVerdict(expected, finding, ledger.learnt_max_pixels)

    def trusts_text(self, served: ServedModel) -> bool:
        """Whether counts by a configured tokenizer are believed: until a few in a row were not the engine's."""
        return self._text_faults.get(served.name, 0) < ENOUGH

    def learn_exact(self, served: ServedModel, *, agrees: bool) -> None:
        """Take in whether a prompt that its tokenizer counted was the engine's count, images aside."""
        if agrees:
            self._text_faults.pop(served.name, None)
        else:
            self._text_faults[served.name] = self._text_faults.get(served.name, 0) + 1

    def pace_on(self, served: ServedModel, backend: BackendName) -> Pace:
        """How fast a backend computes this model, as far as is known."""
        return self._paces.get((served.name, backend), _SEED_PACE)

    def learn_pace(self, served: ServedModel, backend: BackendName, computed: Computed, first_token_s: float) -> None:
        """Take in how long a first token took; of a model whose compute is not known nothing is learnt."""
        decoder, encoder = served.checkpoint.decoder, served.checkpoint.encoder
        if decoder is None or (computed.patches and encoder is None):
            return
        cached = min(max(computed.cached_tokens, 0), computed.prompt_tokens)
        prefill = prefill_flops(decoder, computed.prompt_tokens, cached_tokens=cached)
        encode = 0 if encoder is None else sum(encoder_flops(encoder, patches) for patches in computed.patches)
        pace = self.pace_on(served, backend)
        _make_room(self._paces)
        self._paces[served.name, backend] = pace.update(prefill, encode, first_token_s)

    def surplus_tokens(self, served: ServedModel, image_tokens: int) -> int:
        """What to reserve above the predicted image tokens of a model that is not believed."""
        if served.is_trusted:
            return 0
        ledgers = [ledger for (name, _), ledger in self._ledgers.items() if name == served.name]
        return max((ledger.surplus_tokens(image_tokens) for ledger in ledgers), default=0)

    def learnt_caps(self, name: str) -> Mapping[str, int]:
        """Caps that were learnt, by backend."""
        return {
            backend: ledger.learnt_max_pixels
            for (model, backend), ledger in self._ledgers.items()
            if model == name and ledger.learnt_max_pixels is not None
        }

    def _ledger(self, name: str, view: BackendView) -> Ledger:
        return self._ledgers.get((name, view.name), _NOTHING_SEEN)

    def beside_text(self, served: ServedModel, byte_count: int, message_count: int) -> ServedModel:
        """The model for one request: in one family the images share what its text leaves of the context."""
        if served.family is not NEMOTRON3_NANO_OMNI or served.context_tokens is None:
            return served
        text = self.estimate_text(served, byte_count, message_count).expected
        left = max(1, served.context_tokens - text - RESERVED_TOKENS)
        return replace(served, checkpoint=replace(served.checkpoint, image_budget_tokens=left))

    def estimate_text(self, served: ServedModel, byte_count: int, message_count: int) -> TextEstimate:
        """Tokens of the prompt's text with the template's own, by the ratio learnt for this model so far.

        Without messages there is no template.
        """
        if not message_count:
            return self._learner(served).estimate(byte_count)
        overhead = served.checkpoint.template.overhead_tokens(message_count)
        least = served.checkpoint.template.overhead_tokens(message_count, has_system=True)
        text = self._learner(served).estimate(byte_count)
        return TextEstimate(text.expected + overhead, text.lower_bound + least, text.upper_bound + overhead)

    def learn_text(self, served: ServedModel, byte_count: int, message_count: int, prompt_text_tokens: int) -> None:
        """Take in what an engine counted for a prompt's text (images and their wrappers taken off)."""
        learner = self._learner(served)
        if learner.samples >= _SAMPLED_AFTER:
            self._answers += 1
            if self._answers % _SAMPLE_EVERY:
                return
        overhead = served.checkpoint.template.overhead_tokens(message_count)
        if prompt_text_tokens > overhead:
            self._learners[served.name] = learner.update(byte_count, prompt_text_tokens - overhead)

    def _learner(self, served: ServedModel) -> RatioLearner:
        found = self._learners.get(served.name)
        if found is None:
            found = self._learners[served.name] = RatioLearner(served.checkpoint.bytes_per_text_token)
        return found


def _make_room(kept: dict[_Key, _Value]) -> None:
    """Where a backend serves any name, clients choose the names: what is learnt of them must not grow for ever."""
    if len(kept) >= _REMEMBERED:
        kept.clear()
