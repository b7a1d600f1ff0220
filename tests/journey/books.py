"""What was handed out, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Held:
    """One thing that somebody owns until it is closed; only the first ending counts."""

    what: str
    ending: str | None = None
    endings: int = 0

    def end(self, how: str) -> None:
        self.endings += 1
        if self.ending is None:
            self.ending = how


@dataclass(slots=True)
class Books:
    """Everything that was ever handed out."""

    held: list[Held] = field(default_factory=list)

    def hand_out(self, what: str) -> Held:
        entry = Held(what)
        self.held.append(entry)
        return entry

    @property
    def still_open(self) -> list[str]:
        return [entry.what for entry in self.held if entry.ending is None]

    def endings(self, what: str) -> list[str | None]:
        return [entry.ending for entry in self.held if entry.what == what]
