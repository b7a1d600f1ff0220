"""The admin port of a gateway of several processes: one truth, put together from what each process says on its own.

Decided here: who is asked and how answers become one: metrics are merged, a reload is everybody's, live is who has no
stuck process, ready who has a ready one. Not decided here: paths and authorisation (``api.admin``), what a process
answers.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx

from gateway.api.admin import AdminView
from gateway.cli.supervisor import Sibling, Supervisor
from gateway.config.settings import Settings
from gateway.config.sources import masked
from gateway.telemetry.merged import CONTENT_TYPE, MergedMetrics

_ANSWER_S = 2.0
_RELOAD_S = 60.0
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  # where it listens, not we


class Supervision:
    """What the shared admin port asks. ``view`` is made on the supervisor's loop; the rest runs in the admin thread."""

    def __init__(self, supervisor: Supervisor, settings: Settings) -> None:
        self._supervisor = supervisor
        self._settings = settings
        self._token = os.environ.get("VLMGW_ADMIN_TOKEN")
        host = _ANYWHERE.get(settings.server.admin_host, settings.server.admin_host)
        self._host = f"[{host}]" if ":" in host else host
        self._client = httpx.Client(trust_env=False, timeout=_ANSWER_S)
        self._askers = ThreadPoolExecutor(len(supervisor.siblings), "ask")
        self._merged = MergedMetrics()
        self._told: dict[int, int] = {}  # process -> the generation its page is of

    def view(self, loop: asyncio.AbstractEventLoop) -> AdminView:
        def drain() -> None:
            loop.call_soon_threadsafe(self._supervisor.pass_on, signal.SIGTERM)

        return AdminView(
            beat_age_s=self._beat_age_s,
            readiness=self._readiness,
            render_metrics=lambda _: (self._metrics().encode(), CONTENT_TYPE),
            config=lambda: masked(self._settings),
            drain=drain,
            ask_reload=self._reload,
            ask_explain=self._explain,
            token=self._token,
            notes=self._notes,
        )

    def stop(self) -> None:
        """Ask no more."""
        self._askers.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    # --- asking -----------------------------------------------------------------------------------------------------

    def _url(self, port: int, path: str) -> str:
        return f"http://{self._host}:{port}{path}"

    @property
    def _headers(self) -> dict[str, str]:
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}

    def _serving(self) -> Sequence[Sibling]:
        return [sibling for sibling in self._supervisor.siblings if sibling.admin_port]

    def _each(self, path: str) -> Mapping[Sibling, httpx.Response | None]:
        """Everybody's answer; ``None`` from who did not give one in time."""
        siblings = self._serving()
        return dict(zip(siblings, self._askers.map(self._getter(path), siblings), strict=True))

    def _getter(self, path: str) -> Callable[[Sibling], httpx.Response | None]:
        def get(sibling: Sibling) -> httpx.Response | None:
            try:
                return self._client.get(self._url(sibling.admin_port, path), headers=self._headers)
            except httpx.HTTPError:
                return None

        return get

    # --- answers ----------------------------------------------------------------------------------------------------

    def _beat_age_s(self) -> float:
        """0 while no process is stuck: one that answers nothing at all is, one that is being started again is not."""
        return 0.0 if all(_is_ok(answer) for answer in self._each("/livez").values()) else float("inf")

    def _readiness(self) -> dict[str, bool]:
        return {
            "not_draining": not self._supervisor.is_leaving,
            "a_process_ready": any(_is_ok(answer) for answer in self._each("/readyz").values()),
        }

    def _notes(self) -> list[str]:
        return [
            f"[{'+' if _is_ok(answer) else '-'}]process {sibling.number} on admin port {sibling.admin_port}"
            for sibling, answer in self._each("/readyz").items()
        ]

    def _metrics(self) -> str:
        answers = self._each("/metrics")
        for sibling in self._supervisor.siblings:
            known = self._told.get(sibling.number)
            if known is not None and (known != sibling.generation or not sibling.admin_port):
                self._merged.bury(sibling.number)
                del self._told[sibling.number]
            answer = answers.get(sibling)
            if sibling in answers and (answer is not None or sibling.number in self._told):
                self._told[sibling.number] = sibling.generation
                self._merged.tell(sibling.number, None if answer is None else answer.text)
        return self._merged.render()

    async def _reload(self) -> list[str]:
        """Everybody reloads; each problem once, by whom it is told where not all tell it."""
        async with httpx.AsyncClient(trust_env=False, timeout=_RELOAD_S) as client:
            siblings = self._serving()
            told = await asyncio.gather(*(self._reload_one(client, sibling) for sibling in siblings))
        by = {problem: sibling.number for sibling, each in zip(siblings, told, strict=True) for problem in each}
        return [
            problem if all(problem in each for each in told) else f"process {number}: {problem}"
            for problem, number in by.items()
        ]

    async def _reload_one(self, client: httpx.AsyncClient, sibling: Sibling) -> list[str]:
        try:
            answer = await client.post(self._url(sibling.admin_port, "/-/reload"), headers=self._headers)
            return [str(problem) for problem in answer.json()["problems"]]
        except (httpx.HTTPError, ValueError, KeyError) as error:
            return [f"could not be asked: {type(error).__name__}"]

    async def _explain(self, body: bytes, headers: dict[str, str]) -> dict[str, object]:
        """Any process explains alike; the first that serves does."""
        kept = {name: value for name, value in headers.items() if name not in {"host", "content-length"}}
        async with httpx.AsyncClient(trust_env=False, timeout=_RELOAD_S) as client:
            answer = await client.post(
                self._url(self._serving()[0].admin_port, "/-/explain"), content=body, headers=kept
            )
        found: dict[str, object] = answer.json()
        return found


def _is_ok(answer: httpx.Response | None) -> bool:
    return answer is not None and answer.is_success
