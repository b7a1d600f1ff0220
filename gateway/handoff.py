"""What one engine computes for another, as fields of bodies: an encoder's pictures, a prefill's KV blocks.

Decided here: under which key a picture is encoded, what each leg's body says, what of a helper's answer is believed.
Not decided here: which helper is asked, and what happens when it fails (``legs``). Contracts: vLLM 0.32.0
``distributed/ec_transfer`` and ``kv_transfer`` (requests' ``ec_transfer_params``, ``kv_transfer_params``), SGLang
0.5.23 (``bootstrap_*``).

A consumer that is told of an encoding nobody wrote does not answer an error: its engine ends. So a picture is only ever
named by a key of ours that this very encoder has just confirmed, and the key is never one under which pixels are sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.splice.edit import Operation, RemoveMember, SetMember, SetValue
from gateway.types import ImagePart, JsonObject

Chunks: TypeAlias = "list[bytes | memoryview]"
_Foreign: TypeAlias = "dict[str, object]"

# All that vLLM's connectors expect of a request whose KV blocks somebody else will fetch (0.32.0, NixlConnector).
_REMOTE_DECODE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}

# Engines nest a handful of levels; what is read at the edge of the interpreter's own limit could not be written again.
_DEPTH_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Encoding:
    """One picture as an encoder holds it: the entry of its answer, whose ``metadata`` says how many tokens it makes."""

    key: str
    entry: _Foreign

    @property
    def metadata(self) -> _Foreign:
        found = self.entry.get("metadata")
        return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class Handed:
    """What helpers have done for one request so far; it holds wherever the request goes next."""

    encodings: dict[str, Encoding] = field(default_factory=dict)
    kv_params: bytes | None = None


def encoding_key(image_id: str, detail: str | None) -> str:
    """64 hexadecimal digits for one picture under one detail; as secret as its id (``identities``), but another."""
    return hashlib.sha256(f"encoding {image_id} {detail}".encode("utf-8", "backslashreplace")).hexdigest()


def encoder_body(model: str | None, source: Chunks, key: str, detail: str | None) -> Chunks:
    """A chat request with one picture and nothing else. ``source`` is its data URL, quotes included."""
    named = "" if model is None else f'"model":{json.dumps(model)},'
    detailed = "" if detail is None else f',"detail":{json.dumps(detail)}'
    head = f'{{{named}"max_tokens":1,"messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":'
    return [head.encode(), *source, f'{detailed}}},"uuid":"{key}"}}]}}]}}'.encode()]


def read_encoding(answer: bytes, key: str, known: Encoding | None) -> Encoding | None:
    """The encoding that an encoder's answer confirms under exactly this key; ``None`` where it does not.

    An encoder that had the picture already may leave its metadata out; what it said the first time still holds.
    """
    entry = _member(_object(answer), "ec_transfer_params", key)
    if entry is None:
        return None
    found = Encoding(key, entry)
    if not found.metadata and known is not None:
        found = Encoding(key, {**entry, "metadata": known.metadata})
    return found if found.metadata else None


def embedded(operations: Sequence[Operation], parts: Sequence[tuple[ImagePart, Encoding]]) -> list[Operation]:
    """The operations with every picture replaced by its encoding. A consumer takes all of them so, or none."""
    replaced = [part.part for part, _ in parts]
    kept = [each for each in operations if not any(each.pointer[: len(at)] == at for at in replaced)]
    told: dict[str, _Foreign] = {}
    for index, (part, encoding) in enumerate(parts):
        entry = told.setdefault(encoding.key, {**encoding.entry, "item_indices": []})
        indices = entry["item_indices"]
        if isinstance(indices, list):
            indices.append(index)
        value = {"type": "image_embeds", "image_embeds": encoding.metadata, "uuid": encoding.key}
        kept.append(SetValue(part.part, (_json(value),)))
    return [*kept, SetMember((), "ec_transfer_params", _json(told))]


def for_prefill(operations: Sequence[Operation], tree: JsonObject) -> list[Operation]:
    """The first leg to vLLM: one token, no stream, and the KV blocks kept for somebody else."""
    limits = ["max_tokens"] + ["max_completion_tokens"] * (tree.get("max_completion_tokens") is not None)
    return [
        *operations,
        *(SetMember((), name, b"1") for name in limits),
        SetMember((), "stream", b"false"),
        *(RemoveMember((), name) for name in ("stream_options", "min_tokens", "n")),
        SetMember((), "kv_transfer_params", _json(_REMOTE_DECODE)),
    ]


def read_kv_params(answer: bytes) -> bytes | None:
    """What the prefill says of its blocks, to be told to the decoder unchanged; ``None`` where it says nothing."""
    found = _member(_object(answer), "kv_transfer_params")
    return _json(found) if found else None


def for_decode(operations: Sequence[Operation], kv_params: bytes) -> list[Operation]:
    """The second leg to vLLM: the whole request, and where its KV blocks are."""
    return [*operations, SetMember((), "kv_transfer_params", kv_params)]


def for_pair(operations: Sequence[Operation], host: str, port: int, room: int) -> list[Operation]:
    """Either leg to SGLang, which are sent at once: where the two meet."""
    return [
        *operations,
        SetMember((), "bootstrap_host", _json(host)),
        SetMember((), "bootstrap_port", _json(port)),
        SetMember((), "bootstrap_room", _json(room)),
    ]


def _object(answer: bytes) -> object:
    """What a helper said, if another engine can be told of it: JSON that every reader takes, of a sane depth."""
    try:
        found: object = json.loads(answer, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if _is_shallow(found, _DEPTH_LIMIT) else None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def _is_shallow(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner if isinstance(each, dict | list))


def _member(value: object, *names: str) -> _Foreign | None:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
