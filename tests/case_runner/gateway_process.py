"""One real gateway: ``python -m gateway serve`` with its own ports, its files in a folder of its own.

Decided here: starting, waiting until it is ready, signals, its end, after which nothing of it is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import httpx

from tests.case_runner.polling import until
from tests.case_runner.procfs import Family
from tests.case_runner.settings import GatewayFiles

ROOT = Path(__file__).parents[2]
_SERVING = re.compile(r"Serving .* on http://[^:]+:(\d+), admin on port (\d+)")
_START_DEADLINE_S = 60.0
_END_DEADLINE_S = 20.0


class GatewayDidNotStart(Exception):
    """The text holds what it said."""


class GatewayProcess:
    """A running gateway."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self.port = 0
        self.admin_port = 0
        self.exited_at_s: float | None = None
        self._watch: asyncio.Task[None] | None = None
        self._family: Family | None = None

    @property
    def pid(self) -> int:
        """The main process."""
        assert self._process is not None, "start() first"
        return self._process.pid

    @property
    def family(self) -> Family:
        """All its processes."""
        assert self._family is not None, "start() first"
        return self._family

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number when one ended it."""
        return None if self._process is None else self._process.returncode

    async def start(self, files: GatewayFiles, *extra: str) -> None:
        """Write the files, start, wait until it is ready. Raises GatewayDidNotStart."""
        policies = self._folder / "policies"
        policies.mkdir(parents=True, exist_ok=True)
        for name, content in files.policies.items():
            (policies / name).write_text(json.dumps(content), encoding="utf-8")
        document = {**files.gateway, "policies": str(policies)}
        config = self._folder / "gateway.yaml"
        config.write_text(json.dumps(document), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VLMGW_")}
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config), *extra]
        with self._log("out").open("ab") as out, self._log("err").open("ab") as err:
            self._process = await asyncio.create_subprocess_exec(
                *command, cwd=ROOT, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
        self._family = Family(self._process.pid)
        self._watch = asyncio.get_running_loop().create_task(self._note_exit(self._process))
        try:
            async with asyncio.timeout(_START_DEADLINE_S):
                await self._until_ready()
        except TimeoutError:
            raise GatewayDidNotStart(f"not ready after {_START_DEADLINE_S:g} s: {self.said()[-800:]}") from None

    def _log(self, name: str) -> Path:
        return self._folder / f"gateway.{name}"

    def said(self) -> str:
        """All it has logged so far, access lines first."""
        paths = (self._log("out"), self._log("err"))
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths if path.exists())

    async def _note_exit(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        self.exited_at_s = time.monotonic()

    async def _until_ready(self) -> None:
        await until(lambda: self.exit_code is not None or _SERVING.search(self.said()) is not None)
        found = _SERVING.search(self.said())
        if found is None:
            raise GatewayDidNotStart(f"ended with {self.exit_code}: {self.said()[-800:]}")
        self.port, self.admin_port = int(found[1]), int(found[2])
        while (await self.get_admin("/readyz"))[0] != 200:  # noqa: ASYNC110 - it tells only when asked
            await asyncio.sleep(0.02)

    async def get_admin(self, path: str) -> tuple[int, str]:
        """A GET on the admin port; status 0 when it does not answer."""
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
                answer = await client.get(f"http://127.0.0.1:{self.admin_port}{path}")
        except httpx.HTTPError:
            return 0, ""
        return answer.status_code, answer.text

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the main process alone; who its children are is remembered before."""
        self.family.members()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def wait_exit(self, deadline_s: float) -> int | None:
        """The exit code, or None when it still runs then."""
        assert self._watch is not None, "start() first"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await asyncio.shield(self._watch)
        return self.exit_code

    async def stop(self) -> None:
        """End it and all that is left of its session."""
        if self._process is None:
            return
        self.family.members()
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self.exit_code is not None:
                break
            self.signal(number)
            await self.wait_exit(0.3 if number is signal.SIGTERM else _END_DEADLINE_S)
        for pid in self.family.members(with_zombies=False):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
