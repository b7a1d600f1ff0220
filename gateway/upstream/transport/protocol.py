"""aiohttp's protocol of one connection to an engine: it tells a failure to all that wait, and takes for an answer only
what comes after a request.

Not decided here: how it reads on (``types.reading``), what a failure means for a request (``exchange``).
"""

from __future__ import annotations

import aiohttp
from aiohttp.client_proto import ResponseHandler

from gateway.types.reading import ReadsWhereHeld


class EngineProtocol(ReadsWhereHeld, ResponseHandler):
    """aiohttp's protocol of a client, for engines."""

    def rest(self) -> None:
        """The exchange is over. Whatever comes before the next one begins is no answer to it: aiohttp would read it as
        one, and hand it to the next request. Without a parser it is put aside, where ``should_close`` sees it.
        """
        self._parser = None

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """The connection failed; whoever reads a body hears of it as well.

        Where an answer breaks its own framing (a chunk that is none), aiohttp 3.14 closes the connection and tells only
        who waits for a head: a reader of the body would wait for its limit of silence.
        """
        if exc_cause is None:
            super().set_exception(exc)
        else:
            super().set_exception(exc, exc_cause)
        body = self._payload
        if body is None or body.is_eof() or body.exception() is not None:
            return
        is_known = isinstance(exc, aiohttp.ClientError | OSError)
        body.set_exception(exc if is_known else aiohttp.ClientPayloadError(f"{type(exc).__name__} within the body"))
