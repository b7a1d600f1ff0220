"""Legs to helpers as the shell sends them (``legwork.Legs``): several at once, each with a time limit of its own.

Decided here: what cancellation ends (everything it began, at once) and how a pair of requests depends on each other.
Not decided here: which helper is asked and for what (``gateway.stages.legs``).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress

from gateway.errors import BackendFailed, NotTaken
from gateway.handoff import Encoding
from gateway.legwork import HelperFailed, LegAnswer, LegEnd
from gateway.ports import Clock, UpstreamRequest, UpstreamResponse
from gateway.types import BackendName, BackendRole, BackendView, HeaderList
from gateway.upstream.encodings import Encodings, Writer
from gateway.upstream.service import UpstreamService
from gateway.upstream.settings import UpstreamSettings

# An encoder's answer names a picture in some hundred bytes; a prefill's lists its KV blocks.
_ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
_FAILED = LegAnswer(LegEnd.FAILED)
_REFUSED = LegAnswer(LegEnd.REFUSED)


class LegService:
    """Lives in the loop of ``upstream``, which it sends by. Owns no task beyond a call or its response."""

    def __init__(self, upstream: UpstreamService, settings: UpstreamSettings, clock: Clock) -> None:
        self._upstream = upstream
        self._timeout_s = settings.leg_timeout_s
        self._clock = clock
        self._encodings = Encodings(settings.encodings_kept_s)

    def helpers(self, role: BackendRole) -> Sequence[BackendView]:
        helpers = self._upstream.helpers()
        return [view for view in helpers if view.role is role and view.healthy and not view.draining]

    async def ask_each(self, calls: Sequence[tuple[BackendName, UpstreamRequest]]) -> Sequence[LegAnswer]:
        if len(calls) == 1:
            return [await self._ask(*calls[0])]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(backend, request)) for backend, request in calls]
        return [task.result() for task in tasks]

    async def _ask(self, backend: BackendName, request: UpstreamRequest) -> LegAnswer:
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._upstream.forward(backend, request)
                try:
                    return await _whole(response)
                finally:
                    response.close()
        except NotTaken as refusal:
            _close_refused(refusal)
            return _REFUSED
        except (BackendFailed, TimeoutError):
            return _FAILED

    async def forward_beside(
        self, helper: BackendName, first: UpstreamRequest, backend: BackendName, request: UpstreamRequest
    ) -> UpstreamResponse:
        beside = asyncio.create_task(self._drained(helper, first))
        ahead = asyncio.create_task(self._upstream.forward(backend, request))
        try:
            await asyncio.wait((beside, ahead), return_when=asyncio.FIRST_COMPLETED)
            if not ahead.done() and (end := await beside) is not LegEnd.DONE:
                raise HelperFailed(end)
            return PairedResponse(await ahead, beside)
        except BaseException:
            await _withdrawn(beside, ahead)
            raise

    async def _drained(self, backend: BackendName, request: UpstreamRequest) -> LegEnd:
        """Read what nobody wants, so that the engine need not keep it."""
        try:
            response = await self._upstream.forward(backend, request)
            try:
                while await response.chunk():
                    pass
            finally:
                response.close()
        except NotTaken as refusal:
            _close_refused(refusal)
            return LegEnd.REFUSED
        except BackendFailed:
            return LegEnd.FAILED
        return LegEnd.DONE if response.status < 400 else LegEnd.FAILED

    def new_room(self) -> int:
        return secrets.randbits(63)

    def recall(self, key: str) -> Encoding | None:
        return self._encodings.recall(key)

    def is_written(self, key: str) -> bool:
        writer = self._encodings.writer(key, self._clock.now_s())
        return writer is not None and any(
            view.name == writer.name and view.returns == writer.returns and view.healthy
            for view in self._upstream.helpers()
        )

    def keep(self, encoding: Encoding, encoder: BackendView) -> None:
        self._encodings.keep(encoding, Writer(encoder.name, encoder.returns), self._clock.now_s())


def legs_of(upstream: UpstreamService, settings: UpstreamSettings, clock: Clock) -> LegService | None:
    """``None`` where no backend has a role of its own and none can come, so that requests need not ask."""
    if not settings.sources and all(backend.role is BackendRole.FULL for backend in settings.backends):
        return None
    return LegService(upstream, settings, clock)


class PairedResponse:
    """A response that another request's work goes into; whoever closes it ends both."""

    __slots__ = ("_beside", "_response")

    def __init__(self, response: UpstreamResponse, beside: asyncio.Task[LegEnd]) -> None:
        self._response = response
        self._beside = beside

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> HeaderList:
        return self._response.headers

    @property
    def content_length(self) -> int | None:
        return self._response.content_length

    async def chunk(self) -> bytes:
        return await self._response.chunk()

    def close(self) -> None:
        self._response.close()
        self._beside.cancel()


async def _whole(response: UpstreamResponse) -> LegAnswer:
    body = bytearray()
    while chunk := await response.chunk():
        body += chunk
        if len(body) > _ANSWER_LIMIT_BYTES:
            return _FAILED
    return LegAnswer(LegEnd.DONE, bytes(body)) if response.status == 200 else _FAILED


def _close_refused(refusal: NotTaken) -> None:
    close = getattr(refusal.response, "close", None)
    if close is not None:
        close()


async def _withdrawn(beside: asyncio.Task[LegEnd], ahead: asyncio.Task[UpstreamResponse]) -> None:
    """Cancel both and see them end; a response that came all the same is cut."""
    beside.cancel()
    ahead.cancel()
    await asyncio.wait((beside, ahead))
    if not ahead.cancelled():
        with suppress(Exception):
            ahead.result().close()
