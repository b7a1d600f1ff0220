"""What a chat request is made of, whatever its dialect: bytes of its body, its media, the call, the answering usage.

Decided here: the names of the parts. Not decided here: where they stand in a body (`dialects`, `splice`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from gateway.types.clips import MediumKind
from gateway.types.names import Pointer, dotted
from gateway.types.per_request import per_request

Json: TypeAlias = "bool | int | float | str | LongString | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


class Buffer(Protocol):
    """What a body is kept in: ``bytes`` or a shared ``mmap``; both search without copying."""

    def find(self, sub: bytes, start: int, end: int, /) -> int: ...

    def __getitem__(self, key: slice, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open byte range of the body's buffer."""

    start: int
    stop: int

    @property
    def byte_count(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class LongString:
    """A JSON string too long to be parsed; its bytes stay in the body between (not including) the quotes.

    ``text_byte_count`` is its length as UTF-8 once escapes are resolved, where that was counted (not for data URLs).
    """

    span: Span
    has_escapes: bool
    text_byte_count: int | None = None
    is_data_url: bool = False


class ImageForm(StrEnum):
    """How a prepared image is written: in place of the source string, or (base64_source) of the object around it.

    ``either``: a data URL and bare base64 mean the same there, so both may be passed; what is prepared is a data URL.
    """

    DATA_URL = "data_url"
    EITHER = "either"
    BASE64 = "base64"
    BASE64_SOURCE = "base64_source"


@dataclass(frozen=True, slots=True)
class ImagePart:
    """One image of the request, in the order of the prompt; errors ``name`` it messages.1.content.0.image_url.

    ``pointer`` is where the source string stands; ``part`` the content part around it (where fields are added);
    ``wrap`` tells that the source stood as a bare string where the engine wants ``{"url": ...}``; ``retype`` that the
    part came without a type, or with one that not every engine knows, and is to be given ``"type": "image_url"``.
    ``media_type`` was declared beside bare base64; ``text_type`` is that of a text part in the image's place.
    ``frame`` counts the images made of one source; all but the first become parts behind this one. ``is_fixed``: no
    text and no further image can stand in its place, so it is neither left out nor made several. ``takes_id``: an
    engine that knows ids reads one beside this part, and takes it in place of the bytes.
    """

    pointer: Pointer
    part: Pointer
    source: str | LongString
    detail: str | None = None
    wrap: bool = False
    retype: bool = False
    foreign_fields: tuple[str, ...] = ()
    form: ImageForm = ImageForm.DATA_URL
    media_type: str | None = None
    text_type: str = "text"
    frame: int = 0
    is_fixed: bool = False
    takes_id: bool = False

    @property
    def name(self) -> str:
        return dotted(self.pointer[:-1] if self.pointer[-1] == "url" else self.pointer)


@dataclass(frozen=True, slots=True)
class OtherMedium:
    """A video, sound or file of the request, in the order of the prompt; errors name it by ``name``.

    ``is_inline`` = its bytes are in the body, so no engine need fetch anything. ``pointer`` is where the string
    ``source`` stands; both are missing where a part is only the engine's to understand. ``is_bare``: the source is
    base64 without a data URL around it.
    """

    name: str
    is_inline: bool
    kind: MediumKind = MediumKind.FILE
    pointer: Pointer = ()
    source: str | LongString | None = None
    is_bare: bool = False


@per_request(frozen=True, slots=True)
class Call:
    """What the journey needs to know of a chat request, whatever its dialect.

    ``text_bytes`` counts the UTF-8 bytes of text the chat template will see; image sources count nothing.
    ``foreign_fields`` are the engine-internal fields a client sent (stripped before forwarding). ``is_continued``: the
    engine adds messages that it has kept, so its counts are not of this request alone. ``omitted`` are images that the
    policy left out; texts go in their places.

    ``additions`` are members that the model's alias gives it: where, the key, the value as JSON. ``hides_usage``: its
    usage was asked for by us alone, and goes no further. ``continues`` is the response that it goes on from.

    ``prompts`` is how many prompts share what is counted (None: how long one may be is the engine's to say, which may
    cut it short), ``token_ids`` how many tokens came as ids. Not ``is_chat``: no conversation in the model's template
    that is answered, so what the engine counts teaches nothing about chats. ``generates``: text comes back, and
    what bounds it stands at the top of the body as ``output_limit_field``. ``hashes_field``: the member in which
    SGLang takes a hash of every image, where it does.
    """

    model: str | None
    stream: bool
    wants_usage: bool
    output_limit_tokens: int | None
    images: tuple[ImagePart, ...]
    text_bytes: int
    message_count: int
    choices: int = 1
    user: str | None = None
    task: str | None = None
    other_media: tuple[OtherMedium, ...] = ()
    foreign_fields: tuple[Pointer, ...] = ()
    is_continued: bool = False
    omitted: tuple[ImagePart, ...] = ()
    has_tools: bool = False
    output_limit_field: str = "max_tokens"
    prompt_field: str = "messages"
    additions: tuple[tuple[Pointer, str, bytes], ...] = ()
    hides_usage: bool = False
    continues: str | None = None
    prompts: int | None = 1
    token_ids: int = 0
    is_chat: bool = True
    generates: bool = True
    hashes_field: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerText:
    """One text of an answer: said, thought, or a call's arguments. Pieces of one ``channel`` follow each other.

    ``whole``: it stands for itself, not for the next piece. ``is_json``: the value is the text, and no string.
    """

    pointer: Pointer
    channel: str
    whole: bool
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The texts of one response, or of one event of a stream, and which channels have ended with it.

    ``a`` ends ``a.b`` as well.
    """

    texts: tuple[AnswerText, ...] = ()
    ended: tuple[str, ...] = ()


@per_request(frozen=True, slots=True)
class Usage:
    """Token usage as an engine reported it; ``None`` where it did not say."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    image_tokens: int | None = None
    video_tokens: int | None = None
