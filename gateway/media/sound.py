"""How long a sound lasts, by its header: WAV, FLAC, Ogg (Vorbis, Opus) and MP3. Nothing is decoded.

``None`` where a file does not tell, or is of another kind: whoever has a limit refuses it then. A header can lie about
what follows; durations by length of data (WAV, MP3 of constant rate) and by position (Ogg) cannot by much.

Sources of the layouts: RIFF/WAVE (Microsoft), RFC 9639 §8.2 (FLAC), RFC 3533 §6 and RFC 7845 §4 (Ogg, Opus),
ISO/IEC 11172-3 §2.4.2.3 (MPEG audio frames) with Xing's frame count.
"""

from __future__ import annotations

from gateway.types import ClipProbe, Container

# kbit/s by index of the frame header, for layer III of MPEG 1 and of MPEG 2 and 2.5.
_MP3_KBITS_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MP3_KBITS_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MP3_RATES_1 = (44_100, 48_000, 32_000)
_OPUS_RATE = 48_000
# How far behind its tag an MP3's first frame is looked for.
_SYNC_WINDOW_BYTES = 8192


def probe_sound(data: bytes, container: Container) -> ClipProbe:
    """The header's word; never raises for what a stranger sent."""
    readers = {Container.WAV: _wav_s, Container.FLAC: _flac_s, Container.OGG: _ogg_s, Container.MP3: _mp3_s}
    reader = readers.get(container)
    return ClipProbe(container, None if reader is None else reader(data))


def _wav_s(data: bytes) -> float | None:
    at, byte_rate = 12, 0
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name == b"fmt " and size >= 16:
            byte_rate = int.from_bytes(data[at + 16 : at + 20], "little")
        if name == b"data":
            held = len(data) - at - 8  # streamed files say 0 or 2^32 - 1
            return min(size or held, held) / byte_rate if byte_rate else None
        at += 8 + size + size % 2
    return None


def _flac_s(data: bytes) -> float | None:
    """STREAMINFO comes first: 20 bits of sample rate, 8 of channels and depth, 36 of samples."""
    if len(data) < 26 or data[4] & 0x7F:
        return None
    packed = int.from_bytes(data[18:26], "big")
    rate, samples = packed >> 44, packed & (1 << 36) - 1
    return samples / rate if rate and samples else None


def _ogg_s(data: bytes) -> float | None:
    """The last page's position over the rate that the first one names."""
    is_opus = data[28:36] == b"OpusHead"
    if not is_opus and data[28:35] != b"\x01vorbis":
        return None
    rate = _OPUS_RATE if is_opus else int.from_bytes(data[40:44], "little")
    skipped = int.from_bytes(data[38:40], "little") if is_opus else 0
    last = data.rfind(b"OggS")
    position = int.from_bytes(data[last + 6 : last + 14], "little", signed=True)
    return max(0, position - skipped) / rate if rate and position > 0 else None


def _mp3_s(data: bytes) -> float | None:
    at = 0
    if data[:3] == b"ID3" and len(data) > 10:
        at = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(data[6:10], (21, 14, 7, 0), strict=True))
    for start in range(at, min(len(data) - 4, at + _SYNC_WINDOW_BYTES)):
        found = _mp3_frame(data, start)
        if found is not None:
            return found
    return None


def _mp3_frame(data: bytes, at: int) -> float | None:
    """The whole file's duration by its first frame header at ``at``; ``None`` where there is none."""
    header = int.from_bytes(data[at : at + 4], "big")
    version, layer = header >> 19 & 3, header >> 17 & 3  # version 3: MPEG 1, 2: MPEG 2, 0: 2.5; layer 1: III
    bit_rate, rate = header >> 12 & 15, header >> 10 & 3
    if header >> 21 != 0x7FF or version == 1 or layer != 1 or bit_rate in (0, 15) or rate == 3:
        return None
    is_first = version == 3
    hertz = _MP3_RATES_1[rate] // {3: 1, 2: 2, 0: 4}[version]
    is_mono = header >> 6 & 3 == 3
    side_bytes = (17 if is_mono else 32) if is_first else (9 if is_mono else 17)
    tag = at + 4 + side_bytes
    if data[tag : tag + 4] in (b"Xing", b"Info") and data[tag + 7] & 1:
        frames = int.from_bytes(data[tag + 8 : tag + 12], "big")
        return frames * (1152 if is_first else 576) / hertz
    kbits = (_MP3_KBITS_1 if is_first else _MP3_KBITS_2)[bit_rate]
    return (len(data) - at) * 8 / (kbits * 1000)
