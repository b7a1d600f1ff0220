"""What counts as a change on disk, and when it is acted on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from gateway.config.watch import fingerprint, watch


def test_edits_additions_and_removals_change_it(tmp_path: Path) -> None:
    file, folder = tmp_path / "gateway.yaml", tmp_path / "policies"
    folder.mkdir()
    file.write_text("a")
    seen = [fingerprint([file, folder])]

    def changes() -> bool:
        seen.append(fingerprint([file, folder]))
        return seen[-1] != seen[-2]

    assert not changes()
    file.write_text("bb")
    assert changes()
    (folder / "acme.yaml").write_text("tenant: acme")
    assert changes()
    (folder / ".acme.yaml.swp").write_text("an editor's own file")
    assert not changes()
    (folder / "acme.yaml").unlink()
    assert changes()
    file.unlink()
    assert changes()


def test_a_swapped_configmap_is_a_change(tmp_path: Path) -> None:
    """Kubernetes: files are links to ..data/file, and ..data is a link that is replaced as a whole."""
    for version in ("one", "two"):
        (tmp_path / f"..{version}").mkdir()
        written = tmp_path / f"..{version}" / "default.yaml"
        written.write_text("mode: shadow")
        os.utime(written, ns=(1, 1))
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "default.yaml").symlink_to("..data/default.yaml")
    before = fingerprint([tmp_path])
    assert len(before) == 1
    (tmp_path / "..new").symlink_to("..two")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert fingerprint([tmp_path]) != before, "same name, size and time, another file"


async def test_a_change_is_acted_on_once_it_holds_still(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("0")
    acted: asyncio.Queue[str] = asyncio.Queue()
    looks = 0
    seen = asyncio.Event()

    def looked_at() -> list[Path]:
        nonlocal looks
        looks += 1
        if looks == 2:  # the file as it was has been seen
            seen.set()
        return [file]

    async def changed() -> None:
        acted.put_nowait(await asyncio.to_thread(file.read_text))

    async with asyncio.timeout(30):
        watching = asyncio.create_task(watch(looked_at, 0.005, changed))
        await seen.wait()
        for text in ("11", "222"):  # sizes differ, for two edits may fall into one tick of the file system's clock
            file.write_text(text)
            assert await acted.get() == text
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert acted.empty()


async def test_an_edit_between_reading_and_watching_is_acted_on(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("0")
    read = fingerprint([file])
    file.write_text("11")
    seen = asyncio.Event()

    async def changed() -> None:
        seen.set()

    async with asyncio.timeout(30):
        watching = asyncio.create_task(watch(lambda: [file], 0.005, changed, read))
        await seen.wait()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
