from __future__ import annotations

from gateway.errors import BackendTimeout, ImageTooLarge, Spelling, UnsupportedFormat
from gateway.policy.profiles.gemini import PROFILE
from gateway.policy.rules.formats import DECODED


def test_formats_are_those_of_both() -> None:
    formats = PROFILE.rules["formats"]
    assert isinstance(formats, tuple)
    assert set(formats) <= set(DECODED)
    assert "gif" not in formats


def test_errors_are_googles_canonical_codes() -> None:
    assert PROFILE.spelling(UnsupportedFormat()) == Spelling(400, "INVALID_ARGUMENT")
    assert PROFILE.spelling(ImageTooLarge()) == Spelling(400, "INVALID_ARGUMENT")
    assert PROFILE.spelling(BackendTimeout()) == Spelling(504, "DEADLINE_EXCEEDED")
