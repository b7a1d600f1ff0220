"""The block hashes of a prompt, made one after the other and only as far as anybody asks.

Two recipes. The *engine's own*, where it can be reproduced: vLLM's ``sha256_cbor`` (0.32.0 v1/core/kv_cache_utils.py:
``hash_block_tokens``, ``generate_block_hash_extra_keys``), of which KV events publish the last 64 bits. And *ours*,
over what events say a block contains, which fits every engine and every algorithm: xxh3-64 over parent, tokens, keys.

Decided here: what goes into a hash, in which order. Not decided here: which blocks anybody holds (`index`).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import xxhash

from gateway.routing.blocks.prompt import TOKEN_TYPE, TokenPrompt

MASK_64 = (1 << 64) - 1
# vLLM 0.32.0: what the first block's parent is made of, unless PYTHONHASHSEED is set.
DEFAULT_SEED = "vllm-none-hash"
# SGLang 0.5.23 srt/managers/mm_utils.py: an image's 64-bit hash becomes four token ids beyond every vocabulary.
_PAD_DOMAIN = b"sglang-mm-wide-pad-v1"
_PAD_BASE, _PAD_MASK, _PADS = 1_000_000, (1 << 62) - 1, 4

# What distinguishes blocks of equal tokens, as events publish it: a pair is an image's id and its place in the block.
Key: TypeAlias = "str | tuple[str, int]"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one deployment's blocks are named.

    ``seed`` is set where the engine's own ``sha256_cbor`` is reproduced (its PYTHONHASHSEED, or the default); without
    it blocks are named by their contents. ``pads``: images are token ids of their own (SGLang), not keys.
    ``adapter``: the prompt is a LoRA's.
    """

    block_tokens: int
    seed: str | None = None
    pads: bool = False
    adapter: str | None = None


class Chain:
    """One prompt's block hashes by one recipe, made as they are asked for. Not thread-safe.

    ``is_whole``: no image is in the way, so that all of the prompt's full blocks are there.
    """

    def __init__(self, prompt: TokenPrompt, recipe: Recipe) -> None:
        self._recipe = recipe
        self._prompt = prompt
        self._ids = _padded(prompt) if recipe.pads else prompt.token_ids
        self.block_tokens = recipe.block_tokens
        known = prompt.known_tokens(pads=recipe.pads)
        self.is_whole = known == len(prompt.token_ids)
        self.full_blocks = known // recipe.block_tokens
        self._hashes = array("Q")
        self._is_plain = prompt.lora is None and not prompt.salt and (recipe.pads or not prompt.images)
        self._parent = _none_hash(recipe.seed) if recipe.seed is not None else b""

    def __getitem__(self, index: int) -> int:
        """The 64-bit hash of the block at ``index`` < ``full_blocks``."""
        if index >= len(self._hashes):
            self.reach(index + 1)
        return self._hashes[index]

    def reach(self, blocks: int) -> array[int]:
        """The hashes with at least the first ``blocks`` of them made (those that there are)."""
        hashes, ids = self._hashes, self._ids
        size, own, plain = self.block_tokens, self._recipe.seed is None, self._is_plain
        for index in range(len(hashes), min(blocks, self.full_blocks)):
            start = index * size
            tokens = ids[start : start + size]
            keys: Sequence[Key] = () if plain else self._keys(start)
            if own:
                hashes.append(content_hash(hashes[-1] if index else None, tokens, keys))
            else:
                self._parent = _engine_hash(self._parent, tokens, self._tagged(keys) if keys else ())
                hashes.append(int.from_bytes(self._parent[-8:], "big"))
        return hashes

    def _keys(self, start: int) -> list[Key]:
        prompt = self._prompt
        keys: list[Key] = [] if prompt.lora is None else [prompt.lora[0]]
        if not self._recipe.pads:
            stop = start + self.block_tokens
            keys += [
                (image.identifier, image.offset - start)
                for image in prompt.images
                if image.identifier is not None and image.offset < stop and image.offset + image.length > start
            ]
        if start == 0 and prompt.salt:
            keys.append(prompt.salt)
        return keys

    def _tagged(self, keys: Sequence[Key]) -> list[tuple[str | int, ...]]:
        """The keys as vLLM hashes them: each behind the word for its kind."""
        lora = self._prompt.lora
        tagged: list[tuple[str | int, ...]] = []
        for index, key in enumerate(keys):
            if isinstance(key, tuple):
                tagged.append(("mm", *key))
            elif index == 0 and lora is not None:
                tagged.append(("lora", *lora))
            else:
                tagged.append(("cache_salt", key))
        return tagged


