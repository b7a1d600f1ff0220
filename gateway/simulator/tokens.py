"""The simulator's tokenizer: deterministic, without a vocabulary, reversible.

A piece is a special token (`<|…|>`), a run of up to nine letters or up to three digits with an optional leading space,
a run of white space, up to three punctuation marks, or one character of anything else. The pieces of a text joined
give the text again. A piece's id is a checksum below the special tokens of Qwen's vocabulary, whose real ids are used
for the markers. Counts therefore resemble a BPE's (about four characters a token in English) and equal none.
"""

import re
import zlib
from functools import lru_cache

_PIECE = re.compile(r"<\|[a-z_]+\|>| ?[^\W\d_]{1,9}| ?\d{1,3}|\s+|[^\w\s]{1,3}?(?=<\|)|[^\w\s]{1,3}|.", re.DOTALL)
_ORDINARY_IDS = 151_643

MESSAGE_START = "<|im_start|>"
MESSAGE_END = "<|im_end|>"
VISION_START = "<|vision_start|>"
VISION_END = "<|vision_end|>"
IMAGE_PAD = "<|image_pad|>"

SPECIAL_IDS = {
    "<|endoftext|>": 151_643,
    MESSAGE_START: 151_644,
    MESSAGE_END: 151_645,
    VISION_START: 151_652,
    VISION_END: 151_653,
    IMAGE_PAD: 151_655,
    "<|video_pad|>": 151_656,
}


def pieces(text: str) -> list[str]:
    """The text cut into tokens; joined they are the text."""
    return _PIECE.findall(text)


@lru_cache(maxsize=65_536)
def token_id(piece: str) -> int:
    """The id of one piece."""
    special = SPECIAL_IDS.get(piece)
    return special if special is not None else zlib.crc32(piece.encode("utf-8", "surrogatepass")) % _ORDINARY_IDS


def encode(text: str) -> list[int]:
    """The ids of a text."""
    return [token_id(piece) for piece in pieces(text)]
