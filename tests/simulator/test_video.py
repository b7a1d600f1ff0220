"""Videos in the stand-in engine: what a real vLLM 0.32.0 counted for the same frames."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import SimulatorSettings
from gateway.simulator.video import Film, VideoInput, expand, load
from tests.media.video.clips import clip

# As in tests/models/test_clips.py: (frames, width, height) -> reported for Qwen3-VL and for Qwen2.5-VL.
REPORTED = {
    (2, 64, 64): (12, 144), (5, 320, 240): (264, 420), (16, 320, 180): (547, 1152), (32, 128, 96): (331, 2240),
    (7, 1170, 300): (1364, 1848), (3, 20, 20): (18, 288), (4, 30, 900): (76, 372), (9, 640, 360): (1140, 1495),
}  # fmt: skip
MODELS = ("Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct")


def of(model: str, video_frames: int = 32) -> SimulatorSettings:
    return SimulatorSettings(served_model_name=model, video_frames=video_frames)


def jpeg(width: int, height: int) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (9, 9, 9)).save(buffer, "JPEG")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize(("frames", "counts"), REPORTED.items())
def test_frames_cost_what_vllm_counted(frames: tuple[int, int, int], counts: tuple[int, int]) -> None:
    count, width, height = frames
    film = Film(width, height, tuple(float(index) for index in range(count)), "x")
    for model, reported in zip(MODELS, counts, strict=True):
        settings = of(model)
        assert len(expand(film, settings.geometry_family, settings.grid).token_ids) == reported


async def test_a_list_of_frames_is_cut_off_at_the_servers_bound() -> None:
    source = VideoInput("p", "data:video/jpeg;base64," + ",".join([jpeg(64, 32)] * 5))
    for bound, taken in ((32, 5), (4, 4), (-1, 5)):
        (film,) = await load([source], of(MODELS[0], video_frames=bound))
        assert (film.width, film.height, len(film.times_s)) == (64, 32, taken)


async def test_a_file_is_sampled_at_two_frames_a_second() -> None:
    source = VideoInput("p", "data:video/mp4;base64," + base64.b64encode(clip()).decode())
    for model in MODELS:
        (film,) = await load([source], of(model))
        assert (film.width, film.height, len(film.times_s)) == (96, 64, 4)


async def test_what_cannot_be_loaded_is_refused() -> None:
    for url, status in (
        ("data:video/mp4;base64,AAAA", 400),
        (f"data:video/jpeg;base64,{jpeg(64, 32)},{jpeg(32, 64)}", 500),
        ("data:video/jpeg;base64,AAAA", 400),
    ):
        with pytest.raises(Refusal) as caught:
            await load([VideoInput("p", url)], of(MODELS[0]))
        assert caught.value.status == status
    settings = of(MODELS[0])
    for film in (Film(64, 64, (0.0,), "x"), Film(8000, 32, (0.0, 1.0), "x")):
        with pytest.raises(Refusal):
            expand(film, settings.geometry_family, settings.grid)
