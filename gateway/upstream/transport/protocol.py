"""aiohttp's protocol of one connection to an engine, reading on only where it was held back.

Not decided here: when it is held back and goes on (aiohttp's stream reader, by what waits unread).
"""

from __future__ import annotations

from aiohttp.client_proto import ResponseHandler


class EngineProtocol(ResponseHandler):
    """aiohttp asks it to go on after every read of a body, and each time runs its parser over no bytes.

    With the same on the client's side (``api/connection``) that was 5.6 % of a text request's instructions.
    """

    _is_held = False

    def pause_reading(self) -> None:
        self._is_held = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002  # aiohttp's signature
        if not self._is_held:
            return
        if resume_parser:  # else what the parser keeps is still to be asked for
            self._is_held = False
        super().resume_reading(resume_parser)
