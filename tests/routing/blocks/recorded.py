"""What a real vLLM 0.32.0 published (tests/engine/record_kv_events.py), as the pure code takes it."""

from __future__ import annotations

import base64
import json
from array import array
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from gateway.routing.blocks.index import BlockEvent, Cleared, Removed, Stored
from gateway.routing.blocks.prompt import PlacedImage, TokenPrompt

IMAGE_PAD = "<|image_pad|>"


@dataclass(frozen=True, slots=True)
class Spoken:
    """One prompt, what it stored, and how much of it was cached when it was asked for again."""

    name: str
    prompt: TokenPrompt
    stored: tuple[Stored, ...]
    cached_again: int
    files: tuple[tuple[str | None, bytes], ...]


@lru_cache(maxsize=1)
def recording() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((Path(__file__).parents[2] / "golden" / "kv_events.json").read_text())
    return loaded


def events_of(frames: list[list[str]]) -> list[BlockEvent]:
    found: list[BlockEvent] = []
    for message in frames:
        _, events, _ = msgspec.msgpack.decode(base64.b64decode(message[-1]))
        found += [_event(event) for event in events]
    return found


def _event(event: dict[str, Any]) -> BlockEvent:
    match event["type"]:
        case "BlockStored":
            keys = [
                [key if isinstance(key, str) else (key[0], key[1]) for key in entry or ()]
                for entry in event["extra_keys"]
            ]
            return Stored(
                event["block_hashes"],
                event["parent_block_hash"],
                event["token_ids"],
                event["block_size"],
                keys,
                event["medium"],
                event["group_idx"],
                event["kv_cache_spec_kind"],
            )
        case "BlockRemoved":
            return Removed(event["block_hashes"], event["medium"], event["group_idx"])
        case _:
            return Cleared()


def _runs(token_ids: list[int]) -> list[tuple[int, int]]:
    """Offset and length of every run of the token that most of an image consists of: here the only one in a row."""
    runs, start = [], 0
    for at in range(1, len(token_ids) + 1):
        if at == len(token_ids) or token_ids[at] != token_ids[start]:
            if at - start >= 16:
                runs.append((start, at - start))
            start = at
    return runs


def spoken() -> list[Spoken]:
    found = []
    for entry in recording()["prompts"]:
        stored = tuple(event for event in events_of(entry["frames"]) if isinstance(event, Stored))
        identifiers = list(
            dict.fromkeys(
                key[0] for event in stored for keys in event.keys or () for key in keys if isinstance(key, tuple)
            )
        )
        images = tuple(
            PlacedImage(offset, length, identifier)
            for (offset, length), identifier in zip(_runs(entry["token_ids"]), identifiers, strict=True)
        )
        found.append(
            Spoken(
                entry["name"],
                TokenPrompt(array("Q", entry["token_ids"]), images, entry["salt"]),
                stored,
                entry["cached_tokens"][1],
                tuple((image["uuid"], base64.b64decode(image["file"])) for image in entry["images"]),
            )
        )
    return found
