"""OpenAI: many images, resized and not refused; `detail` decides how far; every fault of an image is a 400.

Source: developers.openai.com, api/docs/guides/images-vision, as stored in November 2026: PNG, JPEG, WebP and still GIF;
512 MB and 1,500 images a request; `low` 512 x 512, `high` 2,500 patches of 32 pixels, `original` 10,000 patches and
6,000 pixels a side, `auto` as `high` (the numbers of gpt-5.4, see `models.closed.openai`). The 512 MB are a body's, in
base64: three quarters of them are files. Codes: openai-python 3.57, `types/responses/response_error.py`.
"""

from __future__ import annotations

from gateway.errors import Spelling
from gateway.policy.effective import Excess, Selection, Several
from gateway.policy.profiles.profile import VendorProfile
from gateway.types import ImageFormat

PROFILE = VendorProfile(
    "openai",
    rules={
        "max_images": 1_500,
        "max_total_bytes": 384 * 10**6,
        "formats": (ImageFormat.JPEG, ImageFormat.PNG, ImageFormat.WEBP, ImageFormat.GIF),
        "animated": Selection(Several.REJECT),
        "max_side": ((1, 6_000),),
        "detail": {
            "low": 512 * 512,
            "high": 2_500 * 32 * 32,
            "original": 10_000 * 32 * 32,
            "auto": 2_500 * 32 * 32,
        },
        "on_excess": {
            "max_images": Excess.REJECT,
            "max_side": Excess.SHRINK,
            "max_pixels": Excess.SHRINK,
        },
    },
    errors={
        "image_format_unsupported": Spelling(400, "invalid_image_format"),
        "image_undecodable": Spelling(400, "image_parse_error"),
        "image_too_large": Spelling(400, "image_too_large"),
        "source_blocked": Spelling(400, "invalid_image_url"),
        "source_failed": Spelling(400, "failed_to_download_image"),
        "source_too_large": Spelling(400, "image_file_too_large"),
        "model_not_found": Spelling(404, "model_not_found"),
    },
    words={429: "rate_limit_exceeded"},
)
