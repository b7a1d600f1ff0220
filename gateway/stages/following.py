"""Responses that are asked for by their ids: whose they are, who keeps them, and what is learnt of new ones.

Decided here: that an id leads only its own tenant anywhere, and where an id stands in an answer. Not decided here: how
long ids are remembered (``routing.kept_responses``).
"""

from __future__ import annotations

import re

from gateway.errors import ResponseNotFound
from gateway.routing.kept_responses import KeptResponses
from gateway.types import BackendName, TenantId

_PATH = re.compile(r"/v1/responses/([A-Za-z0-9_-]{1,256})(?:/cancel)?")
# The response's own id, which the engines begin so; items have other beginnings.
_ID = re.compile(rb'"id"[ \t\r\n]*:[ \t\r\n]*"(resp_[A-Za-z0-9_-]{1,250})"')


def id_in(path: str) -> str | None:
    """The response that a path is about."""
    found = _PATH.fullmatch(path)
    return None if found is None else found[1]


def keeper_of(kept: KeptResponses, response_id: str | None, tenant: TenantId, part: str) -> BackendName | None:
    """Who keeps a response; ``None`` where that is not known, or nothing is asked for.

    Raises ResponseNotFound for one that is another tenant's, in the words for one that is not there.
    """
    keeper = None if response_id is None else kept.keeper(response_id)
    if keeper is None:
        return None
    if keeper.tenant != tenant:
        raise ResponseNotFound(part=part)
    return keeper.backend


def learn_response(kept: KeptResponses, tail: bytes, backend: BackendName, tenant: TenantId) -> None:
    """Remember who answered, by the last bytes of an answer; a longer one that does not repeat its id is not learnt."""
    found = _ID.search(tail)
    if found is not None:
        kept.learn(found[1].decode(), backend, tenant)
