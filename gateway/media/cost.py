"""What a job will take before it runs: seconds (to order and to refuse) and memory (to run no more than fits).

Decided here: the rules of thumb, measured on one Zen 3 core with this project's pipelines (glibc settings of
``process``). They are upper bounds for memory and starting points for time: ``pace`` scales time by what the pool
observes. Not decided here: limits. Pure arithmetic; bytes, pixels, seconds.
"""

from __future__ import annotations

from typing import assert_never

from gateway.media.codecs.scaling import measured_shrink, pixels_needed, stored_target
from gateway.media.messages import Examine, ExamineClip, Measure, Prepare, PrepareClip, Question
from gateway.types import ColourModel, ImageFormat, ImagePlan, MediumKind, Probe

# Per byte of source text: base64, two digests, the header's walk.
_EXAMINE_S_PER_BYTE = 1.0e-9
_EXAMINE_FLOOR_S = 0.5e-3
_PREPARE_FLOOR_S = 2.0e-3
# Decode, resize and encode, per source pixel.
_S_PER_PIXEL = {
    ImageFormat.JPEG: 7.5e-9,
    ImageFormat.PNG: 12e-9,
    ImageFormat.WEBP: 12e-9,
    ImageFormat.HEIC: 75e-9,
    ImageFormat.JPEG2000: 100e-9,
}
_OTHER_S_PER_PIXEL = 25e-9
# Coefficients are decoded scan by scan: each further scan costs about a tenth of a baseline decode.
_SCAN_SHARE = 0.1

# Bytes per pixel, held against `python -m benchmarks memory`. JPEG: RGBX of the pixels left when shrunk on load. PNG:
# RGB and the resizer's RGBX. JPEG 2000: 32 bits a sample. Others: the animation decoder's canvas, or a whole-image
# buffer twice.
_RGBX_BYTES_PER_PIXEL = 4
_PROGRESSIVE_BYTES_PER_PIXEL = 6  # coefficients of 4:4:4; held at any scale
_BYTES_PER_PIXEL = {ImageFormat.PNG: 7, ImageFormat.JPEG2000: 24}
_OTHER_BYTES_PER_PIXEL = 8
_TARGET_BYTES_PER_PIXEL = 8  # resized RGBX, encoder's copy, encoded file


# Brightness alone, scaled: mostly Huffman codes; then the measure, of pixels left, with room for the octaves' means.
_GREY_JPEG_S_PER_PIXEL = 3.0e-9
_MEASURE_S_PER_PIXEL = 5.0e-9
_MEASURED_BYTES_PER_PIXEL = 4

# A container's index, the decoder's start and its first picture.
_EXAMINE_CLIP_S = 10.0e-3
# H.264 at 1080p takes 4 to 6 ms a frame on one core; frames between keyframes that nobody wants are not decoded.
_VIDEO_S_PER_PIXEL = 2.5e-9
# Reference pictures of H.264's and HEVC's levels: 16 of 4:2:0 with borders, and one in RGB.
_VIDEO_BYTES_PER_PIXEL = 30
_USUAL_VIDEO_PIXELS = 1920 * 1080


def expected_s(question: Question) -> float:
    """Seconds one worker will be busy."""
    match question:
        case Examine():
            return _EXAMINE_FLOOR_S + question.source.length * _EXAMINE_S_PER_BYTE
        case Measure():
            decode_s = _EXAMINE_FLOOR_S + question.source.length * _EXAMINE_S_PER_BYTE
            return decode_s + _measure_s(question.probe)
        case Prepare():
            decode_s = question.source.length * _EXAMINE_S_PER_BYTE
            if question.plan.keeps_file:
                return _EXAMINE_FLOOR_S + decode_s
            probe = question.probe
            # A frame of an animation is composed of all before it; a page stands alone.
            pictures = 1 if probe.format.is_document else 1 + question.plan.frame
            pixel_s = probe.raster.pixels * pictures * _S_PER_PIXEL.get(probe.format, _OTHER_S_PER_PIXEL)
            return _PREPARE_FLOOR_S + decode_s + pixel_s * (1 + _SCAN_SHARE * (probe.scans - 1))
        case ExamineClip():
            return _EXAMINE_CLIP_S + question.source.length * _EXAMINE_S_PER_BYTE
        case PrepareClip():
            decode_s = _EXAMINE_FLOOR_S + question.source.length * _EXAMINE_S_PER_BYTE
            return decode_s + _decoded_pixels(question) * _VIDEO_S_PER_PIXEL
        case _:
            assert_never(question)


