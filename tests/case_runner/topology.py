"""One gateway with its stand-ins, serving one case or several that want the same.

Decided here: names of origins (each case has its own, so that nothing remembered of one can pass for another's), order
of starting and stopping, warming up, the check that a gateway is still alive.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import secrets
from collections.abc import Sequence
from pathlib import Path

from tests.case_runner import pictures
from tests.case_runner.backend import StandInBackend
from tests.case_runner.behaviour import BackendScript
from tests.case_runner.cases import Case, Names, repeated_variables, static_answers
from tests.case_runner.engine_answers import MODEL
from tests.case_runner.gateway_process import GatewayProcess
from tests.case_runner.http_client import Response, exchange, request_bytes
from tests.case_runner.metrics import Scrape, read_scrape
from tests.case_runner.origin import ORIGIN_ADDRESS, StandInOrigin
from tests.case_runner.settings import effective, gateway_files
from tests.case_runner.stores import RedisServer

CHAT = "/v1/chat/completions"
_OWN_DEADLINE_S = 30.0
_REVIVAL_DEADLINE_S = 10.0


class Topology:
    """Everything that runs for a group of cases."""

    def __init__(self, cases: Sequence[Case], folder: Path) -> None:
        self.cases = cases
        self.folder = folder
        self.settings = effective(cases[0].settings)
        self.backend = StandInBackend(int(self.settings["model.max_model_len"]))
        self.origin = StandInOrigin()
        self.gateway = GatewayProcess(folder)
        self.store: RedisServer | None = None
        self._secret = folder / f"secret-{secrets.token_hex(4)}.png"

    @property
    def own_headers(self) -> dict[str, str]:
        """Headers of the runner's own requests."""
        keys = self.settings["auth.keys"] or {}
        key = next(iter(keys), None)
        return {"Content-Type": "application/json", **({} if key is None else {"Authorization": f"Bearer {key}"})}

    async def start(self, *extra: str, with_store: bool = False) -> None:
        """Start all; the first case decides which replicas listen from the beginning."""
        first = self.cases[0]
        await self.backend.open(first.backend.replicas)
        await self.backend.begin(first.backend, CHAT)
        await self.origin.open()
        self._secret.write_bytes(pictures.flat_png(112, 112, (200, 40, 40)))
        if with_store:
            self.store = RedisServer(self.folder)
            await self.store.set("up")
        urls = [replica.url for replica in self.backend.replicas]
        store_url = None if self.store is None else self.store.url
        await self.gateway.start(gateway_files(self.settings, urls, self._static_hosts(), store_url), *extra)

    async def stop(self) -> None:
        """End all."""
        await self.gateway.stop()
        await self.backend.stop()
        await self.origin.stop()
        if self.store is not None:
            await self.store.stop()

    def _origin_names(self, case: Case) -> tuple[str, str]:
        number = self.cases.index(case)
        return f"origin-{number}.example.test", f"origin2-{number}.example.test"

    def _static_hosts(self) -> dict[str, str]:
        hosts: dict[str, str] = {}
        for case in self.cases:
            one, two = self._origin_names(case)
            hosts |= {one: ORIGIN_ADDRESS, two: ORIGIN_ADDRESS}
            for name, answers in case.hosts.items():
                filled = name.replace("{{origin_host}}", one).replace("{{origin2_host}}", two)
                hosts[filled.split(":")[0]] = static_answers(answers)
        return hosts

    def names(self, case: Case) -> Names:
        """The placeholders' values for a case."""
        one, two = self._origin_names(case)
        port = self.origin.port
        values = {
            **repeated_variables(case.spec.get("variables", {})),
            "origin_host": f"{one}:{port}",
            "origin2_host": f"{two}:{port}",
            "origin_port": str(port),
            "private_port": str(self.origin.private_port),
            "secret_file": str(self._secret),
            "secret_name": self._secret.name,
        }
        return Names(values, random.Random(os.urandom(8)))

    async def scrape(self) -> Scrape:
        """The gateway's metrics now."""
        _, text = await self.gateway.get_admin("/metrics")
        return read_scrape(text)

    async def ask(self, body: bytes) -> Response:
        """One request of the runner's own."""
        outgoing = request_bytes("POST", CHAT, self.own_headers, body, f"127.0.0.1:{self.gateway.port}")
        return await exchange(self.gateway.port, outgoing, deadline_s=_OWN_DEADLINE_S)

    async def warm_up(self) -> None:
        """Text and pictures once, so that what is loaded on first use is not taken for growth."""
        await self.ask(plain_request())
        for side in (112, 1400):
            data = base64.b64encode(pictures.flat_png(side, side, (10, 20, 30))).decode()
            await self.ask(picture_request(f"data:image/png;base64,{data}"))

    async def alive(self, *, patient: bool) -> str | None:
        """Whether a plain request is served: None, or what happened instead. ``patient`` after a faulty backend."""
        await self.backend.begin(BackendScript(self.cases[0].backend.replicas), CHAT)
        until_s = asyncio.get_running_loop().time() + (_REVIVAL_DEADLINE_S if patient else 0)
        while True:
            if self.gateway.exit_code is not None:
                return f"the gateway ended with {self.gateway.exit_code}"
            try:
                response = await self.ask(plain_request())
            except OSError as error:
                return f"no connection: {error}"
            if response.status == 200:
                return None
            if asyncio.get_running_loop().time() >= until_s:
                return f"a plain request was answered {response.status}: {bytes(response.body)[:160]!r}"
            await asyncio.sleep(0.1)


def plain_request() -> bytes:
    """A request of text alone."""
    return json.dumps(
        {"model": MODEL, "messages": [{"role": "user", "content": "Are you there?"}], "max_tokens": 1}
    ).encode()


def picture_request(data_url: str) -> bytes:
    """A request with one picture."""
    part = {"type": "image_url", "image_url": {"url": data_url}}
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": [part]}]}).encode()
