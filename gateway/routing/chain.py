"""The prefix chain: what a prompt says, as running hashes, so that two prompts that begin alike have links in common.

Decided here: what is hashed, and where links stand. Everything that a chat template sees is, in its order: tools,
system texts, messages, with images by their digests; no text is copied. Links stand at the ends of messages and inside
long texts, near each other at the beginning and ever further apart (an eighth of the way so far), so that a prompt of a
megabyte has some fifty. Where they stand follows from what is before them alone. Not decided here: what is done with
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.routing.hashing import running, spread
from gateway.types import Json, JsonObject, LongString
from gateway.types.per_request import per_request

# About a hundred tokens: less is not worth a link.
_LEAST_GAP_BYTES = 512
_GAP_SHIFT = 3
# What an image's tokens count in bytes of text, only to place links.
_BYTES_PER_TOKEN = 4
_DEPTH_LIMIT = 64
# Of a medium without identity, its ends and length stand for it.
_END_BYTES = 4096
_BEFORE_MESSAGES = ("tools", "system", "instructions")

View = Callable[[int, int], memoryview]


@dataclass(frozen=True, slots=True)
class Medium:
    """An image or video as the chain sees it: what is sent of it, how many tokens that takes, and the file behind it.

    Prompts are alike where the same was sent; a conversation's home stays with the file, whatever is made of it.
    """

    digest: bytes
    tokens: int
    file: bytes


@per_request(frozen=True, slots=True)
class Chain:
    """``links`` and the prompt tokens up to each; ``home`` stays from the first user message on.

    ``ends`` are the tokens up to the end of each medium, by its digest.
    """

    links: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    home: int | None = None
    ends: tuple[tuple[bytes, int], ...] = ()


def chain_of(
    tree: JsonObject, prompt_field: str, view: View, media: Mapping[int, Medium], text_tokens: int, seed: int
) -> Chain:
    """The chain of one request. ``media`` is by the identity (``id``) of the source in the tree.

    ``text_tokens`` are those of all text together, spread evenly over it; ``seed`` separates tenants and models.
    """
    walk = _Walk(view, media, seed)
    for name in _BEFORE_MESSAGES:
        if (part := tree.get(name)) is not None:
            walk.node(part, 0)
            walk.end()
    messages = tree.get(prompt_field)
    for message in messages if isinstance(messages, list) else [messages]:
        walk.node(message, 0)
        walk.end()
        if walk.home is None and (not isinstance(message, dict) or message.get("role") == "user"):
            walk.home = spread(walk.first) if walk.first is not None else walk.hash.intdigest()
    ratio = text_tokens / walk.text_bytes if walk.text_bytes else 0.0
    tokens = [int(text * ratio) + medium for text, medium in walk.places]
    ends = tuple([(digest, int(text * ratio) + medium) for digest, text, medium in walk.met])
    return Chain(tuple(walk.links), tuple(tokens), walk.home, ends)


class _Walk:
    """Through the tree, hashing; counts text in bytes and media in tokens."""

    def __init__(self, view: View, media: Mapping[int, Medium], seed: int) -> None:
        self.hash = running(seed)
        self.links: list[int] = []
        self.places: list[tuple[int, int]] = []
        self.text_bytes = 0
        self.home: int | None = None
        self.first: bytes | None = None
        self.met: list[tuple[bytes, int, int]] = []
        self._media_tokens = 0
        self._linked = 0
        self._view = view
        self._media = media

    def node(self, node: Json, depth: int) -> None:
        """Take in one value and all inside it."""
        if isinstance(node, str | LongString):
            medium = self._media.get(id(node))
            if medium is not None:
                self._medium(medium)
            elif isinstance(node, str):
                self._text(node.encode("utf-8", "surrogatepass"))
            elif node.is_data_url:
                self._unknown(node)
            else:
                self._text(self._view(node.span.start, node.span.stop))
        elif depth > _DEPTH_LIMIT:
            return
        elif isinstance(node, dict):
            for key, value in node.items():
                self.hash.update(key.encode("utf-8", "surrogatepass") + b":")
                self.node(value, depth + 1)
        elif isinstance(node, list):
            for value in node:
                self.node(value, depth + 1)
            self.hash.update(b"]")
        else:
            self.hash.update(repr(node).encode())

    def end(self) -> None:
        """A message ends here: a link, unless the last one is very near."""
        self.hash.update(b"\0")
        place = self._place
        if 4 * (place - self._linked) >= self._gap(place):
            self._link()

    @property
    def _place(self) -> int:
        return self.text_bytes + self._media_tokens * _BYTES_PER_TOKEN

    def _gap(self, place: int) -> int:
        return max(_LEAST_GAP_BYTES, place >> _GAP_SHIFT)

    def _link(self) -> None:
        self.links.append(self.hash.intdigest())
        self.places.append((self.text_bytes, self._media_tokens))
        self._linked = self._place

    def _text(self, text: bytes | memoryview) -> None:
        left = len(text)
        start = 0
        while (room := self._linked + self._gap(self._linked) - self._place) <= left:
            self.hash.update(text[start : start + room] if start or room < left else text)
            start, left = start + room, left - room
            self.text_bytes += room
            self._link()
        if left:
            self.hash.update(text[start:] if start else text)
            self.text_bytes += left

    def _medium(self, medium: Medium) -> None:
        self.hash.update(medium.digest)
        self._media_tokens += medium.tokens
        if self.first is None:
            self.first = medium.file
        self.met.append((medium.digest, self.text_bytes, self._media_tokens))
        self._link()

    def _unknown(self, node: LongString) -> None:
        """Left out, or of a kind that nobody looks into."""
        span = node.span
        self.hash.update(span.byte_count.to_bytes(8, "little"))
        self.hash.update(self._view(span.start, min(span.stop, span.start + _END_BYTES)))
        self.hash.update(self._view(max(span.start, span.stop - _END_BYTES), span.stop))
