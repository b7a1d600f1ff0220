"""The image worker: a process of its own that decodes what strangers sent, one job at a time, until its parent is gone.

Decided here: how a job is carried out and how the process is confined (memory, files, core dumps, its parent's life).
Not decided here: deadlines, retries, recycling (``pool``, in the loop's process) and pixels (``codecs``). Started as
``python -P -m gateway.media.worker SETUP``; it holds no secret, no socket but its channel, and writes nothing but its
own output region. It ignores SIGINT and SIGTERM, which supervisors send to every process of a group: the parent
decides when a drain is over, and closes the channel.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import mmap
import os
import resource
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Protocol, TypeAlias, assert_never

import msgspec
import pybase64

from gateway.errors import GatewayError, ImageTooLarge
from gateway.media.digest import content_digest, placement_digest
from gateway.media.messages import (
    MAX_MESSAGE_BYTES,
    Answer,
    Bytes,
    Effort,
    Examine,
    Examined,
    Failed,
    Prepare,
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
from gateway.media.sources import canonical_prefix, check_complete, check_pixels, check_size
from gateway.types import ImageFormat, ImagePlan, Probe, Size

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_DUMPABLE = 4
_MIB = 1024 * 1024
# An answer longer than this leaves its pages to the system before the next one is written.
_KEEP_OUTPUT_BYTES = 8 * _MIB
# Base64 is written in pieces of this many source bytes (a multiple of 3), so that no second copy of it all exists.
_BASE64_PIECE_BYTES = 3 * 256 * 1024
# Open files after start: standard streams, channel, slab, output, statm, and room for what a library opens once.
_MAX_FILES = 64


class Rendered(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def format(self) -> ImageFormat: ...
    @property
    def size(self) -> Size: ...


class Codec(Protocol):
    """The image libraries as the worker sees them; raises the errors of ``gateway.errors`` for bad images."""

    @property
    def fingerprint(self) -> str: ...
    def probe(self, data: bytes) -> Probe: ...
    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> Rendered: ...


Memory: TypeAlias = "mmap.mmap | memoryview"


class Bench:
    """Where one worker works: the slab it reads, the region it writes, the codec it uses."""

    def __init__(self, codec: Codec, slab: memoryview, output: mmap.mmap) -> None:
        self._codec = codec
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
                case Prepare():
                    return self._prepare(question, began_s)
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
        probe = self._codec.probe(data)
        check_pixels(probe, question.max_input_pixels)
        check_complete(probe)
        strict = question.source.is_text and payload.strict
        canonical, bare = strict and payload.prefix == canonical_prefix(probe), strict and not payload.prefix
        content = content_digest(data, key=question.content_key)
        return Examined(len(data), placement_digest(data), content, probe, canonical, self._effort(began_s), bare)

    def _prepare(self, question: Prepare, began_s: float) -> PreparedAt:
        data = self._read(question.source, question.max_image_bytes).data
        if question.plan.keeps_file:
            file, form, size = data, question.probe.format, question.probe.raster
        else:
            rendered = self._codec.render(data, question.probe, question.plan)
            file, form, size = rendered.data, rendered.format, rendered.size
        length = self._write_data_url(form, file)
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

    def _write_data_url(self, form: ImageFormat, file: bytes) -> int:
        """Write the canonical data URL to the output region; its length. Raises ImageTooLarge if it does not fit."""
        prefix = f"data:{form.media_type};base64,".encode("ascii")
        length = len(prefix) + (len(file) + 2) // 3 * 4
        if length > len(self._output):
            raise ImageTooLarge(f"The prepared image has {len(file)} bytes, more than can be delivered.")
        if self._written > _KEEP_OUTPUT_BYTES:
            self._output.madvise(mmap.MADV_REMOVE, 0, self._written)
        self._written = length
        at = len(prefix)
        self._output[:at] = prefix
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


def serve(setup: WorkerSetup, channel: socket.socket, codec: Codec) -> None:
    """Answer questions until the parent closes the channel."""
    slab = mmap.mmap(setup.slab_fd, setup.slab_bytes, mmap.MAP_SHARED, mmap.PROT_READ)
    output = mmap.mmap(setup.output_fd, setup.output_bytes)
    bench = Bench(codec, memoryview(slab), output)
    channel.send(encode(Ready(codec.fingerprint, bench.rss_bytes())))
    while data := channel.recv(MAX_MESSAGE_BYTES):
        channel.send(encode(bench.answer(decode_question(data))))


def confine(setup: WorkerSetup) -> None:
    """Bound what a hostile image can do to this machine, and tie this process to its parent's life.

    Private memory is limited by RLIMIT_DATA (Linux counts private writable mappings there since 4.7) and, for kernels
    that do not, by RLIMIT_AS with room for the shared mappings and libraries.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != setup.parent_pid:  # the parent died before the line above
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    shared_bytes = setup.slab_bytes + setup.output_bytes + 1024 * _MIB
    _limit(resource.RLIMIT_DATA, setup.memory_bytes)
    _limit(resource.RLIMIT_AS, setup.memory_bytes + shared_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _MAX_FILES)
    os.nice(setup.nice)
    # A question wakes a worker on the loop's own CPU; it must not take that CPU while the loop is at something.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    # When memory runs out, the kernel should take an image worker and not the process that holds every connection.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")
    # Last, since it takes the process's own files in /proc away: no core dump of users' images, even by pipe.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def run(argument: str, load_codec: CodecLoader) -> int:
    """The whole life of a worker; returns its exit status."""
    setup = msgspec.json.decode(argument, type=WorkerSetup)
    confine(setup)
    channel = socket.socket(fileno=setup.channel_fd)
    try:
        codec = load_codec(setup.codec_backend)
    except Exception as error:  # noqa: BLE001 - the operator must hear why, whatever a native library raised
        channel.send(encode(StartFailed(f"{type(error).__name__}: {error}"[:2_000])))
        return 1
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(setup, channel, codec)
    return 0


class CodecLoader(Protocol):
    def __call__(self, name: str, /) -> Codec: ...


class BackendCodec:
    """The configured codec backend together with the header probe."""

    def __init__(self, name: str) -> None:
        # Imported here: the loop's process reads this module's Protocols in tests and must stay free of pixels.
        from gateway.media import codecs  # noqa: PLC0415
        from gateway.media.codecs.probe import probe_all  # noqa: PLC0415

        self._backend = codecs.load_backend(name)
        self._probe = probe_all

    @property
    def fingerprint(self) -> str:
        return self._backend.fingerprint

    def probe(self, data: bytes) -> Probe:
        return self._probe(data)

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> Rendered:
        return self._backend.render(data, probe, plan)


def _limit(which: int, value: int) -> None:
    """Lower a limit, soft and hard; never above what the parent already lives under."""
    _, hard = resource.getrlimit(which)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))


def _where(error: Exception) -> str:
    """Type and place of a surprise, never its text: libraries like to quote the data."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {place}"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], BackendCodec))
