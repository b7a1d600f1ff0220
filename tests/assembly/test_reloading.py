"""Reloads: all or nothing, one at a time, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.assembly.reloading import Reloader
from gateway.assembly.wiring import load_world
from gateway.config.documents import SettingsProblems
from gateway.config.settings import Settings
from gateway.stages.exchange import World
from gateway.telemetry.log import JsonLog

KEY = b"k" * 32


def load(settings: Settings, earlier: World | None) -> World:
    return load_world(settings, KEY, earlier)


@pytest.fixture
def log() -> JsonLog:
    return JsonLog(stream=io.BytesIO())


async def test_only_what_may_change_is_taken_over(tmp_path: Path, log: JsonLog) -> None:
    (tmp_path / "default.yaml").write_text("mode: shadow\n")
    fresh = replace(Settings(), policies=str(tmp_path), server=replace(Settings().server, port=1))
    reloader = Reloader(Settings(), load, log, lambda: fresh)
    before = reloader.world
    assert await reloader.reload() == []
    assert reloader.world is not before
    assert len(reloader.world.policies.documents) == 1
    assert reloader.settings.server == Settings().server


async def test_how_backends_are_compared_may_change_and_what_waits_for_a_restart_is_said() -> None:
    out = io.BytesIO()
    log = JsonLog(stream=out)
    routing = replace(Settings().routing, work_weight=9.0)
    fresh = replace(Settings(), routing=routing, server=replace(Settings().server, port=1))
    reloader = Reloader(Settings(), load, log, lambda: fresh)
    assert await reloader.reload() == []
    assert reloader.world.routing.weights.work == 9.0
    log.close()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["settings"] for line in lines if line["event"] == "restart_needed"] == [["server.port"]]


async def test_with_a_problem_nothing_changes_and_all_is_said(tmp_path: Path, log: JsonLog) -> None:
    (tmp_path / "default.yaml").write_text("mod: shadow\nrules: {max_imges: 1}\n")
    settings = replace(Settings(), policies=str(tmp_path))
    reloader = Reloader(Settings(), load, log, lambda: settings)
    before = reloader.world
    problems = await reloader.reload()
    assert len(problems) == 2
    assert not reloader.ok
    assert (reloader.world, reloader.settings) == (before, Settings())
    (tmp_path / "default.yaml").write_text("mode: shadow\n")
    assert await reloader.reload() == []
    assert reloader.ok


async def test_settings_that_cannot_be_read_are_a_problem_too(log: JsonLog) -> None:
    def broken() -> Settings:
        raise SettingsProblems(["gateway.yaml: server.prt: unknown setting"])

    reloader = Reloader(Settings(), load, log, broken)
    assert await reloader.reload() == ["gateway.yaml: server.prt: unknown setting"]


async def test_what_nobody_thought_of_is_a_problem_and_no_end_of_watching(log: JsonLog) -> None:
    def broken() -> Settings:
        raise RecursionError("maximum recursion depth exceeded")

    reloader = Reloader(Settings(), load, log, broken)
    assert await reloader.reload() == ["could not be read: RecursionError: maximum recursion depth exceeded"]
    assert not reloader.ok


async def test_files_that_are_empty_for_a_moment_open_nothing(tmp_path: Path, log: JsonLog) -> None:
    acme = f'tenant: acme\nkeys: ["sha256:{"0" * 64}"]\n'
    (tmp_path / "acme.yaml").write_text(acme)
    settings = replace(Settings(), policies=str(tmp_path))
    fresh = [settings]
    reloader = Reloader(settings, load, log, lambda: fresh[0])
    before = reloader.world
    (tmp_path / "acme.yaml").write_text("")
    assert await reloader.reload() == ["keys: no policy file has one any more; to let everybody in, restart"]
    (tmp_path / "acme.yaml").write_text(acme)
    fresh[0] = Settings()
    assert await reloader.reload() == ["policies: no folder is named any more; to serve without policies, restart"]
    assert (reloader.world, reloader.ok) == (before, False)
    assert reloader.counts == {"ok": 0, "failed": 2}
    fresh[0] = settings
    assert await reloader.reload() == []


async def test_reading_holds_up_no_loop_and_reloads_follow_each_other(log: JsonLog) -> None:
    reading, go_on = threading.Event(), threading.Event()
    active: list[int] = []

    def slow() -> Settings:
        active.append(len(active))
        reading.set()
        assert go_on.wait(30)
        return Settings()

    reloader = Reloader(Settings(), load, log, slow)
    reloads = [asyncio.create_task(reloader.reload())]
    while not reading.is_set():  # noqa: ASYNC110 - set in a thread
        await asyncio.sleep(0)
    reloads.append(asyncio.create_task(reloader.reload()))
    await asyncio.sleep(0)
    assert active == [0], "the second waits for the first, and this loop turns"
    go_on.set()
    assert await asyncio.gather(*reloads) == [[], []]
    assert active == [0, 1]


async def test_a_storm_of_calls_is_two_reloads(log: JsonLog) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow() -> Settings:
        begun.set()
        go.wait(30)
        return Settings()

    reloader = Reloader(Settings(), load, log, slow)
    first = asyncio.create_task(reloader.reload())
    await asyncio.to_thread(begun.wait, 30)
    storm = [asyncio.create_task(reloader.reload()) for _ in range(100)]
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(first, *storm) == [[]] * 101
    assert reloader.counts == {"ok": 2, "failed": 0}


async def test_what_can_no_longer_be_taken_up_is_a_problem_and_no_end(log: JsonLog) -> None:
    def renew() -> None:
        raise ValueError("server.tls_cert_file: half written")

    reloader = Reloader(Settings(), load, log, None, renew)
    before = reloader.world
    assert await reloader.reload() == ["server.tls_cert_file: half written"]
    assert reloader.world is before
    assert not reloader.ok
