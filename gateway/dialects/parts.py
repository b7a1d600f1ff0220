"""Content parts as vLLM and SGLang take them in OpenAI's two chat APIs: images, other media, text.

Decided here: where images and text stand in a part, and which parts are refused. Not decided here: where parts stand
(the dialects). Rules where the engines leave room:

* an image is a part of one of the dialect's image types, or a part without type that has ``image_url``; its source is
  ``image_url.url`` or ``image_url`` itself;
* a bare string in a content array is text, as in vLLM;
* a missing, null or empty source is refused and named, and so is a part whose type carries engine tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.dialects.fields import engine_fields, string
from gateway.dialects.text import text_bytes
from gateway.errors import InvalidRequest
from gateway.types import ImagePart, Json, JsonObject, LongString, MediumKind, OtherMedium, Pointer, dotted, foreign

_OTHER_MEDIA = {
    "video_url": MediumKind.VIDEO,
    "audio_url": MediumKind.AUDIO,
    "input_audio": MediumKind.AUDIO,
    "file": MediumKind.FILE,
}
# Members of a part that hold text, whatever the part's type says.
_TEXT_MEMBERS = ("text", "refusal", "thinking")


@dataclass(slots=True)
class PartReader:
    """What has been found in the parts so far.

    ``one_form`` tells that every image is to be delivered as ``{"type": "image_url", "image_url": {"url": ...}}``, the
    one form of chat that every engine takes; otherwise a data URL goes where the source stood. ``takes_ids``: engines
    read an id beside the parts of a message (vLLM 0.32.0: in chat and Responses, not beside what a call returned).
    """

    image_types: frozenset[str]
    one_form: bool
    takes_ids: bool = False
    images: list[ImagePart] = field(default_factory=list)
    text_bytes: int = 0
    other_media: list[OtherMedium] = field(default_factory=list)
    foreign_fields: list[Pointer] = field(default_factory=list)

    def text(self, value: Json) -> None:
        """Count a string; anything else is no text."""
        self.text_bytes += text_bytes(value)

    def content(self, pointer: Pointer, content: Json) -> None:
        """A string or a list of parts. Raises InvalidRequest."""
        if isinstance(content, list):
            for part_index, part in enumerate(content):
                self.part((*pointer, part_index), part)
        elif content is None or isinstance(content, str | LongString):
            self.text(content)
        else:
            raise InvalidRequest("Content is a string or a list of parts.", part=dotted(pointer))

    def part(self, pointer: Pointer, part: Json) -> None:
        """One part. Raises InvalidRequest."""
        if isinstance(part, str | LongString):
            self.text(part)
            return
        if not isinstance(part, dict):
            raise InvalidRequest("A part is an object or a string.", part=dotted(pointer))
        kind = part.get("type")
        if kind is not None and not isinstance(kind, str | LongString):
            raise InvalidRequest("A part's type is a string.", part=dotted((*pointer, "type")))
        if kind in foreign.PART_TYPES or (kind is None and not foreign.PART_TYPES.isdisjoint(part)):
            raise InvalidRequest("Parts that carry an engine's own tensors are not accepted.", part=dotted(pointer))
        if kind in self.image_types or (kind is None and "image_url" in part):
            self._image(pointer, part)
            return
        self.foreign_fields += [(*pointer, key) for key in engine_fields(part, foreign.PART)]
        for key in _TEXT_MEMBERS:
            if key in part:
                self.text(part[key])
        for key in _OTHER_MEDIA:
            if kind == key or (kind is None and key in part):
                self.other_media.append(_other_medium((*pointer, key), part.get(key)))
                self._medium(pointer, key, part.get(key))

    def _image(self, pointer: Pointer, part: JsonObject) -> None:
        holder = (*pointer, "image_url")
        value = part.get("image_url")
        beside = engine_fields(part, foreign.PART)
        self.foreign_fields += [(*pointer, key) for key in beside]
        inside = self._medium(pointer, "image_url", value)
        is_object = isinstance(value, dict)
        source = value.get("url") if isinstance(value, dict) else value
        if not isinstance(source, str | LongString) or not source:
            raise InvalidRequest(
                "The image has no URL; a data URL or an http(s) address is expected.", part=dotted(holder)
            )
        detail = value.get("detail") if isinstance(value, dict) else part.get("detail")
        self.images.append(
            ImagePart(
                pointer=(*holder, "url") if is_object else holder,
                part=pointer,
                source=source,
                detail=string(detail),
                wrap=self.one_form and not is_object,
                retype=self.one_form and part.get("type") != "image_url",
                foreign_fields=(*beside, *inside),
                text_type="text" if self.one_form else "input_text",
                takes_id=self.takes_ids and pointer[-2:-1] == ("content",),
            )
        )

    def _medium(self, pointer: Pointer, key: str, value: Json) -> list[str]:
        """Note the engine's fields inside one medium; returns their names as seen from the part."""
        if not isinstance(value, dict):
            return []
        names = engine_fields(value, foreign.MEDIUM)
        self.foreign_fields += [(*pointer, key, name) for name in names]
        return [f"{key}.{name}" for name in names]


def _other_medium(holder: Pointer, medium: Json) -> OtherMedium:
    """A video, a sound or a file, with its source where that is a string we could read."""
    kind = _OTHER_MEDIA[str(holder[-1])]
    is_bare = holder[-1] == "input_audio"
    member = "data" if is_bare else "url"
    source = medium.get(member) if isinstance(medium, dict) else medium
    name, is_inline = dotted(holder), _is_inline(medium)
    if kind is MediumKind.FILE or not isinstance(source, str | LongString) or not source:
        return OtherMedium(name, is_inline, kind)
    pointer = (*holder, member) if isinstance(medium, dict) else holder
    return OtherMedium(name, is_inline, kind, pointer, source, is_bare)


def _is_inline(medium: Json) -> bool:
    """Whether a medium brings its own bytes: a data URL, or members that hold base64. Anything else is an address."""
    source = medium.get("url") if isinstance(medium, dict) else medium
    if isinstance(medium, dict) and source is None:
        return True
    if isinstance(source, LongString):
        return source.is_data_url
    return isinstance(source, str) and source[:5].lower() == "data:"
