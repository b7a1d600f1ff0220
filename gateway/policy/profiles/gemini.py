"""Gemini: thousands of images, scaled to fit 3,072 pixels; errors are Google's canonical codes.

Source: ai.google.dev, gemini-api/docs/image-understanding and api-errors, as stored in November 2026: PNG, JPEG, WebP
(and HEIC where this gateway decodes it); 3,600 images a request; bodies up to 100 MB (three quarters of them are
files); larger sides are scaled down. It has no `detail`: its counterpart, `media_resolution`, is no field of the APIs
spoken here, so the client's `detail` is ignored.
"""

from __future__ import annotations

from gateway.errors import Spelling
from gateway.policy.effective import Excess
from gateway.policy.profiles.profile import VendorProfile
from gateway.policy.rules.formats import DECODED
from gateway.types import ImageFormat

_TAKEN = (ImageFormat.JPEG, ImageFormat.PNG, ImageFormat.WEBP, ImageFormat.HEIC)
_INVALID = ("image_format_unsupported", "source_blocked", "source_failed", "source_too_large")

PROFILE = VendorProfile(
    "gemini",
    rules={
        "max_images": 3_600,
        "max_total_bytes": 75 * 10**6,
        "formats": tuple(kind for kind in ImageFormat if kind in _TAKEN and kind in DECODED),
        "max_side": ((1, 3_072),),
        "detail": None,
        "on_excess": {
            "max_images": Excess.REJECT,
            "max_side": Excess.SHRINK,
            "max_pixels": Excess.SHRINK,
        },
    },
    errors=dict.fromkeys(_INVALID, Spelling(400, "INVALID_ARGUMENT")),
    words={
        400: "INVALID_ARGUMENT",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    },
)