def content_hash(parent: int | None, tokens: Sequence[int], keys: Sequence[Key]) -> int:
    """Our own name of a block: 64 bits over its parent's name, its tokens and its keys.

    Raises OverflowError or TypeError for tokens that are none.
    """
    data = tokens if isinstance(tokens, array) else array(TOKEN_TYPE, tokens)
    state = data.tobytes()
    if not keys:
        return xxhash.xxh3_64_intdigest(state, seed=parent or 0)
    for key in keys:
        text, offset = (key, None) if isinstance(key, str) else key
        raw = text.encode("utf-8", "surrogatepass")
        state += len(raw).to_bytes(4, "big") + raw + (b"s" if offset is None else b"m%d" % offset)
    # The blocks of one index have one length, so the tokens end where those of its other blocks do.
    return xxhash.xxh3_64_intdigest(state, seed=parent or 0)


def _padded(prompt: TokenPrompt) -> array[int]:
    ids = prompt.token_ids[:]
    for image in prompt.images:
        if image.pad_hash is None:
            break
        pads = array(TOKEN_TYPE, pad_tokens(image.pad_hash))
        run = pads * (image.length // _PADS + 1)
        ids[image.offset : image.offset + image.length] = run[: image.length]
    return ids


@lru_cache(maxsize=4096)
def pad_tokens(image_hash: int) -> tuple[int, ...]:
    """The four token ids that SGLang puts, over and over, where an image of this 64-bit hash is."""
    digest = hashlib.sha256(_PAD_DOMAIN + (image_hash & MASK_64).to_bytes(8, "big")).digest()
    return tuple(
        _PAD_BASE + (int.from_bytes(digest[8 * index : 8 * index + 8], "big") & _PAD_MASK) for index in range(_PADS)
    )


# --- vLLM's sha256_cbor: SHA-256 over canonical CBOR (RFC 8949 §4.2) of (parent, tokens, keys or null) ---------------


@lru_cache(maxsize=64)
def _none_hash(seed: str) -> bytes:
    return hashlib.sha256(_text(seed)).digest()


def _engine_hash(parent: bytes, tokens: Sequence[int], keys: Sequence[tuple[str | int, ...]]) -> bytes:
    listed = b"\xf6" if not keys else _head(0x80, len(keys)) + b"".join([_listed(key) for key in keys])
    written = b"".join([_whole(token) for token in tokens])
    return hashlib.sha256(b"\x83\x58\x20" + parent + _head(0x80, len(tokens)) + written + listed).digest()


def _listed(key: tuple[str | int, ...]) -> bytes:
    return _head(0x80, len(key)) + b"".join(_text(part) if isinstance(part, str) else _whole(part) for part in key)


@lru_cache(maxsize=1 << 16)
def _whole(number: int) -> bytes:
    return _head(0x00, number) if number >= 0 else _head(0x20, -1 - number)


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return _head(0x60, len(raw)) + raw


def _head(major: int, number: int) -> bytes:
    """A CBOR head: the major type's bits and the shortest form of the number."""
    if number < 24:
        return bytes((major | number,))
    for code, width in ((24, 1), (25, 2), (26, 4)):
        if number < 1 << (8 * width):
            return bytes((major | code,)) + number.to_bytes(width, "big")
    return bytes((major | 27,)) + number.to_bytes(8, "big")