def kind_of(question: Question) -> str:
    """Jobs of one kind are mistaken alike by the rules of thumb."""
    match question:
        case Examine():
            return "examine"
        case Measure():
            return f"measure {question.probe.format.value}"
        case Prepare():
            if question.plan.keeps_file:
                return "keep"
            form = question.probe.format.value
            return f"{form} by scans" if question.probe.progressive else form
        case ExamineClip():
            return f"examine {question.kind.value}"
        case PrepareClip():
            return "keep" if question.plan.keeps_file else question.probe.codec
        case _:
            assert_never(question)


def predicted_bytes(question: Question) -> int:
    """Private memory one worker will need above its idle size."""
    # The decoded file, and the copies that a lenient spelling costs.
    source = question.source.length * (4 if question.source.has_escapes else 2)
    match question:
        case Examine():
            return source
        case Measure():
            return source + _measured_bytes(question.probe)
        case Prepare():
            if question.plan.keeps_file:
                return source
            return source + _pixel_bytes(question.probe, question.plan)
        case ExamineClip():
            pixels = question.max_pixels if question.kind is MediumKind.VIDEO else 0
            return source + min(pixels, _USUAL_VIDEO_PIXELS) * _VIDEO_BYTES_PER_PIXEL
        case PrepareClip():
            return source + _clip_bytes(question)
        case _:
            assert_never(question)


def _pixel_bytes(probe: Probe, plan: ImagePlan) -> int:
    pixels, stored = probe.raster.pixels, stored_target(probe, plan)
    if probe.format is ImageFormat.JPEG:
        decoded = pixels_needed(probe.raster, stored, plan.fidelity)
        pixel_bytes = decoded.pixels * _RGBX_BYTES_PER_PIXEL
        pixel_bytes += pixels * _PROGRESSIVE_BYTES_PER_PIXEL if probe.progressive else 0
    else:
        decoded = probe.raster
        per_pixel = _BYTES_PER_PIXEL.get(probe.format, _OTHER_BYTES_PER_PIXEL)
        pixel_bytes = pixels * per_pixel * (2 if probe.bits_per_sample > 8 else 1)
    # Between its two passes the resizer holds one side as it was and one as it shall be.
    between = max(stored.width * decoded.height, stored.height * decoded.width) * _RGBX_BYTES_PER_PIXEL
    return pixel_bytes + between + stored.pixels * _TARGET_BYTES_PER_PIXEL


def _measure_s(probe: Probe) -> float:
    pixels = probe.raster.pixels
    measured_s = pixels // measured_shrink(probe.raster) ** 2 * _MEASURE_S_PER_PIXEL
    if probe.format is ImageFormat.JPEG:
        return measured_s + pixels * _GREY_JPEG_S_PER_PIXEL * (1 + _SCAN_SHARE * (probe.scans - 1))
    return measured_s + pixels * _S_PER_PIXEL.get(probe.format, _OTHER_S_PER_PIXEL)


def _measured_bytes(probe: Probe) -> int:
    """One byte a pixel is measured; what is no JPEG (or one of inks) is decoded whole before, with a copy for PIL."""
    pixels = probe.raster.pixels
    measured_bytes = pixels // measured_shrink(probe.raster) ** 2 * _MEASURED_BYTES_PER_PIXEL
    if probe.format is ImageFormat.JPEG and probe.colour is not ColourModel.CMYK:
        return measured_bytes + (pixels * _PROGRESSIVE_BYTES_PER_PIXEL if probe.progressive else 0)
    decoded_bytes = pixels * _OTHER_BYTES_PER_PIXEL * (2 if probe.bits_per_sample > 8 else 1)
    return measured_bytes + decoded_bytes + pixels * _RGBX_BYTES_PER_PIXEL


def _decoded_pixels(question: PrepareClip) -> int:
    indices, size = question.plan.indices, question.probe.size
    return 0 if not indices or size is None else (indices[-1] + 1) * size.pixels


def _clip_bytes(question: PrepareClip) -> int:
    plan, size = question.plan, question.probe.size
    if plan.target is None or size is None:
        return 0
    return size.pixels * _VIDEO_BYTES_PER_PIXEL + plan.target.pixels * (len(plan.indices) + _TARGET_BYTES_PER_PIXEL)
