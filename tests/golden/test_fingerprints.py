"""The same source and plan make the same bytes: here, in other processes, in workers, and as recorded elsewhere.

A machine whose libraries have versions that nobody recorded is held to the first three, and to the pixels that
``test_closeness`` asks of everybody.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.media.codecs import available_backends, load_backend
from gateway.media.process import WORKER_COMMAND
from gateway.media.service import MediaService
from gateway.media.settings import MIB, MediaSettings, PoolSettings
from gateway.media.shm import HeapBody
from gateway.ports import MediaScope, PrepareJob, SourceRef
from gateway.types import ImageFormat, LongString, Span, TenantId
from tests.golden.fingerprints import computed, digest, files, goldens, merged, plans, recorded, revision

ROOT = Path(__file__).parents[2]
SCOPE = MediaScope(TenantId("golden"), 8 * MIB, 100_000_000, hosts=None, deadline_s=100.0)


@pytest.fixture(scope="module")
def ours() -> dict[str, dict[str, str]]:
    return computed()


@contextmanager
def another_process() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONHASHSEED": "77", "MALLOC_PERTURB_": "165"}
    command = [sys.executable, "-m", "tests.golden.fingerprints"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        yield process


@pytest.mark.slow
def test_another_process_makes_the_same_bytes(ours: dict[str, dict[str, str]]) -> None:
    with another_process() as process:
        said = process.communicate()[0]
    assert json.loads(said) == ours


def test_a_recorded_version_makes_the_recorded_bytes(ours: dict[str, dict[str, str]]) -> None:
    known = recorded()
    for version in ours.keys() & known.keys():
        assert ours[version] == known[version], (
            f"the bytes of {version} changed: raise _REVISION in gateway/media/codecs/pipeline.py, then "
            "python -m tests.golden.fingerprints --record"
        )


def test_the_record_is_of_this_revision_and_of_every_backend_and_plan(ours: dict[str, dict[str, str]]) -> None:
    known = recorded()
    assert {revision(version) for version in known} == {revision(version) for version in ours} | {
        ("pillow-simd", revision(next(iter(ours)))[1])
    }
    keys = [golden.key for golden in goldens()]
    assert len(keys) == len(set(keys))
    assert all(list(found) == keys for found in known.values())


def test_every_raster_format_that_is_taken_has_a_file() -> None:
    """An icon holds a PNG or a BMP; a PDF has no pixels before its plan."""
    taken = {golden.probe.format for golden in goldens()}
    assert taken == set(ImageFormat) - {ImageFormat.SVG, ImageFormat.PDF, ImageFormat.ICO}


def test_what_the_backends_share_is_only_what_is_not_resized(ours: dict[str, dict[str, str]]) -> None:
    """Two backends are two versions because they make different bytes; a fleet runs one."""
    known = recorded()
    names = {revision(version)[0]: found for version, found in known.items()}
    shrunk = [golden.key for golden in goldens() if golden.key.startswith("photo") and golden.key.endswith("shrunk")]
    assert shrunk
    assert all(names["pillow-simd"][key] != names["vips"][key] for key in shrunk)


@pytest.mark.slow
async def test_two_workers_make_the_bytes_of_this_process(ours: dict[str, dict[str, str]]) -> None:
    name = available_backends()[0]
    settings = PoolSettings(workers=2, codec_backend=name, output_bytes=8 * MIB, job_deadline_s=60.0)
    chosen = MediaSettings(content_key=b"k" * 32, seed=7, pool=settings, slab_bytes=32 * MIB)
    service = MediaService(chosen, NoFetch(), on_task=lambda fact: None, command=WORKER_COMMAND)
    originals = [(path, path.read_bytes()) for path in files()]
    await service.start()
    try:
        made: dict[str, str] = {}
        for path, data in originals:
            made |= await _through_workers(service, path.name, data)
    finally:
        await service.stop()
    assert made == ours[load_backend(name).fingerprint]


class NoFetch:
    """Nothing is remote here."""

    async def fetch(self, url: str, **_: Any) -> bytes:
        raise AssertionError(url)


async def _through_workers(service: MediaService, name: str, data: bytes) -> dict[str, str]:
    """All plans of a file at once, so that both workers have some."""
    text = b"data:application/octet-stream;base64," + base64.b64encode(data)
    body = HeapBody(text)
    ref = SourceRef(name, LongString(Span(0, len(text)), has_escapes=False))
    looked = await service.look(body, [ref], SCOPE)
    (facts,) = looked.facts
    wanted = plans(facts.probe.upright)
    results = await service.prepare(body, looked, [PrepareJob(ref, facts, plan) for plan in wanted.values()], SCOPE)
    looked.close()
    return {
        f"{name} {plan}": digest(base64.b64decode(result.prepared.data_url.partition(b",")[2]))
        for plan, result in zip(wanted, results, strict=True)
    }


def test_a_newer_revision_takes_the_place_of_older_ones() -> None:
    known = {"vips-r3+a": {"x": "1"}, "vips-r4+a": {"x": "2"}, "pillow-simd-r3+a": {"x": "3"}}
    assert merged(known, {"vips-r4+b": {"x": "4"}}) == {
        "pillow-simd-r3+a": {"x": "3"},
        "vips-r4+a": {"x": "2"},
        "vips-r4+b": {"x": "4"},
    }
