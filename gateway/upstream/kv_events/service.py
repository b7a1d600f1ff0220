"""What backends hold, by their own word: the answer that routing prefers while it is fresh.

Decided here: which publishers are followed, which backends answer for a prompt, how much is looked up on the loop. Not
decided here: where publishers are (discovery), what is done where nobody answers (the approximate index, by itself).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gateway.routing.blocks.index import BlockIndex
from gateway.routing.holding import RouteKey
from gateway.types import BackendName, EngineKind, KvEventSource
from gateway.upstream.kv_events.feed import Feed
from gateway.upstream.kv_events.settings import KvEventsSettings

if TYPE_CHECKING:
    from gateway.upstream.kv_events.follower import Follower, Line

_LOOK_S = 0.5
# What a look-up may take of the loop: a block is hashed and looked for in some microseconds.
_ON_LOOP_BLOCKS = 256


class KvEventsMissing(ValueError):
    """KV events are asked for and the library that receives them is not installed."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A backend whose events are to be followed. ``hash_seed``: reproduce its own ``sha256_cbor`` with this seed."""

    name: BackendName
    engine: EngineKind
    sources: tuple[KvEventSource, ...]
    hash_seed: str | None = None


@dataclass(frozen=True, slots=True)
class FollowedFacts:
    """Counts of all publishers of one backend together; ``fresh`` says that all of them are."""

    backend: BackendName
    fresh: bool
    whole: bool
    blocks: int
    byte_count: int
    events: int
    ignored: int
    gaps: int
    replays: int
    failed_replays: int
    restarts: int


class KvEvents:
    """``routing.holding.ExactPrefixes`` for all backends that publish; a task follows whom ``backends`` names."""

    def __init__(self, settings: KvEventsSettings, backends: Callable[[], Iterable[Followed]]) -> None:
        """Raises KvEventsMissing."""
        if find_spec("zmq") is None:
            raise KvEventsMissing(
                "upstream.kv_events: pyzmq is not installed; run: pip install 'vlm-gateway[kv-events]'"
            )
        self._settings = settings
        self._backends = backends
        self._followed: dict[Followed, list[Line]] = {}
        self._by_name: dict[BackendName, tuple[Followed, list[Line]]] = {}
        self._follower: Follower | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow. Raises ValueError for an address that cannot be listened on."""
        from gateway.upstream.kv_events.follower import Follower  # noqa: PLC0415  # an optional extra

        self._follower = Follower(self._settings.listen, self._settings.replay_deadline_s)
        self._follower.start()
        self.look()
        self._task = asyncio.create_task(self._keep_looking(), name="kv events")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._follower is not None:
            await asyncio.to_thread(self._follower.stop)

    @property
    def bound(self) -> str | None:
        """Where publishers that connect to us are awaited."""
        return None if self._follower is None else self._follower.bound

    # --- who is followed -------------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self.look()

    def look(self) -> None:
        """Follow whoever is to be followed now, and nobody else."""
        wanted = {each for each in self._backends() if each.sources}
        if wanted == self._followed.keys() or self._follower is None:
            return
        for gone in self._followed.keys() - wanted:
            self._follower.leave(self._followed.pop(gone))
        for new in wanted - self._followed.keys():
            self._followed[new] = lines = _lines(new, self._settings.max_blocks)
            self._follower.join(lines)
        self._by_name = {each.name: (each, lines) for each, lines in self._followed.items()}

    # --- what routing asks -----------------------------------------------------------------------------------------

    def prefix_tokens(self, key: RouteKey) -> Mapping[BackendName, int]:
        """Tokens of the longest prefix held, for every backend whose state is fresh now.

        One that lost the beginning of its publisher's story is asked too, but not believed when it knows nothing.
        """
        prompt = key.prompt
        if prompt is None:
            return {}
        if prompt.answers is not None:
            return prompt.answers
        held: dict[BackendName, int] = {}
        for name, (followed, lines) in self._by_name.items():
            if not all(line.feed.fresh for line in lines):
                continue
            indexes = [line.feed.index for line in lines]
            tokens = prompt.held_tokens(indexes, followed.hash_seed, pads=followed.engine is EngineKind.SGLANG)
            if tokens or (tokens == 0 and all(line.feed.whole for line in lines)):
                held[name] = tokens
        return held

    async def look_ahead(self, key: RouteKey) -> None:
        """Have a long prompt looked up where that holds up nobody; ``prefix_tokens`` then has the answer."""
        prompt = key.prompt
        if prompt is None or not self._by_name:
            return
        sizes = [line.feed.index.block_tokens for _, lines in self._by_name.values() for line in lines]
        blocks = sum(len(prompt.prompt.token_ids) // size for size in sizes if size is not None)
        if blocks > _ON_LOOP_BLOCKS:
            prompt.answers = await asyncio.to_thread(self.prefix_tokens, key)

    def forget(self, backend: BackendName) -> None:
        """It restarted, or went away: its publishers have to prove that they are who they were."""
        if self._follower is not None and backend in self._by_name:
            self._follower.doubt(self._by_name[backend][1])

    # --- what metrics show -----------------------------------------------------------------------------------------

    @property
    def strangers(self) -> int:
        """Messages of nobody who is followed."""
        return 0 if self._follower is None else self._follower.strangers

    def facts(self) -> Sequence[FollowedFacts]:
        """By backend. From any thread."""
        return [_facts(name, [line.feed for line in lines]) for name, (_, lines) in list(self._by_name.items())]


def _facts(name: BackendName, feeds: Sequence[Feed]) -> FollowedFacts:
    total: Counter[str] = Counter()
    for feed in feeds:
        for count in ("events", "ignored", "gaps", "replays", "failed_replays", "restarts"):
            total[count] += getattr(feed, count)
    return FollowedFacts(
        name,
        all(feed.fresh for feed in feeds),
        all(feed.whole for feed in feeds),
        sum(feed.index.entries for feed in feeds),
        sum(feed.index.byte_count for feed in feeds),
        total["events"],
        total["ignored"],
        total["gaps"],
        total["replays"],
        total["failed_replays"],
        total["restarts"],
    )


def _lines(followed: Followed, max_blocks: int) -> list[Line]:
    from gateway.upstream.kv_events.follower import Line  # noqa: PLC0415  # an optional extra

    engine_names = followed.hash_seed is not None
    made = []
    for source in followed.sources:
        index = BlockIndex(max_blocks // len(followed.sources), engine_names=engine_names)
        feed = Feed(index, with_tokens=not engine_names, can_replay=source.replay_endpoint is not None)
        endpoint = source.endpoint if source.listens else None
        made.append(Line(feed, endpoint, source.replay_endpoint, source.topic.encode(), source.rank))
    return made
