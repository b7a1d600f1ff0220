from __future__ import annotations

import pytest

from gateway.errors import UnsupportedFormat
from tests.fuzz.corpus import corpus
from tests.fuzz.drive import service
from tests.fuzz.send import Input, send

pytestmark = pytest.mark.slow


async def test_images_videos_and_sounds_each_go_their_way() -> None:
    seeds = corpus()
    async with service() as pipeline:
        for number, name in enumerate(("jpeg", "pdf-pages", "video-mp4", "sound-wav")):
            await send(pipeline, Input(number, name, seeds[name]))
        with pytest.raises(UnsupportedFormat):
            await send(pipeline, Input(0, "svg", seeds["svg"]))
