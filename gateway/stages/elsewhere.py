"""A backend certainly did not take a request, or has not what it asks for: whether it goes elsewhere, and what the
client is told if not.

Decided here: that it goes to another backend while one is left and the retry budget allows it; that otherwise the
refusal's own answer is relayed, and where there is none (no connection; a refusal inside a stream that we have not
begun) the dialect's own error with the right status. Not decided here: what proves that it was not taken
(``upstream``), which backend is next (``routing``).
"""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import BackendFailed, BackendUnreachable, GatewayError, NoBackend, NotTaken
from gateway.ports import Upstream, UpstreamResponse
from gateway.record import ExchangeRecord
from gateway.routing.ask import RouteAsk
from gateway.routing.decide import decide
from gateway.stages.exchange import refused_answer
from gateway.types import BackendName

_COME_BACK_S = 1.0
_NOT_FOUND = 404
# Reasons without a word from the backend.
_UNHEARD = frozenset({"connect", "body_not_sent"})


def go_on(
    refusal: NotTaken,
    backend: BackendName,
    ask: RouteAsk,
    upstream: Upstream,
    record: ExchangeRecord,
    *,
    is_whole: bool = True,
) -> tuple[RouteAsk, UpstreamResponse | None]:
    """What follows a refusal: the next question for routing and nothing, or the answer that is to be relayed.

    ``is_whole``: the request can still be sent. Raises BackendFailed where there is neither.
    """
    answer = refused_answer(refusal)
    ask = replace(ask, excluded=ask.excluded | {backend})
    record.retry_reasons.append(refusal.reason)
    record.stranded = _reason_to_stay(refusal, ask, upstream) if is_whole else "sent"
    if record.stranded is None:
        if answer is not None:
            answer.close()
        return ask, None
    if answer is None:
        raise told(refusal) from refusal
    return ask, answer


def seek_on(
    ask: RouteAsk, upstream: Upstream, backend: BackendName, status: int, record: ExchangeRecord
) -> RouteAsk | None:
    """Where to look next for a kept response that nobody here remembers (another replica's, or from before a restart).

    A 404 is the proof that the backend has it not and ran nothing. None when it was found, or everybody was asked.
    Raises NoBackend where somebody refused before it could tell: the response may be there, and asking again may help.
    """
    if status != _NOT_FOUND:
        return None
    further = replace(ask, excluded=ask.excluded | {backend})
    if is_left(upstream, further):
        return further
    if record.retry_reasons:
        detail = f"who may keep the response refused: {', '.join(record.retry_reasons)}"
        raise NoBackend(detail=detail, retry_after_s=_COME_BACK_S)
    return None


def told(refusal: NotTaken) -> BackendFailed:
    """The error for a refusal that has no answer of its own."""
    if refusal.reason in _UNHEARD:
        return BackendUnreachable(detail=refusal.detail, retry_after_s=_COME_BACK_S)
    return NoBackend(detail=f"{refusal.reason}: {refusal.detail}", retry_after_s=_COME_BACK_S)


def is_left(upstream: Upstream, ask: RouteAsk) -> bool:
    """Whether a backend is left that could take it, whatever filter would leave nobody."""
    try:
        decide(upstream.views(), ask, {})
    except GatewayError:
        return False
    return True


def _reason_to_stay(refusal: NotTaken, ask: RouteAsk, upstream: Upstream) -> str | None:
    """``nowhere``: every backend was tried; ``budget``: the retry budget is spent (``sent``: the body is gone)."""
    if not is_left(upstream, ask):
        return "nowhere"
    return None if upstream.may_retry(refusal.reason) else "budget"
