"""The port of videos and sounds as a fake, like those in ``fakes``."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.errors import GatewayError
from gateway.ports import Body, ClipJob, ClipRef, ClipScope, LookedClips
from gateway.types import ClipFacts, ClipProbe, Container, ContentDigest, PlacementDigest, PreparedClip, Size
from tests.journey.books import Books, Held
from tests.journey.driver import suspend

VIDEO = Size(320, 240)


def clip_facts(number: int = 0, *, remote: bool = False, flaw: str | None = None) -> ClipFacts:
    """Two seconds at 24 frames a second."""
    probe = ClipProbe(Container.MP4, 2.0, VIDEO, 48, 24.0, "h264") if flaw is None else ClipProbe(Container.OTHER)
    return ClipFacts(
        5000 + number, PlacementDigest(bytes([99, number]) * 8), ContentDigest(bytes([99]) * 32), probe, flaw, remote
    )


class FakeLookedClips:
    def __init__(self, found: Sequence[ClipFacts], entry: Held) -> None:
        self.facts = found
        self._entry = entry

    def close(self) -> None:
        self._entry.end("closed")


class FakeClips:
    """Knows the facts it was given; ``error`` is what a look raises."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.version: str | None = "test-1"
        self.found: list[ClipFacts] = [clip_facts(0), clip_facts(1)]
        self.error: GatewayError | None = None
        self.refs: list[ClipRef] = []
        self.scopes: list[ClipScope] = []
        self.jobs: list[ClipJob] = []

    async def look(self, body: Body, refs: Sequence[ClipRef], scope: ClipScope) -> LookedClips:
        await suspend("clips.look")
        if self.error is not None:
            raise self.error
        self.refs += refs
        self.scopes.append(scope)
        return FakeLookedClips(self.found[: len(refs)], self._books.hand_out("looked clips"))

    async def prepare(
        self, body: Body, looked: LookedClips, jobs: Sequence[ClipJob], scope: ClipScope
    ) -> Sequence[PreparedClip]:
        await suspend("clips.prepare")
        self.jobs += jobs
        return [PreparedClip(b"data:video/jpeg;base64,QUJD", VIDEO, len(job.plan.indices), 3) for job in jobs]
