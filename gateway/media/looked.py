"""What one request holds of its images, from the first look at them until it is over.

Decided here: when what is let go, and that outputs are counted once however often they are used. Not decided here: how
much a request may hold (``room``, the settings).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NewType

from gateway.media.room import Share
from gateway.ports import MediaScope
from gateway.types import Prepared, SourceFacts

Flow = NewType("Flow", int)


@dataclass(frozen=True, slots=True)
class Asker:
    """On whose behalf, and in which turn of the line."""

    scope: MediaScope
    flow: Flow


@dataclass(slots=True)
class LookedSources:
    """``ports.Looked``. ``files`` are the bytes of remote images by source name, kept until they are prepared."""

    facts: tuple[SourceFacts, ...]
    share: Share
    outputs: Share
    files: dict[str, bytes] = field(default_factory=dict)
    _counted: set[int] = field(default_factory=set)

    def hold_output(self, prepared: Prepared) -> None:
        """Count a prepared image of this request. Raises ImageTooLarge (all together), BodyMemoryExhausted."""
        if id(prepared) in self._counted:
            return
        self.outputs.take(len(prepared.data_url))
        self._counted.add(id(prepared))

    def drop_files(self) -> None:
        """Nobody asks for the files again, and an answer may take minutes."""
        self.files.clear()
        self.share.close()

    def close(self) -> None:
        self.drop_files()
        self.outputs.close()
