"""Durations from headers, against files of known length written by FFmpeg."""

from __future__ import annotations

import io
import wave

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.clip_source import sniffed
from gateway.media.sound import probe_sound
from gateway.types import Container

SECONDS = 2


def sound(kind: str, codec: str, rate: int = 48_000) -> bytes:
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=kind) as file:
        stream = file.add_stream(codec, rate=rate)
        assert isinstance(stream, av.AudioStream)
        stream.layout = "stereo"
        stream.bit_rate = 128_000
        frame_samples = 960
        for number in range(SECONDS * rate // frame_samples):
            frame = av.AudioFrame(format=stream.format.name, layout="stereo", samples=frame_samples)
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            frame.rate, frame.pts = rate, number * frame_samples
            for packet in stream.encode(frame):
                file.mux(packet)
        for packet in stream.encode(None):
            file.mux(packet)
    return buffer.getvalue()


def wav() -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(2 * 16_000 * SECONDS))
    return buffer.getvalue()


@pytest.mark.parametrize(("kind", "codec"), [("mp3", "libmp3lame"), ("ogg", "libopus"), ("flac", "flac")])
def test_compressed_sounds_tell_their_length(kind: str, codec: str) -> None:
    file = sound(kind, codec)
    found = probe_sound(file, sniffed(file[:64]))
    assert found.duration_s == pytest.approx(SECONDS, abs=0.1)


def test_wav_is_measured_by_what_is_there() -> None:
    file = wav()
    assert probe_sound(file, Container.WAV).duration_s == SECONDS
    endless = file.replace((2 * 16_000 * SECONDS).to_bytes(4, "little"), b"\xff\xff\xff\xff")
    assert probe_sound(endless, Container.WAV).duration_s == SECONDS


def test_constant_rate_mp3_is_measured_by_its_length() -> None:
    frame = b"\xff\xfb\x90\x00" + bytes(413)  # 128 kbit/s
    found = probe_sound(frame * 100, Container.MP3)
    assert found.duration_s == pytest.approx(41_700 * 8 / 128_000)


@given(st.sampled_from(list(Container)), st.binary(max_size=200), st.sampled_from([b"", b"OggS", b"RIFF", b"fLaC"]))
def test_any_bytes_have_a_length_or_none(container: Container, tail: bytes, head: bytes) -> None:
    found = probe_sound(head + tail, container).duration_s
    assert found is None or found >= 0
