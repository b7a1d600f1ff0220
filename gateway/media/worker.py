"""The image worker: a process of its own that decodes what strangers sent, one job at a time, until its parent is gone.

Decided here: how a job is carried out. Not decided here: what the process may still do (``confine``), deadlines,
retries, recycling (``pool``, in the loop's process) and pixels (``codecs``). Started as
``python -P -m gateway.media.worker SETUP``; it holds no secret, no socket but its channel, and writes nothing but its
own output region. It ignores SIGINT and SIGTERM, which supervisors send to every process of a group: the parent
decides when a drain is over, and closes the channel.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, assert_never

import msgspec
import pybase64

from gateway.errors import GatewayError, ImageTooLarge
from gateway.media import clip_work, confine, video
from gateway.media.clip_source import ClipFile
from gateway.media.digest import content_digest, placement_digest
from gateway.media.messages import (
    MAX_MESSAGE_BYTES,
    Answer,
    Bytes,
    ClipAt,
    Effort,
    Examine,
    ExamineClip,
    Examined,
    ExaminedClip,
    Failed,
    Measure,
    Measured,
    Prepare,
    PrepareClip,
    PreparedAt,
    Question,
    Ready,
    StartFailed,
    WorkerSetup,
    decode_question,
    encode,
    failure,
)
from gateway.media.payload import Payload, read_text
from gateway.media.priority import step_back
from gateway.media.sources import canonical_prefix, check_accepted, check_pixels, check_size
from gateway.media.video import VideoLibrary
from gateway.ports import Accepts
from gateway.types import Detail, ImageFormat, ImagePlan, Probe, Size

_MIB = 1024 * 1024
# An answer longer than this leaves its pages to the system before the next one is written.
_KEEP_OUTPUT_BYTES = 8 * _MIB
# Base64 is written in pieces of this many source bytes (a multiple of 3), so that no second copy of it all exists.
_BASE64_PIECE_BYTES = 3 * 256 * 1024


class Rendered(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def format(self) -> ImageFormat: ...
    @property
    def size(self) -> Size: ...


class Codec(Protocol):
    """The image libraries as the worker sees them; raises the errors of ``gateway.errors`` for bad images.

    Once loaded it opens no file, and starts its first thread only when it is asked for something.
    """

    @property
    def fingerprint(self) -> str: ...
    def probe(self, data: bytes, accepts: Accepts) -> Probe: ...
    def measure(self, data: bytes, probe: Probe, sizes: Sequence[Size]) -> tuple[Detail, tuple[float, ...]]: ...
    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> Rendered: ...


VideoLoader: TypeAlias = Callable[[], VideoLibrary | None]


class Bench:
    """Where one worker works: the slab it reads, the region it writes, the codec it uses."""

    def __init__(self, codec: Codec, slab: memoryview, output: mmap.mmap, videos: VideoLibrary | None = None) -> None:
        self._codec = codec
        self._videos = videos
        self._slab = slab
        self._output = output
        self._written = 0
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def answer(self, question: Question) -> Answer:
        """Carry out one job; every failure is an answer, whatever a library raised."""
        began_s = time.process_time()
        try:
            match question:
                case Examine():
                    return self._examine(question, began_s)
                case Measure():
                    return self._measure(question, began_s)
                case Prepare():
                    return self._prepare(question, began_s)
                case ExamineClip():
                    return self._examine_clip(question, began_s)
                case PrepareClip():
                    return self._prepare_clip(question, began_s)
                case _:
                    assert_never(question)
        except GatewayError as error:
            return failure(error, self._effort(began_s))
        except MemoryError:
            too_large = ImageTooLarge("Decoding the image takes more memory than one image may use.")
            return failure(too_large, self._effort(began_s))
        except Exception as error:  # noqa: BLE001 - a library's surprise must not cost the worker
            return Failed("gateway_bug", "", _where(error), self._effort(began_s))

    def _examine(self, question: Examine, began_s: float) -> Examined:
        payload = self._read(question.source, question.max_image_bytes)
        data = payload.data
        check_size(len(data), question.max_image_bytes)
        probe = self._codec.probe(data, question.accepts)
        check_pixels(probe, question.max_input_pixels)
        check_accepted(probe, question.accepts)
        strict = question.source.is_text and payload.strict
        canonical, bare = strict and payload.prefix == canonical_prefix(probe), strict and not payload.prefix
        content = content_digest(data, key=question.content_key)
        return Examined(len(data), placement_digest(data), content, probe, canonical, self._effort(began_s), bare)

    def _measure(self, question: Measure, began_s: float) -> Measured:
        data = self._read(question.source, question.max_image_bytes).data
        detail, psnr_db = self._codec.measure(data, question.probe, question.sizes)
        return Measured(detail, psnr_db, self._effort(began_s))

    def _prepare(self, question: Prepare, began_s: float) -> PreparedAt:
        data = self._read(question.source, question.max_image_bytes).data
        if question.plan.keeps_file:
            file, form, size = data, question.probe.format, question.probe.raster
        else:
            rendered = self._codec.render(data, question.probe, question.plan)
            file, form, size = rendered.data, rendered.format, rendered.size
        length = self._write_data_url(form.media_type, [file])
        sha256 = hashlib.sha256(file).digest() if question.wants_sha256 else None
        return PreparedAt(length, size.width, size.height, form, len(file), sha256, self._effort(began_s))

    def _read(self, source: Bytes, max_image_bytes: int) -> Payload:
        view = self._slab[source.offset : source.offset + source.length]
        try:
            if source.is_text:
                return read_text(view, has_escapes=source.has_escapes, max_image_bytes=max_image_bytes)
            check_size(source.length, max_image_bytes)
            return Payload(bytes(view), b"", strict=False)
        finally:
            view.release()

    def _examine_clip(self, question: ExamineClip, began_s: float) -> ExaminedClip:
        file = self._read_clip(question)
        probe, flaw = clip_work.probed(file, question.kind, question.max_pixels, self._videos)
        content = content_digest(file.data, key=question.content_key)
        placement = placement_digest(file.data)
        return ExaminedClip(len(file.data), placement, content, probe, flaw, self._effort(began_s))

    def _prepare_clip(self, question: PrepareClip, began_s: float) -> ClipAt:
        media_type, files, size = clip_work.prepared(question, self._read_clip(question), self._videos)
        length = self._write_data_url(media_type, files)
        return ClipAt(length, size.width, size.height, sum(map(len, files)), self._effort(began_s))

    def _read_clip(self, question: ExamineClip | PrepareClip) -> ClipFile:
        source = question.source
        with self._slab[source.offset : source.offset + source.length] as view:
            return clip_work.read(question, view)

    def _write_data_url(self, media_type: str, files: Sequence[bytes]) -> int:
        """Write the canonical data URL to the output region; its length. Several files stand there one by one.

        Raises ImageTooLarge if it does not fit.
        """
        prefix = f"data:{media_type};base64,".encode("ascii")
        length = len(prefix) + sum((len(file) + 2) // 3 * 4 for file in files) + len(files) - 1
        if length > len(self._output):
            raise ImageTooLarge(f"What was prepared has {sum(map(len, files))} bytes, more than can be delivered.")
        if self._written > _KEEP_OUTPUT_BYTES:
            self._output.madvise(mmap.MADV_REMOVE, 0, self._written)
        self._written = length
        at = len(prefix)
        self._output[:at] = prefix
        for index, file in enumerate(files):
            if index:
                self._output[at : at + 1] = b","
                at += 1
            for start in range(0, len(file), _BASE64_PIECE_BYTES):
                piece = pybase64.b64encode(memoryview(file)[start : start + _BASE64_PIECE_BYTES])
                self._output[at : at + len(piece)] = piece
                at += len(piece)
        return length

    def _effort(self, began_s: float) -> Effort:
        return Effort(self.rss_bytes(), time.process_time() - began_s)

    def rss_bytes(self) -> int:
        """Resident memory that is this process's own: without the slab's and the libraries' shared pages."""
        fields = os.pread(self._statm, 128, 0).split()
        return (int(fields[1]) - int(fields[2])) * self._page_bytes


