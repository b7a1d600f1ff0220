from __future__ import annotations

from gateway.errors import TooManyImages, UnsupportedFormat
from gateway.policy.effective import FIRST, Selection, Several
from gateway.policy.rule import Measured
from gateway.policy.rules.pages import RULE
from gateway.types import ImageFormat
from tests.policy.examples import estimate, image, policy

DOCUMENT = Measured([image(), image(kind=ImageFormat.TIFF, frames=3)], estimate())


def test_the_first_page_is_always_accepted() -> None:
    assert RULE.measured is not None
    assert RULE.measured(policy(pages=FIRST), DOCUMENT) is None


def test_more_pages_than_allowed_are_refused_whole() -> None:
    assert RULE.measured is not None
    assert RULE.measured(policy(pages=Selection(Several.MANY, 3, "all")), DOCUMENT) is None
    error = RULE.measured(policy(pages=Selection(Several.MANY, 2, "all")), DOCUMENT)
    assert isinstance(error, TooManyImages)
    assert error.message == "The document has 3 pages, the limit is 2."


def test_several_pages_may_be_refused() -> None:
    assert RULE.measured is not None
    error = RULE.measured(policy(pages=Selection(Several.REJECT)), DOCUMENT)
    assert isinstance(error, UnsupportedFormat)
    assert error.message == "The document has 3 pages, the policy accepts one."


def test_frames_are_no_pages() -> None:
    assert RULE.measured is not None
    animation = Measured([image(kind=ImageFormat.GIF, frames=3), image(kind=ImageFormat.PDF)], estimate())
    assert RULE.measured(policy(pages=Selection(Several.REJECT)), animation) is None
