"""What the loop's process and an image worker say to each other: small datagrams, one question, one answer.

Decided here: the shape of each message. Not decided here: where the bytes lie (the slab and the worker's own output
region; messages carry offsets only). MessagePack over a SOCK_SEQPACKET pair, so that a message is whole or not there.
Answers come from a process that has touched hostile bytes: the loop decodes them by type and believes no length.
"""

from __future__ import annotations

import msgspec

from gateway import errors
from gateway.media.confine.report import BoxReport, SandboxMode
from gateway.ports import Accepts
from gateway.types import ClipPlan, ClipProbe, Detail, ImageFormat, ImagePlan, MediumKind, Probe, Size

# Far above any message; a plan takes some 600 bytes.
MAX_MESSAGE_BYTES = 16 * 1024
_MAX_TEXT = 500


class WorkerSetup(msgspec.Struct, frozen=True):
    """What a worker is started with, as JSON in its only argument; no secret, since arguments can be listed."""

    channel_fd: int
    slab_fd: int
    slab_bytes: int
    output_fd: int
    output_bytes: int
    parent_pid: int
    codec_backend: str
    memory_bytes: int
    nice: int
    hurried: bool  # whether somebody may be waiting for it to be ready
    sandbox: SandboxMode
    sandbox_user: str


class Bytes(msgspec.Struct, frozen=True, array_like=True):
    """Where a source lies in the slab. ``is_text``: a source string; otherwise the file itself (fetched)."""

    offset: int
    length: int
    is_text: bool
    has_escapes: bool


class Examine(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Decode the text, name the bytes, read the header; no pixel is touched."""

    source: Bytes
    content_key: bytes
    max_image_bytes: int
    max_input_pixels: int
    accepts: Accepts = Accepts()


class Prepare(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Carry out a plan and write the whole data URL to the output region."""

    source: Bytes
    plan: ImagePlan
    probe: Probe
    max_image_bytes: int
    wants_sha256: bool


class Measure(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Decode an examined image small and measure its detail, and how near to it a picture of each size would be."""

    source: Bytes
    probe: Probe
    max_image_bytes: int
    sizes: tuple[Size, ...] = ()


class ExamineClip(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Decode the text of a video or sound, name its bytes, read its header. ``is_bare``: base64 without a data URL."""

    source: Bytes
    kind: MediumKind
    is_bare: bool
    content_key: bytes
    max_bytes: int
    max_pixels: int


class PrepareClip(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Write a clip's data URL: its file, or its plan's frames; decoding gives up by itself after ``deadline_s``."""

    source: Bytes
    kind: MediumKind
    is_bare: bool
    plan: ClipPlan
    probe: ClipProbe
    max_bytes: int
    deadline_s: float


class Ready(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The codecs are loaded, the box is closed. ``fingerprint`` is the plan version; every worker must say the same."""

    fingerprint: str
    rss_bytes: int
    box: BoxReport = BoxReport()


class StartFailed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The worker cannot work at all; ``reason`` is for the operator."""

    reason: str


class Effort(msgspec.Struct, frozen=True, array_like=True):
    """What the job cost: private resident memory afterwards, CPU seconds of the whole worker during the job."""

    rss_bytes: int
    cpu_s: float


class Examined(msgspec.Struct, frozen=True, tag=True, array_like=True):
    byte_count: int
    placement: bytes
    content: bytes
    probe: Probe
    canonical: bool
    effort: Effort
    bare_base64: bool = False


class Measured(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """``psnr_db``: of each size asked for, once shrunk to it and brought back."""

    detail: Detail
    psnr_db: tuple[float, ...]
    effort: Effort


class PreparedAt(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The data URL is the first ``length`` bytes of the output region until the next question."""

    length: int
    width: int
    height: int
    format: ImageFormat
    file_byte_count: int
    file_sha256: bytes | None
    effort: Effort


class ExaminedClip(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """``flaw`` is the code of what keeps the header from being understood, empty when nothing does."""

    byte_count: int
    placement: bytes
    content: bytes
    probe: ClipProbe
    flaw: str
    effort: Effort


class ClipAt(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The clip's data URL is the first ``length`` bytes of the output region until the next question."""

    length: int
    width: int
    height: int
    file_byte_count: int
    effort: Effort


class Failed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    code: str
    message: str
    detail: str
    effort: Effort


Question = Examine | Measure | Prepare | ExamineClip | PrepareClip
# What a worker says of a job, and what it says of itself.
Report = Examined | Measured | PreparedAt | ExaminedClip | ClipAt | Failed
Answer = Ready | StartFailed | Report

_encoder = msgspec.msgpack.Encoder()
_question_decoder = msgspec.msgpack.Decoder(Question)
_answer_decoder = msgspec.msgpack.Decoder(Answer)

# A worker may only say what its job can find out; anything else it says is a bug of ours.
_WORKER_ERRORS: dict[str, type[errors.GatewayError]] = {
    error.code: error
    for error in (
        errors.InvalidRequest,
        errors.ImageTooLarge,
        errors.Undecodable,
        errors.UnsupportedFormat,
        errors.MediumTooLarge,
        errors.MediumTooLong,
        errors.MediumUndecodable,
        errors.MediumUnsupported,
    )
}


def encode(message: Question | Answer) -> bytes:
    """Raises ValueError for a message longer than ``MAX_MESSAGE_BYTES``."""
    data = _encoder.encode(message)
    if len(data) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {len(data)} bytes")
    return data


def decode_question(data: bytes) -> Question:
    """Raises msgspec.MsgspecError."""
    return _question_decoder.decode(data)


def decode_answer(data: bytes) -> Answer:
    """Raises msgspec.MsgspecError."""
    return _answer_decoder.decode(data)


def failure(error: errors.GatewayError, effort: Effort) -> Failed:
    """What a worker says of an expected failure."""
    return Failed(error.code, error.message[:_MAX_TEXT], (error.detail or "")[:_MAX_TEXT], effort)


def as_error(failed: Failed) -> errors.GatewayError:
    """The error a worker reported; a code that workers have no business with becomes GatewayBug."""
    kind = _WORKER_ERRORS.get(failed.code)
    if kind is None:
        return errors.GatewayBug(detail=f"image worker: {failed.code}: {failed.detail}")
    return kind(failed.message, detail=failed.detail or None)