def serve(bench: Bench, channel: socket.socket) -> None:
    """Answer questions until the parent closes the channel."""
    while data := channel.recv(MAX_MESSAGE_BYTES):
        channel.send(encode(bench.answer(decode_question(data))))


def get_ready(setup: WorkerSetup, load_codec: CodecLoader, load_videos: VideoLoader) -> tuple[Bench, Ready]:
    """Load the codecs, close the box, and try them inside it. Raises whatever keeps the worker from working."""
    if not setup.hurried:
        step_back(setup.nice)
    codec = load_codec(setup.codec_backend)
    videos = load_videos()
    slab = mmap.mmap(setup.slab_fd, setup.slab_bytes, mmap.MAP_SHARED, mmap.PROT_READ)
    output = mmap.mmap(setup.output_fd, setup.output_bytes)
    os.close(setup.slab_fd)  # the mappings keep descriptors of their own
    os.close(setup.output_fd)
    bench = Bench(codec, memoryview(slab), output, videos)
    if setup.hurried:
        step_back(setup.nice)
    box = confine.enclose(setup.sandbox, setup.sandbox_user, setup.parent_pid)
    return bench, Ready(codec.fingerprint, bench.rss_bytes(), box)


def run(argument: str, load_codec: CodecLoader, load_videos: VideoLoader) -> int:
    """The whole life of a worker; returns its exit status."""
    setup = msgspec.json.decode(argument, type=WorkerSetup)
    confine.limit(setup.memory_bytes, setup.slab_bytes + setup.output_bytes)
    confine.follow(setup.parent_pid)
    channel = socket.socket(fileno=setup.channel_fd)
    try:
        bench, ready = get_ready(setup, load_codec, load_videos)
    except Exception as error:  # noqa: BLE001 - the operator must hear why, whatever a native library raised
        channel.send(encode(StartFailed(f"{type(error).__name__}: {error}"[:2_000])))
        return 1
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        channel.send(encode(ready))
        serve(bench, channel)
    return 0


class CodecLoader(Protocol):
    def __call__(self, name: str, /) -> Codec: ...


class BackendCodec:
    """The configured codec backend together with the header probe."""

    def __init__(self, name: str) -> None:
        # Imported here: the loop's process reads this module's Protocols in tests and must stay free of pixels.
        from gateway.media import codecs  # noqa: PLC0415
        from gateway.media.codecs.decoders import look_at  # noqa: PLC0415
        from gateway.media.codecs.detail import measure  # noqa: PLC0415

        self._backend = codecs.load_backend(name)
        self._look_at = look_at
        self._measure = measure

    @property
    def fingerprint(self) -> str:
        return self._backend.fingerprint

    def probe(self, data: bytes, accepts: Accepts) -> Probe:
        return self._look_at(data, documents=accepts.documents)

    def measure(self, data: bytes, probe: Probe, sizes: Sequence[Size]) -> tuple[Detail, tuple[float, ...]]:
        return self._measure(data, probe, sizes)

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> Rendered:
        return self._backend.render(data, probe, plan)


def _where(error: Exception) -> str:
    """Type and place of a surprise, never its text: libraries like to quote the data."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {place}"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], BackendCodec, video.load))
