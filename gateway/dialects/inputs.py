"""Prompts that are no single conversation: what embeddings, pooling, scores and completions take as their inputs.

Decided here: which shapes an input may have, and where text, images and token ids stand in each. Not decided here:
which members of a body are inputs (the dialects), whether an engine takes a shape (its own to say; it is forwarded).

An input is a string, a list of token ids, a message or a list of messages, an object with ``content`` (vLLM's scores),
a content part, an object with ``text``, ``image``, ``video`` (SGLang's embeddings), or a list of any of these.
Sources: vLLM 0.32.0 ``entrypoints/pooling``, SGLang 0.5.23 ``entrypoints/openai/protocol.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gateway.dialects.openai_chat import IMAGE_TYPES, read_message
from gateway.dialects.parts import PartReader
from gateway.errors import InvalidRequest
from gateway.types import ImageForm, ImagePart, Json, JsonObject, LongString, MediumKind, OtherMedium, Pointer, dotted

# A list of conversations, each a list of messages: one deeper than any engine's shape.
_MAX_NESTING = 4
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CLIPS = {"video": MediumKind.VIDEO, "audio": MediumKind.AUDIO}


@dataclass(slots=True)
class InputReader:
    """What has been found in the inputs so far. ``prompts`` counts strings, lists of ids, and objects."""

    parts: PartReader = field(default_factory=lambda: PartReader(IMAGE_TYPES, one_form=True))
    token_ids: int = 0
    prompts: int = 0
    messages: int = 0

    def read(self, pointer: Pointer, value: Json, nesting: int = 0) -> None:
        """One input, or a list of them. Raises InvalidRequest."""
        if value is None:
            return
        if isinstance(value, str | LongString):
            self.prompts += 1
            self.parts.text(value)
        elif isinstance(value, dict):
            self._object(pointer, value)
        elif not isinstance(value, list):
            raise InvalidRequest("A string, a list or an object is expected.", part=dotted(pointer))
        elif value and all(type(each) is int for each in value):
            self.prompts += 1
            self.token_ids += len(value)
        elif nesting >= _MAX_NESTING:
            raise InvalidRequest("Inputs are nested too deeply.", part=dotted(pointer))
        else:
            for index, each in enumerate(value):
                self.read((*pointer, index), each, nesting + 1)

    def _object(self, pointer: Pointer, value: JsonObject) -> None:
        if "role" in value:
            read_message(self.parts, pointer, value)
            self.messages += 1
            return
        self.prompts += 1
        if "content" in value:
            self.parts.content((*pointer, "content"), value["content"])
        elif "type" in value or "image_url" in value:
            self.parts.part(pointer, value)
        else:
            self._members(pointer, value)

    def _members(self, pointer: Pointer, value: JsonObject) -> None:
        self.parts.text(value.get("text"))
        if value.get("image") is not None:
            self.image((*pointer, "image"), value["image"])
        for key, kind in _CLIPS.items():
            if value.get(key) is not None:
                self.clip((*pointer, key), value[key], kind)

    def image(self, pointer: Pointer, source: Json) -> None:
        """An image whose source stands alone, as a string. Raises InvalidRequest."""
        if not isinstance(source, str | LongString) or not source:
            raise InvalidRequest("A data URL, base64 or an http(s) address is expected.", part=dotted(pointer))
        self.parts.images.append(ImagePart(pointer, pointer, source, form=ImageForm.EITHER, is_fixed=True))

    def clip(self, pointer: Pointer, source: Json, kind: MediumKind) -> None:
        """A video or sound whose source stands alone, as a string. Raises InvalidRequest."""
        if not isinstance(source, str | LongString) or not source:
            raise InvalidRequest("A data URL or an http(s) address is expected.", part=dotted(pointer))
        is_data_url = source.is_data_url if isinstance(source, LongString) else source[:5].lower() == "data:"
        is_remote = isinstance(source, str) and _SCHEME.match(source) is not None and not is_data_url
        self.parts.other_media.append(
            OtherMedium(
                dotted(pointer), not is_remote, kind, pointer, source, is_bare=not is_data_url and not is_remote
            )
        )
