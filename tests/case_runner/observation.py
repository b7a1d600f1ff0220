"""What was seen while a case ran. Checks judge it; nothing here judges or acts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.case_runner import pointer
from tests.case_runner.backend import BackendCall
from tests.case_runner.http_client import Response
from tests.case_runner.metrics import Scrape
from tests.case_runner.origin import OriginCall


@dataclass(slots=True, eq=False)
class Exchange:
    """One request of the runner and what it caused."""

    step: int
    request_body: bytes
    response: Response
    calls: list[BackendCall] = field(default_factory=list)
    request_file: str = ""
    role: str = "step"  # step, send, async, stream, hold, get
    name: str = ""
    log: str = ""
    left_at_s: float | None = None

    @property
    def sent_json(self) -> Any:
        """The client's body parsed; MISSING when it is no JSON."""
        return pointer.parsed(self.request_body)

    @property
    def error(self) -> dict[str, Any]:
        """The error object of the answer, of either envelope; empty when there is none."""
        try:
            document = json.loads(bytes(self.response.body))
        except (ValueError, RecursionError):
            return {}
        found = document.get("error") if isinstance(document, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def message(self) -> str:
        """The error's message."""
        return str(self.error.get("message", ""))


@dataclass(slots=True, eq=False)
class Memory:
    """One measurement of all processes of the gateway."""

    name: str
    resident_bytes: int
    open_files: int


@dataclass(slots=True, eq=False)
class Observation:
    """Everything that was seen."""

    folder: Path
    path: str
    time_scale: float = 1.0
    grid: int = 28
    exchanges: list[Exchange] = field(default_factory=list)
    calls: list[BackendCall] = field(default_factory=list)
    origin_calls: list[OriginCall] = field(default_factory=list)
    private_connections: int = 0
    scrapes: list[tuple[str, Scrape]] = field(default_factory=list)
    before: Scrape | None = None
    after: Scrape | None = None
    memory: list[Memory] = field(default_factory=list)
    peak_growth_bytes: int = 0
    random_values: set[str] = field(default_factory=set)
    gets: dict[str, int | None] = field(default_factory=dict)
    alive_after: bool | None = None
    alive_problem: str = ""
    worker_deaths: int = 0
    armed_file: str = ""
    killed_at_s: float | None = None
    processes: dict[str, int] = field(default_factory=dict)
    port_free: bool | None = None
    exit_code: int | None = None
    exited_at_s: float | None = None
    signals_at_s: list[float] = field(default_factory=list)
    baseline_ms: list[float] = field(default_factory=list)
    origin_bytes: int = 0

    @property
    def steps(self) -> list[Exchange]:
        """The exchanges that count as steps of their own."""
        return [each for each in self.exchanges if each.role == "step"]

    def sent(self, role: str = "send") -> list[Exchange]:
        """The exchanges of one role."""
        return [each for each in self.exchanges if each.role == role]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a set of expectations is about: the whole case, or one step of it."""

    seen: Observation
    exchanges: Sequence[Exchange]

    @property
    def first(self) -> Exchange:
        """The only exchange, mostly."""
        return self.exchanges[0]

    @property
    def calls(self) -> list[BackendCall]:
        """The backend calls of these exchanges."""
        return [call for each in self.exchanges for call in each.calls]
