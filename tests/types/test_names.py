"""How a part of the body is named for people."""

from __future__ import annotations

from gateway.types import dotted


def test_a_part_is_named_as_people_write_it() -> None:
    assert dotted(("messages", 1, "content", 0, "image_url")) == "messages.1.content.0.image_url"
    assert dotted(()) == ""
