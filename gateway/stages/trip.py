"""What the stages of one exchange hand on, and all that is known of a request once it may go to a backend.

Decided here: nothing. These are the arguments of ``delivery`` and of whatever it has done elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.dialects import Dialect
from gateway.handoff import Handed
from gateway.models.book import ServedModel
from gateway.policy.effective import EffectivePolicy
from gateway.ports import Body, Client, Looked, MediaScope, PromptCount, Reservation
from gateway.record import ExchangeRecord
from gateway.splice.skeleton import Skeleton
from gateway.stages.answer import Wish
from gateway.stages.clips import ClipWork
from gateway.stages.exchange import Ports, Watch, World
from gateway.types import Call, ImagePlan, SourceFacts, TokenEstimate


@dataclass(slots=True)
class Exchange:
    """What the stages of one exchange hand on. ``finish`` is done with a reserved request instead of its delivery."""

    client: Client
    dialect: Dialect
    ports: Ports
    world: World
    record: ExchangeRecord
    watch: Watch
    finish: Callable[[Trip], Awaitable[None]] | None = None


@dataclass(slots=True)
class Trip:
    """All that is known of a request once it may go to a backend."""

    x: Exchange
    body: Body
    skeleton: Skeleton
    call: Call
    policy: EffectivePolicy
    served: ServedModel
    scope: MediaScope
    looked: Looked | None
    facts: Sequence[SourceFacts]
    plans: Sequence[ImagePlan]
    estimate: TokenEstimate
    counted: PromptCount | None
    wish: Wish | None
    clips: ClipWork
    reservation: Reservation
    handed: Handed | None = None
