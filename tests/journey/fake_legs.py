"""Helpers as fakes: what they answer is scripted, and every call suspends once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gateway.handoff import Encoding
from gateway.legwork import HelperFailed, LegAnswer, LegEnd
from gateway.ports import UpstreamRequest
from gateway.types import BackendName, BackendRole, BackendView
from tests.journey.driver import suspend
from tests.journey.fakes import FakeResponse, FakeUpstream

GRID = {"image_grid_thw": [1, 30, 40]}


def encoded(request: UpstreamRequest) -> bytes:
    """What an encoder answers to a leg: every id of its body with a grid."""
    document = json.loads(b"".join(bytes(chunk) for chunk in request.body))
    ids = [part["uuid"] for message in document["messages"] for part in message["content"]]
    return json.dumps({"ec_transfer_params": {each: {"item_indices": [0], "metadata": GRID} for each in ids}}).encode()


class FakeLegs:
    """``ends`` are taken one by one by the legs; once they are used up every leg is done."""

    def __init__(self, upstream: FakeUpstream, views: Sequence[BackendView], ends: Sequence[LegEnd] = ()) -> None:
        self._upstream = upstream
        self._views = views
        self._ends = list(ends)
        self.written: set[str] = set()
        self.known: dict[str, Encoding] = {}
        self.asked: list[tuple[BackendName, bytes]] = []

    def helpers(self, role: BackendRole) -> Sequence[BackendView]:
        return [view for view in self._views if view.role is role]

    async def ask_each(self, calls: Sequence[tuple[BackendName, UpstreamRequest]]) -> Sequence[LegAnswer]:
        await suspend("legs.ask_each")
        return [self._answer(backend, request) for backend, request in calls]

    def _answer(self, backend: BackendName, request: UpstreamRequest) -> LegAnswer:
        body = b"".join(bytes(chunk) for chunk in request.body)
        self.asked.append((backend, body))
        end = self._ends.pop(0) if self._ends else LegEnd.DONE
        if end is not LegEnd.DONE:
            return LegAnswer(end)
        if b"kv_transfer_params" in body:
            return LegAnswer(end, b'{"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":[1,2]}}')
        return LegAnswer(end, encoded(request))

    async def forward_beside(
        self, helper: BackendName, first: UpstreamRequest, backend: BackendName, request: UpstreamRequest
    ) -> FakeResponse:
        self.asked.append((helper, b"".join(bytes(chunk) for chunk in first.body)))
        end = self._ends.pop(0) if self._ends else LegEnd.DONE
        if end is not LegEnd.DONE:
            await suspend("legs.forward_beside")
            raise HelperFailed(end)
        return await self._upstream.forward(backend, request)

    def new_room(self) -> int:
        return 7

    def recall(self, key: str) -> Encoding | None:
        return self.known.get(key)

    def is_written(self, key: str) -> bool:
        return key in self.written

    def keep(self, encoding: Encoding, encoder: BackendView) -> None:
        self.known[encoding.key] = encoding
