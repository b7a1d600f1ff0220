"""How both sides' connections on aiohttp read on: only where they were held back.

Decided here: that going on costs nothing where nothing was paused. aiohttp (3.14) asks a connection to go on after
every read of a body, and each time runs its parser over no bytes. Not decided here: when one is held back and goes on
(aiohttp's stream reader, by what waits unread).
"""

from __future__ import annotations


class ReadsWhereHeld:
    """To be inherited from before aiohttp's own protocol."""

    _is_held = False

    def pause_reading(self) -> None:
        self._is_held = True
        super().pause_reading()  # type: ignore[misc]  # aiohttp's, which is next in line

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002  # aiohttp's signature
        if not self._is_held:
            return
        if resume_parser:  # else what the parser keeps is still to be asked for
            self._is_held = False
        super().resume_reading(resume_parser)  # type: ignore[misc]  # as above
