"""What is asked while gateways come and go: texts, pictures, streams, slow uploads, sounds; the same in every run.

Pictures repeat, so that a backend that was given one holds it. A large picture comes in pieces over a while, as from a
phone, and so does a sound, whose body is passed on while it comes.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy
import simplejpeg

from tests.simulator.process import chat, image_part

PICTURES = 24
_SOUND_BYTES = 200_000
_BOUNDARY = "rollout-boundary"
CHAT, SOUNDS = "/v1/chat/completions", "/v1/audio/transcriptions"


class Kind(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    STREAM = "stream"
    UPLOAD = "upload"
    SOUND = "sound"


_SHARES = {Kind.TEXT: 45, Kind.IMAGE: 27, Kind.STREAM: 18, Kind.UPLOAD: 5, Kind.SOUND: 5}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. ``pieces`` above 1: it is sent in so many, ``pause_s`` apart. ``picture``: which one it shows."""

    number: int
    kind: Kind
    path: str
    content_type: str
    body: bytes
    picture: int | None = None
    pieces: int = 1
    pause_s: float = 0.0

    @property
    def request_id(self) -> str:
        """What it is called in every log."""
        return f"rollout-{self.number}"


class Deck:
    """Draws requests without end. ``stream_tokens``: how long the shortest and the longest stream is."""

    def __init__(self, stream_tokens: tuple[int, int], seed: int = 1) -> None:
        self._stream_tokens = stream_tokens
        self._dice = random.Random(seed)
        self._small = [_picture(number, 448, 336) for number in range(PICTURES)]
        self._large = [_picture(100 + number, 1400, 1000) for number in range(2)]
        self._drawn = 0

    def opening(self) -> list[Ask]:
        """Every picture once, so that each has a home before anything is judged."""
        return [self._image(picture) for picture in range(PICTURES)]

    def __iter__(self) -> Iterator[Ask]:
        while True:
            (kind,) = self._dice.choices(list(_SHARES), list(_SHARES.values()))
            match kind:
                case Kind.TEXT:
                    yield self.small_talk()
                case Kind.IMAGE:
                    yield self._image(self._dice.randrange(PICTURES))
                case Kind.STREAM:
                    tokens = self._dice.randint(*self._stream_tokens)
                    told = {"stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True}
                    yield self._chat(kind, "Go on for a while.", max_tokens=tokens, min_tokens=tokens, **told)
                case Kind.UPLOAD:
                    yield self._upload()
                case _:
                    yield self._sound()

    def small_talk(self) -> Ask:
        """A text."""
        return self._chat(Kind.TEXT, f"How are you, for the {self._drawn}th time?", max_tokens=4)

    def _number(self) -> int:
        self._drawn += 1
        return self._drawn

    def _chat(self, kind: Kind, *parts: dict[str, object] | str, **fields: object) -> Ask:
        return Ask(self._number(), kind, CHAT, "application/json", json.dumps(chat(*parts, **fields)).encode())

    def _image(self, picture: int) -> Ask:
        body = json.dumps(chat(image_part(self._small[picture]), f"Picture {picture}?", max_tokens=4)).encode()
        return Ask(self._number(), Kind.IMAGE, CHAT, "application/json", body, picture=picture)

    def _upload(self) -> Ask:
        number = self._number()
        body = json.dumps(chat(image_part(self._dice.choice(self._large)), f"And number {number}?", max_tokens=4))
        return Ask(number, Kind.UPLOAD, CHAT, "application/json", body.encode(), pieces=8, pause_s=0.1)

    def _sound(self) -> Ask:
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'.encode()
        body = head + bytes(_SOUND_BYTES) + f"\r\n--{_BOUNDARY}--\r\n".encode()
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        return Ask(self._number(), Kind.SOUND, SOUNDS, kind, body, pieces=8, pause_s=0.1)


def _picture(seed: int, width: int, height: int) -> str:
    """A data URL of soft shapes under noise."""
    across, down = numpy.meshgrid(numpy.linspace(0, 9, width), numpy.linspace(seed, seed + 7, height))
    noise = numpy.random.default_rng(seed).normal(0, 8, (height, width, 1))
    soft = 128 + 60 * numpy.sin(across) * numpy.cos(down)
    pixels = numpy.clip(numpy.repeat(soft[..., None] + noise, 3, axis=2), 0, 255).astype(numpy.uint8)
    return "data:image/jpeg;base64," + base64.b64encode(simplejpeg.encode_jpeg(pixels, quality=85)).decode()
