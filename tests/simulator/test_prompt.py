from __future__ import annotations

from gateway.simulator import prompt, tokens
from gateway.simulator.geometry import Family, Fitted
from gateway.simulator.prompt import ImageInput, Turn
from gateway.simulator.raster import Picture, Raster

PICTURE = Picture(
    Raster("jpeg", 64, 96, 1, 64, 96, (0, 0, 0), "f"), Fitted(rows=3, columns=2, patches=24), identifier="id-1"
)
IMAGE = ImageInput("messages.0.content.0", "data:,")


def test_a_message_costs_five_tokens_and_the_answers_opening_three() -> None:
    pieces = prompt.render([Turn("user", ("Hello there",))], Family.QWEN3_VL)
    assert prompt.text_tokens_of(pieces) == 5 + len(tokens.pieces("Hello there")) + 3
    closed = prompt.render([Turn("user", ("Hello there",))], Family.QWEN3_VL, open_answer=False)
    assert prompt.text_tokens_of(closed) == prompt.text_tokens_of(pieces) - 3


def test_every_role_is_one_token() -> None:
    assert all(len(tokens.pieces(role)) == 1 for role in ("system", "developer", "user", "assistant", "tool"))


def test_qwen2_brings_its_own_system_message_unless_there_is_one() -> None:
    turns = [Turn("user", ("Hi",))]
    own = prompt.text_tokens_of(prompt.render(turns, Family.QWEN2_5_VL))
    none = prompt.text_tokens_of(prompt.render(turns, Family.QWEN3_VL))
    assert own - none == 5 + len(tokens.pieces(prompt.DEFAULT_SYSTEM_TEXT))
    given = [Turn("system", ("S",)), *turns]
    assert prompt.render(given, Family.QWEN2_5_VL) == prompt.render(given, Family.QWEN3_VL)


def test_tools_are_told_in_the_first_message() -> None:
    rendered = prompt.render([Turn("user", ("Hi",))], Family.QWEN3_VL, [{"name": "look"}])
    assert '[{"name":"look"}]' in rendered
    assert rendered[:3] == ["<|im_start|>", "system", "\n"]


def test_a_picture_takes_its_place_with_two_markers() -> None:
    pieces = prompt.render([Turn("user", ("Look: ", IMAGE, "?"))], Family.QWEN3_VL)
    assembled = prompt.assemble(pieces, [PICTURE], salt="s", last_user_text="Look: ?")
    assert assembled.length == prompt.text_tokens_of(pieces) + 6
    assert assembled.image_tokens == 6
    span = assembled.spans[0]
    around = assembled.token_ids[span.offset - 1 : span.offset + span.length + 1]
    assert around == (151_652, *[151_655] * 6, 151_653)
    assert (span.identifier, assembled.salt) == ("id-1", "s")
    assert prompt.images_of(pieces) == [IMAGE]


def test_a_typed_placeholder_is_text() -> None:
    pieces = prompt.render([Turn("user", ("<|image_pad|>",))], Family.QWEN3_VL)
    assembled = prompt.assemble(pieces, [])
    assert assembled.spans == ()
    assert assembled.length == 5 + 1 + 3


def test_the_last_users_text_is_found_behind_later_roles() -> None:
    turns = [Turn("user", ("first",)), Turn("user", ("a", IMAGE, "b")), Turn("tool", ("result",))]
    assert prompt.last_user_text(turns) == "ab"
    assert prompt.last_user_text([Turn("system", ("x",))]) == ""
