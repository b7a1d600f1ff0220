"""Bytes once: an image that the chosen backend is believed to hold goes as its id alone, and with bytes if it has not.

Decided here: which images those are, which answers say that the belief was wrong, and the one replay to the same
backend, of which the client sees nothing. Not decided here: what is believed (``routing.sent_ids``), how an id is made
or written (``identities``), where a request goes.

vLLM 0.32.0 refuses an id that it does not know with 400 ``Cache miss for image at index 0 but data is not provided.``;
without a cache, or in a version that takes no ids, the text is another. So whatever 400 or 422 answers a request with
ids alone is asked again with bytes, and the second answer is the client's. Where only the shadow of its cache has an
id, its engine fails with 500 ``Internal server error`` and forgets it. An answer that has begun is never replaced.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from gateway.policy.effective import BytesOnce, EffectivePolicy
from gateway.ports import Upstream, UpstreamRequest, UpstreamResponse
from gateway.record import ExchangeRecord
from gateway.routing.sent_ids import DEFAULT_CAPACITY_BYTES, SentIds
from gateway.stages.identities import Marks
from gateway.types import BackendView, EngineKind, HeaderList, ImagePlan, SourceFacts

# Among the reasons why something was sent again.
CACHE_MISS = "cache_miss"
# What vLLM keeps of a patch of 16 x 16 pixels: two frames of three channels in 32 bits (Qwen's processors; half of it
# where a model runs in 16 bits, so the belief rather forgets too early).
PATCH_BYTES = 16 * 16 * 3 * 2 * 4
_PIXEL_BYTES = 3 * 2 * 4
# At the beginning of the message: elsewhere it may be a client's own words that an engine repeats, and who could feign
# misses would take the belief in a whole cache from everybody. Quotes within a JSON string cannot look like this.
_MISS = re.compile(rb'"message"\s*:\s*"Cache miss for ')
_DRIFT_TEXT = b"Internal server error"
# An error's text is a few hundred bytes; a longer answer is none of those looked for here.
_ERROR_BYTES = 64 * 1024


class Courier:
    """One exchange's images on their way to a backend: which go as ids alone, and what the answer says of that.

    ``ids`` are all that vLLM is told.
    """

    def __init__(
        self,
        belief: SentIds,
        policy: EffectivePolicy,
        ids: tuple[str | None, ...],
        facts: Sequence[SourceFacts],
        plans: Sequence[ImagePlan],
        record: ExchangeRecord,
    ) -> None:
        self._belief = belief
        self._may_withhold = policy.bytes_once is BytesOnce.AUTO
        self.ids = ids
        self._facts = facts
        self._plans = plans
        self._record = record

    def marks(self, view: BackendView) -> Marks:
        """What this backend is told of the images."""
        if not self.ids:
            return Marks(view.engine)
        if not self._may_withhold or not takes_ids_alone(view):
            return Marks(view.engine, self.ids)
        known = [image_id or "" for image_id in self.ids]
        return Marks(view.engine, self.ids, self._belief.held(view.name, view.returns, known))

    async def forward(
        self,
        upstream: Upstream,
        view: BackendView,
        marks: Marks,
        request: UpstreamRequest,
        whole: Callable[[], Awaitable[UpstreamRequest]],
    ) -> UpstreamResponse:
        """Send; and once more with all bytes (``whole``) where ids alone did not do.

        Raises what the Upstream port and ``whole`` raise.
        """
        self._record.image_ids_alone = len(marks.withheld)
        response = await upstream.forward(view.name, request)
        if marks.withheld and response.status in (400, 422, 500):
            head = _Head(response)
            response = head
            try:
                text = await head.read()
                is_refused = response.status != 500 or _DRIFT_TEXT in text
            except BaseException:
                response.close()
                raise
            if is_refused:
                response.close()
                response = await self._again(upstream, view, marks, whole, is_miss=_MISS.search(text) is not None)
                marks = Marks(marks.engine, marks.ids)
        if response.status == 200:
            self._learn(view, marks)
        return response

    async def _again(
        self,
        upstream: Upstream,
        view: BackendView,
        marks: Marks,
        whole: Callable[[], Awaitable[UpstreamRequest]],
        *,
        is_miss: bool,
    ) -> UpstreamResponse:
        self._record.image_ids_alone = 0
        self._record.retry_reasons.append(CACHE_MISS)
        if is_miss:
            self._missed(view, marks)
        request = await whole()
        self._record.attempts += 1
        response = await upstream.forward(view.name, request)
        if not is_miss and response.status == 200:
            self._missed(view, marks)  # so it was the ids that the first answer refused
        return response

    def _missed(self, view: BackendView, marks: Marks) -> None:
        self._record.image_ids_missed = len(marks.withheld)
        withheld = [marks.ids[place] for place in sorted(marks.withheld)]
        self._belief.missed(view.name, view.returns, [image_id for image_id in withheld if image_id is not None])

    def _learn(self, view: BackendView, marks: Marks) -> None:
        if marks.engine is not EngineKind.VLLM or not marks.ids:
            return
        sent = [
            (image_id, weight_bytes(plan))
            for image_id, plan in zip(marks.ids, self._plans, strict=True)
            if image_id is not None
        ]
        self._record.image_ids_sent = len(sent)
        self._record.image_bytes_out -= sum(
            self._facts[place].byte_count for place in marks.withheld if self._plans[place].untouched
        )
        if sent and takes_ids_alone(view):
            capacity = DEFAULT_CAPACITY_BYTES if view.image_cache_bytes is None else view.image_cache_bytes
            self._belief.learn(view.name, view.returns, sent, capacity_bytes=capacity, believed=bool(marks.withheld))


def takes_ids_alone(view: BackendView) -> bool:
    """Whether a backend answers for what it was sent before: one vLLM process with a cache, or whatever is told to."""
    if view.takes_ids is not None:
        return view.takes_ids and view.engine is EngineKind.VLLM
    has_one_cache = view.image_cache_bytes != 0 and view.api_servers in (None, 1)
    return view.engine is EngineKind.VLLM and has_one_cache


def weight_bytes(plan: ImagePlan) -> int:
    """About what an image takes of vLLM's multimodal cache."""
    return max(1, plan.after.vit_patches * PATCH_BYTES or plan.target.pixels * _PIXEL_BYTES)


class _Head:
    """A response whose first bytes were read, and are given again (``ports.UpstreamResponse``)."""

    def __init__(self, response: UpstreamResponse) -> None:
        self._response = response
        self._read: list[bytes] = []

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> HeaderList:
        return self._response.headers

    @property
    def content_length(self) -> int | None:
        return self._response.content_length

    async def read(self) -> bytes:
        """The body, as far as an error's text goes."""
        size = 0
        while size < _ERROR_BYTES and (chunk := await self._response.chunk()):
            self._read.append(chunk)
            size += len(chunk)
        return b"".join(self._read)

    async def chunk(self) -> bytes:
        return self._read.pop(0) if self._read else await self._response.chunk()

    def close(self) -> None:
        self._response.close()
