"""What becomes of a document of several pages (TIFF, and PDF where `formats` lists it).

Under `all:N` every page becomes an image of its own, and a document of more than N is refused: half a document would
be answered as if it were all of it. `first` says so in its name.
"""

from __future__ import annotations

from gateway.errors import TooManyImages, UnsupportedFormat
from gateway.policy.effective import FIRST, RuleValues, Several
from gateway.policy.rule import Measured, Rule
from gateway.policy.selections import Selections
from gateway.types import MAX_PAGES


def _measured(values: RuleValues, measured: Measured) -> TooManyImages | UnsupportedFormat | None:
    for image in measured.images:
        if image.frames < 2 or not image.format.is_document:
            continue
        if values.pages.how is Several.REJECT:
            return UnsupportedFormat(
                f"The document has {image.frames} pages, the policy accepts one.", part=image.name, rule="pages"
            )
        if values.pages.how is Several.MANY and image.frames > values.pages.count:
            return TooManyImages(
                f"The document has {image.frames} pages, the limit is {values.pages.count}.",
                part=image.name,
                rule="pages",
            )
    return None


RULE = Rule(
    key="pages",
    summary="Documents of several pages: the `first` one, `all:N` (every page an image, at most N), or `reject`.",
    kind=Selections("all", 2, MAX_PAGES),
    default=FIRST,
    measured=_measured,
    of_images=True,
)
