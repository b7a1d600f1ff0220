"""Every port of the journey as a fake: each call suspends exactly once, and whatever it hands out is on the books."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.errors import GatewayError, NotTaken
from gateway.legwork import Legs
from gateway.ports import (
    Body,
    Client,
    Looked,
    MediaScope,
    PreparedResult,
    PrepareJob,
    SourceRef,
    UpstreamRequest,
)
from gateway.record import ExchangeRecord, RequestHead
from gateway.routing.holding import Holding, Holdings, RouteKey
from gateway.routing.kept_responses import KeptResponses
from gateway.routing.sent_ids import SentIds
from gateway.splice.skeleton import OFF_LOOP, Skeleton, cut
from gateway.stages.exchange import Ports
from gateway.types import (
    BackendName,
    BackendView,
    ContentDigest,
    EngineKind,
    HeaderList,
    ImageFormat,
    ImagePlan,
    PlacementDigest,
    Prepared,
    Probe,
    RequestCost,
    RequestId,
    Size,
    SourceFacts,
)
from tests.journey.books import Books, Held
from tests.journey.driver import aside, suspend
from tests.journey.fake_budgets import FakeBudgets
from tests.journey.fake_clips import FakeClips

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
STREAM_TYPE = ("Content-Type", "text/event-stream")


class FakeClock:
    """Every look at the clock costs a millisecond."""

    def __init__(self) -> None:
        self._now_s = 100.0

    def now_s(self) -> float:
        self._now_s += 0.001
        return self._now_s


class FakeBody:
    def __init__(self, data: bytes, entry: Held) -> None:
        self._data = data
        self._entry = entry

    @property
    def buffer(self) -> bytes:
        assert self._entry.ending is None, "the body is used after it was closed"
        return self._data

    @property
    def start(self) -> int:
        return 0

    @property
    def stop(self) -> int:
        return len(self._data)

    def view(self, start: int, stop: int) -> memoryview:
        return memoryview(self.buffer)[start:stop]

    def close(self) -> None:
        self._entry.end("closed")


class FakeClient:
    """``left`` once a call of ours met a broken connection. ``beats`` = the first comment goes out at once."""

    def __init__(self, books: Books, head: RequestHead, body: bytes, *, beats: bool = False) -> None:
        self._books = books
        self._head = head
        self._body = body
        self._beats = beats
        self._pieces = [body[:7], body[7:]] if len(body) > 7 else [body]
        self.started = False
        self.left = False
        self.keep_alive_s: float | None = None
        self.status: int | None = None
        self.headers: HeaderList = ()
        self.content_length: int | None = None
        self.written = b""
        self.finished = 0
        self.refusals: list[GatewayError] = []

    @property
    def head(self) -> RequestHead:
        return self._head

    async def _wait(self, label: str) -> None:
        try:
            await suspend(label)
        except ConnectionError:
            self.left = True
            raise

    async def read(self, limit_bytes: int) -> Body:
        await self._wait("client.read")
        return FakeBody(self._body, self._books.hand_out("body"))

    async def chunk(self) -> bytes:
        await self._wait("client.chunk")
        return self._pieces.pop(0) if self._pieces else b""

    def keep_alive(self, every_s: float) -> None:
        self.keep_alive_s = every_s
        self.started = self.started or self._beats

    async def start(self, status: int, headers: HeaderList, content_length: int | None) -> None:
        if not self.started:
            self.started, self.status, self.headers, self.content_length = True, status, headers, content_length
        await self._wait("client.start")

    async def write(self, chunk: bytes) -> None:
        assert self.started
        await self._wait("client.write")
        self.written += chunk

    async def finish(self) -> None:
        await self._wait("client.finish")
        self.finished += 1

    async def refuse(self, error: GatewayError) -> None:
        self.refusals.append(error)
        self.started = True
        await self._wait("client.refuse")


SQUARE = Size(448, 448)


def facts(size: Size = SQUARE, *, canonical: bool = True, number: int = 0) -> SourceFacts:
    return SourceFacts(
        byte_count=1000 + number,
        placement=PlacementDigest(bytes([number]) * 16),
        content=ContentDigest(bytes([number]) * 32),
        probe=Probe(ImageFormat.JPEG, size),
        canonical=canonical,
    )


class FakeLooked:
    def __init__(self, found: Sequence[SourceFacts], entry: Held) -> None:
        self.facts = found
        self._entry = entry

    def drop_files(self) -> None:
        assert self._entry.ending is None

    def close(self) -> None:
        self._entry.end("closed")


class FakeMedia:
    plan_version = "test-1"

    def __init__(self, books: Books, found: Sequence[SourceFacts]) -> None:
        self._books = books
        self._facts = found
        self.scopes: list[MediaScope] = []
        self.jobs: list[PrepareJob] = []

    async def look(self, body: Body, sources: Sequence[SourceRef], scope: MediaScope) -> Looked:
        await suspend("media.look")
        self.scopes.append(scope)
        return FakeLooked(self._facts[: len(sources)], self._books.hand_out("looked"))

    async def prepare(
        self, body: Body, looked: Looked, jobs: Sequence[PrepareJob], scope: MediaScope
    ) -> Sequence[PreparedResult]:
        await suspend("media.prepare")
        self.jobs += jobs
        return [
            PreparedResult(Prepared(b"data:image/jpeg;base64,QUJD", job.plan.target, ImageFormat.JPEG, 3), index == 0)
            for index, job in enumerate(jobs)
        ]

    def peek(self, scope: MediaScope, facts: SourceFacts, plan: ImagePlan) -> bool:
        return False


class FakeAccount:
    def __init__(self, entry: Held) -> None:
        self._entry = entry
        self.has_answered = False

    def answered(self) -> None:
        self.has_answered = True

    def close(self) -> None:
        self._entry.end("closed")


class FakeResponse:
    def __init__(self, entry: Held, status: int, headers: HeaderList, pieces: Sequence[bytes]) -> None:
        self._entry = entry
        self.status = status
        self.headers = headers
        self.content_length: int | None = None if STREAM_TYPE in headers else sum(map(len, pieces))
        self._pieces = list(pieces)

    async def chunk(self) -> bytes:
        await suspend("response.chunk")
        return self._pieces.pop(0) if self._pieces else b""

    def close(self) -> None:
        self._entry.end("closed")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a backend answers; with ``refusal`` it certainly did not take the request."""

    status: int = 200
    headers: HeaderList = (("Content-Type", "application/json"),)
    pieces: tuple[bytes, ...] = ()
    refusal: str | None = None
    has_response: bool = True


