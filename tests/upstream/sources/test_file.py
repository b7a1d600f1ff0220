"""A file as a source: changes, half-written and missing content."""

from __future__ import annotations

import os
from pathlib import Path

from gateway.upstream.settings import BackendSettings, Found
from gateway.upstream.sources.file import FileSource
from tests.upstream.scripted import until
from tests.upstream.sources.watching import heard


def read(content: bytes) -> Found:
    """A URL a line."""
    return [BackendSettings(line) for line in content.decode().split()]


async def test_changes_are_taken_over_and_bad_content_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "backends"
    path.write_text("http://a")
    async with heard(FileSource(path, 0.005, read)) as ears:
        await until(lambda: ears.urls == ["http://a"])
        path.write_text("http://a http://b")
        await until(lambda: ears.urls == ["http://a", "http://b"])
        path.write_text("nonsense")
        await until(lambda: bool(ears.failures))
        assert ears.urls == ["http://a", "http://b"]
        path.write_text("http://c")
        await until(lambda: ears.urls == ["http://c"])
        assert len(ears.failures) == 1


async def test_a_file_that_is_not_there_yet_or_no_more(tmp_path: Path) -> None:
    path = tmp_path / "backends"
    async with heard(FileSource(path, 0.005, read)) as ears:
        await until(lambda: bool(ears.failures))
        assert "No such file" in ears.failures[0]
        path.write_text("http://a")
        await until(lambda: ears.urls == ["http://a"])
        path.unlink()
        count = len(ears.failures)
        await until(lambda: len(ears.failures) > count)
        answers = len(ears.answers)
        path.write_text("http://a")
        await until(lambda: len(ears.answers) > answers)


async def test_a_content_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "backends"
    path.write_text("http://0")
    seen: list[bytes] = []

    def restless(content: bytes) -> Found:
        seen.append(content)
        return read(content)

    source = FileSource(path, 0.001, restless)
    async with heard(source) as ears:
        await until(lambda: bool(ears.answers))
        path.write_text("http://1 http://2")
        await until(lambda: len(ears.answers) == 2)
    assert seen == [b"http://0", b"http://1 http://2"]


async def test_a_pipe_or_a_folder_is_no_file(tmp_path: Path) -> None:
    """Reading a pipe that nobody writes to would never end, nor would the process."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        async with heard(FileSource(path, 0.005, read)) as ears:
            await until(lambda: bool(ears.failures))
            assert "is no regular file" in ears.failures[0] or "Is a directory" in ears.failures[0]
