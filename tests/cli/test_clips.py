"""Videos on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.clips import is_video, read_clip
from gateway.models.video import Clip
from gateway.types import Size
from tests.cli.command import start
from tests.media.video.clips import clip


def test_a_clip_is_written_as_size_and_length() -> None:
    assert read_clip("1280x720:10s@24") == Clip(Size(1280, 720), 240, 24.0)
    assert read_clip("1280x720:2s") == Clip(Size(1280, 720), 60, 30.0)
    assert read_clip("1280x720") is None
    assert is_video(clip()[:64])
    assert not is_video(b"GIF89a")


def test_estimate_prices_clips_and_files_beside_images(tmp_path: Path) -> None:
    file = tmp_path / "v.mp4"
    file.write_bytes(clip())
    ran = start("estimate", "1280x720", "1280x720:10s@24", str(file), "--json")
    assert ran.code == 0
    image, written, read = ran.json
    assert image["tokens"] == 880
    assert (written["frames"], written["tokens"]) == (20, 8800 + 10 * 8)
    assert (read["frames"], read["size"]) == (4, "96x64 2 s")
    assert start("estimate", "1280x720:1s", "--model", "llava-hf/llava-1.5-7b-hf").code == 1


@pytest.mark.slow
def test_process_writes_the_frames(tmp_path: Path) -> None:
    file = tmp_path / "v.mp4"
    file.write_bytes(clip())
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "default.yaml").write_text("rules: {video: frames}\n", encoding="utf-8")
    ran = start("process", str(file), "-o", str(tmp_path / "out"), "--policies", str(policies), "--json")
    assert ran.code == 0
    (row,) = ran.json
    assert (row["original"], row["delivered"], row["why"]) == ("96x64 x 48", "96x64 x 4", "frames")
    assert Path(row["file"]).name == "v.mjpeg"
    assert Path(row["file"]).read_bytes().count(b"\xff\xd8\xff") == 4
    untouched = start("process", str(file), "-o", str(tmp_path / "same"), "--json")
    assert Path(untouched.json[0]["file"]).read_bytes() == file.read_bytes()
