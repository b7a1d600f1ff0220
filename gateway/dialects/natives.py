"""Media as SGLang's own routes take them: ``image_data``, ``video_data``, ``audio_data`` beside the prompt.

Decided here: every shape these members may have. One item, a list of items (one for each prompt, or all of one
prompt), a list of lists; an item is a URL, a data URL, bare base64, or an object with ``url``. Tensors and what a
processor has made (``format``) are refused: they pass every limit by. Files of the engine's disk are no source here.
Source: SGLang 0.5.23 ``managers/io_struct.py`` (GenerateReqInput) and ``utils/common.py`` (load_image).
"""

from __future__ import annotations

from gateway.dialects.fields import engine_fields, string
from gateway.dialects.inputs import InputReader
from gateway.errors import InvalidRequest
from gateway.types import ImageForm, ImagePart, Json, JsonObject, LongString, MediumKind, Pointer, dotted, foreign

_CLIPS = {"video_data": MediumKind.VIDEO, "audio_data": MediumKind.AUDIO}
_MAX_NESTING = 2
_INSIDE = foreign.MEDIUM | foreign.PART


def read_media(reader: InputReader, tree: JsonObject) -> list[Pointer]:
    """Note all media; returns where engine-internal fields stand in them. Raises InvalidRequest."""
    foreign_fields: list[Pointer] = []
    _walk(reader, ("image_data",), tree.get("image_data"), None, foreign_fields, 0)
    for key, kind in _CLIPS.items():
        _walk(reader, (key,), tree.get(key), kind, foreign_fields, 0)
    return foreign_fields


def _walk(
    reader: InputReader, pointer: Pointer, value: Json, kind: MediumKind | None, found: list[Pointer], nesting: int
) -> None:
    if value is None:
        return
    if isinstance(value, list):
        if nesting >= _MAX_NESTING:
            raise InvalidRequest("Media stand in a list, or in a list of lists.", part=dotted(pointer))
        for index, each in enumerate(value):
            _walk(reader, (*pointer, index), each, kind, found, nesting + 1)
        return
    if isinstance(value, dict):
        _object(reader, pointer, value, kind, found)
    elif kind is None:
        reader.image(pointer, value)
    else:
        reader.clip(pointer, value, kind)


def _object(
    reader: InputReader, pointer: Pointer, item: JsonObject, kind: MediumKind | None, found: list[Pointer]
) -> None:
    if "format" in item or not isinstance(item.get("url"), str | LongString):
        message = (
            "A medium is a URL, a data URL, base64 or an object with url; an engine's own tensors are not accepted."
        )
        raise InvalidRequest(message, part=dotted(pointer))
    beside = engine_fields(item, _INSIDE)
    found += [(*pointer, key) for key in beside]
    source = item["url"]
    if kind is not None:
        reader.clip((*pointer, "url"), source, kind)
        return
    if not isinstance(source, str | LongString) or not source:
        raise InvalidRequest("The image has no URL.", part=dotted((*pointer, "url")))
    reader.parts.images.append(
        ImagePart(
            (*pointer, "url"),
            pointer,
            source,
            detail=string(item.get("detail")),
            foreign_fields=tuple(beside),
            form=ImageForm.EITHER,
            is_fixed=True,
        )
    )