class FakeUpstream:
    def __init__(self, books: Books, views: Sequence[BackendView], answers: Sequence[Answer], retries: int) -> None:
        self._books = books
        self._views = views
        self._answers = list(answers)
        self._retries = retries
        self.sent: list[tuple[BackendName, UpstreamRequest, bytes]] = []
        self.accounts: list[tuple[BackendName, RequestCost, FakeAccount]] = []
        self.learnt: list[tuple[BackendName, tuple[bytes, ...]]] = []
        self.corrected: list[tuple[BackendName, Holding, int]] = []
        self.held: Holdings = {}
        self.paces: list[tuple[BackendName, int, int, float]] = []
        self.keys: list[RouteKey] = []
        self.looked_ahead: list[RouteKey] = []

    def views(self) -> Sequence[BackendView]:
        return self._views

    def open_account(self, backend: BackendName, cost: RequestCost) -> FakeAccount:
        account = FakeAccount(self._books.hand_out("account"))
        self.accounts.append((backend, cost, account))
        return account

    async def forward(self, backend: BackendName, request: UpstreamRequest) -> FakeResponse:
        await suspend("upstream.forward")
        self.sent.append((backend, request, b"".join(bytes(chunk) for chunk in request.body)))
        return self._answer()

    async def stream(
        self, backend: BackendName, request: UpstreamRequest, client: Client, limit_bytes: int
    ) -> FakeResponse:
        await suspend("upstream.stream")
        received = b""
        if self._answers[0].refusal is None:
            while chunk := await client.chunk():
                received += chunk
        self.sent.append((backend, request, received))
        return self._answer()

    def _answer(self) -> FakeResponse:
        answer = self._answers.pop(0)
        if answer.refusal is not None and not answer.has_response:
            raise NotTaken(answer.refusal, "scripted")
        response = FakeResponse(self._books.hand_out("response"), answer.status, answer.headers, answer.pieces)
        if answer.refusal is not None:
            raise NotTaken(answer.refusal, "scripted", response)
        return response

    def may_retry(self, reason: str = "") -> bool:
        self._retries -= 1
        return self._retries >= 0

    async def look_ahead(self, key: RouteKey) -> None:
        self.looked_ahead.append(key)

    def holdings(self, key: RouteKey) -> Holdings:
        return self.held

    def learn(self, backend: BackendName, key: RouteKey) -> None:
        self.learnt.append((backend, key.images))
        self.keys.append(key)

    def learn_pace(self, backend: BackendName, tokens: int, patches: int, first_token_s: float) -> None:
        self.paces.append((backend, tokens, patches, first_token_s))

    def correct(self, backend: BackendName, believed: Holding, cached_tokens: int) -> None:
        self.corrected.append((backend, believed, cached_tokens))


class AllHeld(SentIds):
    """Believes that every backend holds whatever has an id."""

    def held(self, backend: BackendName, returns: int, ids: Sequence[str]) -> frozenset[int]:
        return frozenset(place for place, image_id in enumerate(ids) if image_id)


class FakeRecorder:
    def __init__(self) -> None:
        self.records: list[ExchangeRecord] = []

    def record(self, exchange: ExchangeRecord) -> None:
        self.records.append(exchange)


async def cut_elsewhere(body: Body) -> Skeleton:
    await suspend("cut_elsewhere")
    return cut(body.buffer, body.start, body.stop, OFF_LOOP)


def view(name: str, **changes: object) -> BackendView:
    base: dict[str, object] = {
        "url": f"http://{name}:8000", "engine": EngineKind.VLLM, "models": (MODEL,), "model_root": MODEL,
        "context_tokens": 32768,
    }  # fmt: skip
    return BackendView(BackendName(name), **(base | changes))  # type: ignore[arg-type]


def head(*headers: tuple[str, str], length: int | None = None, path: str = "/v1/chat/completions") -> RequestHead:
    return RequestHead("POST", path, "", headers, length, RequestId("request-1"))


@dataclass(slots=True)
class Scene:
    """All fakes of one exchange."""

    books: Books
    client: FakeClient
    media: FakeMedia
    clips: FakeClips
    budgets: FakeBudgets
    upstream: FakeUpstream
    recorder: FakeRecorder
    sent_ids: SentIds = field(default_factory=SentIds)
    legs: Legs | None = None
    responses: KeptResponses = field(default_factory=KeptResponses)

    @property
    def ports(self) -> Ports:
        return Ports(
            FakeClock(), self.media, self.clips, self.budgets, self.upstream, self.recorder, cut_elsewhere, aside,
            self.sent_ids, legs=self.legs, responses=self.responses,
        )  # fmt: skip

    @property
    def record(self) -> ExchangeRecord:
        (only,) = self.recorder.records
        return only
