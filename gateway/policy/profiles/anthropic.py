"""Anthropic: few images, refused above a side that depends on their number, else shrunk to 1,568 squares of 28 pixels.

Source: platform.claude.com, build-with-claude/vision and api/errors, as stored in November 2026: JPEG, PNG, GIF, WebP;
100 images a request for models with a context of 200,000 tokens (600 for the others); sides up to 8,000 pixels, up to
2,000 with more than 20 images; 10 MB an image, 32 MB a body (three quarters of them are files); an image above 1,568
pixels or 1,568 tokens is scaled down (the standard tier). Faults of a request are 400 `invalid_request_error`, an
overload is 529; the envelope has no code.
"""

from __future__ import annotations

from gateway.errors import Spelling
from gateway.policy.effective import Excess
from gateway.policy.profiles.profile import VendorProfile
from gateway.types import ImageFormat

_OVERLOADED = ("overloaded", "pool_saturated", "body_memory_exhausted", "draining", "no_backend")
_FAULTS = ("image_format_unsupported", "source_blocked", "source_failed", "source_too_large")

PROFILE = VendorProfile(
    "anthropic",
    rules={
        "max_images": 100,
        "max_image_bytes": 10 * 10**6,
        "max_total_bytes": 24 * 10**6,
        "formats": (ImageFormat.JPEG, ImageFormat.PNG, ImageFormat.WEBP, ImageFormat.GIF),
        "max_input_side": ((1, 8_000), (21, 2_000)),
        "max_side": ((1, 1_568),),
        "max_pixels": 1_568 * 28 * 28,
        "on_excess": {
            "max_images": Excess.REJECT,
            "max_side": Excess.SHRINK,
            "max_pixels": Excess.SHRINK,
        },
    },
    errors={
        **dict.fromkeys(_FAULTS, Spelling(400, "invalid_request_error")),
        **dict.fromkeys(_OVERLOADED, Spelling(529, "overloaded_error")),
    },
    words={400: "invalid_request_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"},
)
