"""From messages to the token sequence the engine computes: the chat template and the expansion of pictures.

The template is ChatML as Qwen's: each message costs five tokens around its content (`<|im_start|>`, the role, a line
break, `<|im_end|>`, a line break) and the opening of the answer three; a picture costs its own tokens and two around
them. Qwen2-VL and Qwen2.5-VL put a default system message first when there is none. Every piece of content is
tokenised by itself, so counts add up.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from gateway.simulator import tokens
from gateway.simulator.fields import Json
from gateway.simulator.geometry import Family
from gateway.simulator.raster import Picture
from gateway.simulator.video import Expansion, VideoInput

DEFAULT_SYSTEM_TEXT = "You are a helpful assistant."


@dataclass(frozen=True, slots=True)
class ImageInput:
    """A picture part as it came. `pointer` names its place; `uuid` is the client's cache id, whatever it was;
    `embedded`: an encoder left the picture under it."""

    pointer: str
    url: str | None
    uuid: str | None = None
    content_hash: str | None = None
    embedded: bool = False


Piece: TypeAlias = str | ImageInput | VideoInput


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The run of tokens of one picture or video; `identifier` is the engine's identity for it."""

    offset: int
    length: int
    identifier: str


@dataclass(frozen=True)
class Prompt:
    """The expanded prompt. `salt` isolates the prefix cache; `films` are the runs of videos."""

    token_ids: tuple[int, ...]
    spans: tuple[Span, ...] = ()
    pictures: tuple[Picture, ...] = ()
    salt: str | None = None
    last_user_text: str = field(default="")
    films: tuple[Span, ...] = ()

    @property
    def length(self) -> int:
        return len(self.token_ids)

    @cached_property
    def image_tokens(self) -> int:
        return sum(span.length for span in self.spans)

    @cached_property
    def video_tokens(self) -> int:
        return sum(span.length for span in self.films)


def render(turns: Sequence[Turn], family: Family, tools: Json = None, *, open_answer: bool = True) -> list[Piece]:
    """The template's pieces in order. Literal markers in a user's text stay one token each and mean no picture."""
    rendered: list[Piece] = []
    listed = list(turns)
    needs_system = family in (Family.QWEN2_VL, Family.QWEN2_5_VL) or tools is not None
    if needs_system and not (listed and listed[0].role == "system"):
        listed.insert(0, Turn("system", (DEFAULT_SYSTEM_TEXT,)))
    for index, turn in enumerate(listed):
        rendered += [tokens.MESSAGE_START, turn.role, "\n", *turn.pieces]
        if index == 0 and tools is not None:
            rendered += ["\n\n", "# Tools", "\n\n", json.dumps(tools, ensure_ascii=False, separators=(",", ":"))]
        rendered += [tokens.MESSAGE_END, "\n"]
    if open_answer:
        rendered += [tokens.MESSAGE_START, "assistant", "\n"]
    return rendered


def images_of(pieces: Sequence[Piece]) -> list[ImageInput]:
    """The picture parts in order."""
    return [piece for piece in pieces if isinstance(piece, ImageInput)]


def videos_of(pieces: Sequence[Piece]) -> list[VideoInput]:
    """The video parts in order."""
    return [piece for piece in pieces if isinstance(piece, VideoInput)]


def text_tokens_of(pieces: Sequence[Piece]) -> int:
    """Tokens of everything that is no picture or video, the two markers around each of them included."""
    return sum(len(tokens.encode(piece)) if isinstance(piece, str) else 2 for piece in pieces)


def assemble(
    pieces: Sequence[Piece],
    pictures: Sequence[Picture],
    salt: str | None = None,
    last_user_text: str = "",
    films: Sequence[tuple[str, Expansion]] = (),
) -> Prompt:
    """Put the token runs of pictures and videos in their places, each in the order of its own pieces."""
    ids: list[int] = []
    spans: list[Span] = []
    shown: list[Span] = []
    remaining, left = iter(pictures), iter(films)
    for piece in pieces:
        if isinstance(piece, str):
            ids += tokens.encode(piece)
            continue
        if isinstance(piece, VideoInput):
            identifier, expansion = next(left)
            ids.append(tokens.SPECIAL_IDS[tokens.VISION_START])
            shown.append(Span(len(ids), len(expansion.token_ids), identifier))
            ids += [*expansion.token_ids, tokens.SPECIAL_IDS[tokens.VISION_END]]
            continue
        picture = next(remaining)
        ids.append(tokens.SPECIAL_IDS[tokens.VISION_START])
        spans.append(Span(offset=len(ids), length=picture.tokens, identifier=picture.identifier))
        ids += [tokens.SPECIAL_IDS[tokens.IMAGE_PAD]] * picture.tokens
        ids.append(tokens.SPECIAL_IDS[tokens.VISION_END])
    return Prompt(tuple(ids), tuple(spans), tuple(pictures), salt, last_user_text, tuple(shown))


def last_user_text(turns: Sequence[Turn]) -> str:
    """All text of the last user message, joined."""
    for turn in reversed(turns):
        if turn.role == "user":
            return "".join(piece for piece in turn.pieces if isinstance(piece, str))
    return ""
