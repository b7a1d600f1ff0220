"""What backends hold, by their own word: the answer that routing prefers while it is fresh.

Decided here: which backends answer for a prompt, and what is told of it in metrics. Not decided here: what is done
where nobody answers (the approximate index, by itself).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gateway.routing.blocks.index import BlockIndex
from gateway.routing.blocks.lookup import PromptChains
from gateway.types import BackendName, EngineKind
from gateway.upstream.kv_events.feed import Feed
from gateway.upstream.kv_events.settings import KvEventsSettings, PublisherSettings, address_of

if TYPE_CHECKING:
    from gateway.upstream.kv_events.follower import Follower, Line


class KvEventsMissing(ValueError):
    """KV events are configured and the library that receives them is not installed."""


@dataclass(frozen=True, slots=True)
class FollowedBackend:
    """Counts since the start, of all publishers of one backend together; ``fresh`` says that all of them are."""

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
    """Follows the publishers of some backends; knows nothing of the others."""

    def __init__(self, settings: KvEventsSettings, hosts: Mapping[BackendName, str]) -> None:
        """Raises KvEventsMissing, and ValueError for an address that cannot be used."""
        if find_spec("zmq") is None:
            raise KvEventsMissing(
                "backends.kv_events: pyzmq is not installed; run: pip install 'vlm-gateway[kv-events]'"
            )
        self._settings = settings
        self._lines: list[Line] = [
            line for name, publisher in settings.publishers.items() for line in _lines(name, publisher, hosts[name])
        ]
        self._feeds: dict[BackendName, list[Feed]] = {}
        for line in self._lines:
            self._feeds.setdefault(line.backend, []).append(line.feed)
        self._follower: Follower | None = None

    def start(self) -> None:
        """Begin to follow. Raises ValueError for an address that cannot be used."""
        from gateway.upstream.kv_events.follower import Follower  # noqa: PLC0415  # an optional extra

        self._follower = Follower(self._lines, self._settings.listen, self._settings.replay_deadline_s)
        self._follower.start()

    def stop(self) -> None:
        """Returns once the thread ended; it is never far from its next look around."""
        if self._follower is not None:
            self._follower.stop()

    @property
    def bound(self) -> str | None:
        """Where publishers that connect to us are awaited."""
        return None if self._follower is None else self._follower.bound

    def held_tokens(self, chains: PromptChains, engines: Mapping[BackendName, EngineKind]) -> dict[BackendName, int]:
        """Tokens of the longest prefix held by every backend that can tell now.

        One that lost the beginning of its publisher's story is asked too, but not believed when it knows nothing.
        """
        held: dict[BackendName, int] = {}
        for name, feeds in self._feeds.items():
            engine = engines.get(name)
            if engine is None or not all(feed.fresh for feed in feeds):
                continue
            seed = self._settings.publishers[name].hash_seed
            indexes = [feed.index for feed in feeds]
            tokens = chains.held_tokens(indexes, seed, pads=engine is EngineKind.SGLANG)
            if tokens or all(feed.whole for feed in feeds):
                held[name] = tokens
        return held

    def doubt(self, backend: BackendName) -> None:
        """The backend restarted, or went away: nothing of it is believed until its publishers said so anew."""
        if self._follower is not None and backend in self._feeds:
            self._follower.doubt(backend)

    @property
    def strangers(self) -> int:
        """Messages of nobody whom the configuration knows."""
        return 0 if self._follower is None else self._follower.strangers

    def facts(self) -> Sequence[FollowedBackend]:
        """What the metrics show. From any thread."""
        return [
            FollowedBackend(
                name,
                fresh=all(feed.fresh for feed in feeds),
                whole=all(feed.whole for feed in feeds),
                blocks=sum(feed.index.entries for feed in feeds),
                byte_count=sum(feed.index.byte_count for feed in feeds),
                events=sum(feed.events for feed in feeds),
                ignored=sum(feed.ignored for feed in feeds),
                gaps=sum(feed.gaps for feed in feeds),
                replays=sum(feed.replays for feed in feeds),
                failed_replays=sum(feed.failed_replays for feed in feeds),
                restarts=sum(feed.restarts for feed in feeds),
            )
            for name, feeds in self._feeds.items()
        ]


def _lines(name: BackendName, publisher: PublisherSettings, host: str) -> list[Line]:
    from gateway.upstream.kv_events.follower import Line  # noqa: PLC0415  # an optional extra

    made = []
    for rank in range(publisher.ranks):
        endpoint, replay = (
            None if address is None else address_of(address, host, rank)
            for address in (publisher.endpoint, publisher.replay_endpoint)
        )
        engine_names = publisher.hash_seed is not None
        index = BlockIndex(publisher.limit_entries // publisher.ranks, engine_names=engine_names)
        feed = Feed(index, with_tokens=not engine_names, can_replay=replay is not None)
        made.append(Line(name, feed, endpoint, replay, publisher.topic.encode(), rank))
    return made
