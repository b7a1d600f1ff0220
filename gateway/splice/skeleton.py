"""A body's skeleton: the parsed JSON in which every long string stays where it is, in the body.

Decided here: which bodies are JSON objects we accept, and which strings are too long to parse. Not decided here: what
any member means (``dialects``), and what is changed (``edit``).

How: one regular expression runs over structure and short strings at C speed and stops at the quote that opens a long
one; the long one is skipped by byte search, and a handle takes its place in the text that the C parser reads. Work is
bounded on all sides (``Limits``); beyond any of them ``TooComplex`` is raised, and the caller may cut again in a thread
with wider limits, or refuse. A body that runs out of steps alone, but is small enough to be parsed as it is, is parsed
as it is.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from json import JSONDecodeError, JSONDecoder

from gateway.errors import InvalidRequest, NotJson, TooComplex
from gateway.splice import scan
from gateway.types import Buffer, Json, JsonObject, LongString, Pointer, Span
from gateway.types.per_request import per_request

# A string with more plain bytes than this in a row is left in the body.
LONG_STRING_BYTES = 512
# Containers inside containers. The C parser recurses once per level and shares Python's limit of 1,000 frames.
MAX_DEPTH = 512


@dataclass(frozen=True, slots=True)
class Limits:
    """What one cut may cost. The defaults are for the event loop: at worst some 20 ms on a slow core.

    ``parsed_bytes`` are looked at one by one (structure, short strings), ``steps`` cost Python time (strings that are
    long or have many escapes), ``containers`` are objects and arrays, ``members`` those of any one object.
    """

    parsed_bytes: int = 1024 * 1024
    steps: int = 5_000
    containers: int = 10_000
    members: int = 5_000


ON_LOOP = Limits()
# For a thread. The C parser keeps the interpreter's lock while it runs, so this is no licence to parse anything: 4 MiB
# of tiny strings hold it for some 60 ms. More text than that fits no model's context.
OFF_LOOP = Limits(parsed_bytes=4 * 1024 * 1024, steps=50_000, containers=100_000, members=50_000)


@dataclass(frozen=True, slots=True)
class Cut:
    """One long string: where its handle stands in the skeleton's text, and where the string stands in the body."""

    text: Span
    body: Span


@per_request(frozen=True, slots=True)
class Skeleton:
    """``tree`` is the parsed body; ``text`` the JSON it was parsed from; ``cuts`` are in order.

    ``start`` is the body's first byte in the buffer: offsets of ``text`` become absolute with :meth:`absolute`,
    which looks them up among ``text_ends`` (where the handles end).
    """

    tree: JsonObject
    text: bytes
    start: int
    cuts: tuple[Cut, ...]
    text_ends: tuple[int, ...] = ()

    def absolute(self, text_offset: int) -> int:
        """Where a byte of the skeleton's text (never one inside a handle) stands in the buffer."""
        index = bisect_right(self.text_ends, text_offset)
        if index == 0:
            return self.start + text_offset
        before = self.cuts[index - 1]
        return before.body.stop + text_offset - before.text.stop

    def locate(self, pointers: Iterable[Pointer]) -> Mapping[Pointer, scan.ValueSpan]:
        """Absolute spans of values; objects come with their members. Pointers to nothing are left out."""
        found = scan.locate(self.text, tuple(pointers))
        return {pointer: value.moved(self.absolute) for pointer, value in found.items()}


def cut(buffer: Buffer, start: int, stop: int, limits: Limits = ON_LOOP) -> Skeleton:
    """Parse ``buffer[start:stop]``, leaving long strings where they are.

    Raises NotJson (empty, not UTF-8, not JSON, NaN, not an object), InvalidRequest (a key twice in one object),
    TooComplex (nesting beyond ``MAX_DEPTH``, or more work than ``limits`` allow). What would be too complex and cannot
    be an object by its first byte (a file's own bytes, most likely) is no JSON to begin with.
    """
    if stop <= start:
        raise NotJson("The body is empty; a JSON object is expected.")
    try:
        strings = _long_strings(buffer, start, stop, limits)
        parsed_bytes = stop - start - sum(span.byte_count for span in strings)
        if parsed_bytes > limits.parsed_bytes:
            raise TooComplex(detail=f"{parsed_bytes} bytes would have to be parsed")
        text, cuts, tag = _skeleton_text(buffer, start, stop, strings)
        _check_nesting(text, limits)
    except TooComplex:
        _check_beginning(buffer, start, stop)
        raise
    tree: JsonObject = {}
    skeleton = Skeleton(tree, text, start, cuts, tuple([each.text.stop for each in cuts]))
    tree.update(_parse(skeleton, limits))
    if strings:
        _put_back(tree, tag, _describe(buffer, strings, limits))
    return skeleton


def _check_beginning(buffer: Buffer, start: int, stop: int) -> None:
    """Raises NotJson for what cannot be an object by its first byte that is no white space, if that comes soon."""
    first = buffer[start : min(stop, start + _FIRST_BYTES)].lstrip(_WHITE)[:1]
    if first not in (b"", b"{"):
        raise NotJson("The body is not a JSON object: it begins with something else.")


# Where the first byte that is no white space is looked for; beyond it nothing is said.
_FIRST_BYTES = 64
_WHITE = b" \t\r\n"
# Structure and short strings, up to 500 of them. Nothing in it goes back over what it passed: linear time.
# A short string is up to 512 plain bytes, then up to 16 times an escape and up to 64 plain bytes.
_SHORT = re.compile(
    rb'[^"]*+(?>(?:"[^"\\]{0,%d}+(?:"|(?>(?:\\.[^"\\]{0,64}+){1,16})")[^"]*+){0,500})' % LONG_STRING_BYTES, re.DOTALL
)
_BEFORE_COLON = re.compile(rb"[ \t\r\n]*+:")
# How often the end of one string is looked for by plain search, before escaped quotes make a pattern cheaper.
_QUICK_SEARCHES = 16


def _long_strings(buffer: Buffer, start: int, stop: int, limits: Limits) -> list[Span]:
    """The contents of all values that are strings beyond the limit; keys always stay in the skeleton."""
    found: list[Span] = []
    position, steps, looked_at = start, 0, 0
    while True:
        window = position + limits.parsed_bytes - looked_at
        reached = scan.match_end(_SHORT, buffer, position, min(stop, window))
        looked_at += reached - position
        if reached >= stop:
            return found
        steps += 1
        if steps > limits.steps:
            if stop - start <= limits.parsed_bytes:
                return []
            raise TooComplex(detail=f"more than {limits.steps} strings beyond the limits of short ones")
        if reached >= window:
            raise TooComplex(detail=f"more than {limits.parsed_bytes} bytes of structure and short strings")
        content = reached + 1
        end, slow_bytes = _string_end(buffer, content, stop, limits.parsed_bytes - looked_at)
        looked_at += slow_bytes
        if end < 0:
            return found  # unterminated: the parser says so, with its place
        if end - content > LONG_STRING_BYTES and scan.match_end(_BEFORE_COLON, buffer, end + 1, stop) < 0:
            found.append(Span(content, end))
        position = end + 1


def _string_end(buffer: Buffer, content: int, stop: int, slow_limit: int) -> tuple[int, int]:
    """The closing quote of the string whose content begins at ``content``, and the bytes looked at one by one."""
    position, slow_bytes = content, 0
    for _ in range(_QUICK_SEARCHES):
        quote = buffer.find(b'"', position, stop)
        if quote < 0:
            return -1, slow_bytes
        backslashes = _backslashes_before(buffer, content, quote, slow_limit - slow_bytes)
        slow_bytes += backslashes
        if backslashes % 2 == 0:
            return quote, slow_bytes
        position = quote + 1
    window = min(stop, position + slow_limit - slow_bytes)
    quote = scan.closing_quote(buffer, position, window)
    if quote < 0 and window < stop:
        raise TooComplex(detail="a string with too many escaped quotes")
    return quote, slow_bytes + (window if quote < 0 else quote) - position


# Compared whole, piece by piece, as long as there is nothing else.
_BACKSLASHES = b"\\" * 16_384


def _backslashes_before(buffer: Buffer, content: int, quote: int, limit: int) -> int:
    """How many backslashes stand in a row before the quote. Raises TooComplex for more than ``limit``."""
    if quote == content or buffer[quote - 1 : quote] != b"\\":
        return 0
    first, width = quote, 64
    while first > content:
        before = buffer[max(content, first - width) : first]
        if before != _BACKSLASHES[: len(before)]:
            first -= len(before) - len(before.rstrip(b"\\"))
            break
        first -= len(before)
        if quote - first > limit:
            raise TooComplex(detail="a string with too many backslashes before its end")
        width = len(_BACKSLASHES)
    return quote - first


def _skeleton_text(buffer: Buffer, start: int, stop: int, strings: list[Span]) -> tuple[bytes, tuple[Cut, ...], bytes]:
    """The text to parse. A handle is a hash of all the text around the handles and a number.

    No client can put a handle into a body: its text would have to contain its own 128-bit hash.
    """
    if not strings:
        return bytes(buffer[start:stop]), (), b""
    edges = [start, *(edge for span in strings for edge in (span.start, span.stop)), stop]
    pieces = [buffer[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2)]
    tag = blake2b(b"\xff".join(pieces), digest_size=16).hexdigest().encode()
    parts, cuts, offset = [pieces[0]], [], len(pieces[0])
    for index, (span, piece) in enumerate(zip(strings, pieces[1:], strict=True)):
        handle = b"%s%d" % (tag, index)
        cuts.append(Cut(Span(offset, offset + len(handle)), span))
        parts += [handle, piece]
        offset += len(handle) + len(piece)
    return b"".join(parts), tuple(cuts), tag


def _check_nesting(text: bytes, limits: Limits) -> None:
    opened = text.count(b"{") + text.count(b"[")
    if opened <= MAX_DEPTH:
        return
    depth, count = scan.depth_and_containers(text, MAX_DEPTH, limits.containers)
    if depth > MAX_DEPTH:
        raise TooComplex(f"The body is nested deeper than {MAX_DEPTH} levels.")
    if count > limits.containers:
        raise TooComplex(detail=f"more than {limits.containers} objects and arrays")


class _TwiceError(Exception):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def _no_constant(name: str) -> Json:
    raise NotJson(f"The body is not valid JSON: {name} is no JSON number.")


@cache
def _decoder(max_members: int) -> JSONDecoder:
    def unique(pairs: list[tuple[str, Json]]) -> JsonObject:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise _TwiceError(_first_repeated(key for key, _ in pairs))
        if len(members) > max_members:
            raise TooComplex(detail=f"an object with {len(members)} members")
        return members

    return JSONDecoder(object_pairs_hook=unique, parse_constant=_no_constant)


def _first_repeated(keys: Iterable[str]) -> str:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _parse(skeleton: Skeleton, limits: Limits) -> JsonObject:
    try:
        text = skeleton.text.decode()
        tree = _decoder(limits.members).decode(text)
    except UnicodeDecodeError as error:
        raise NotJson(f"The body is not UTF-8 at byte {_place(skeleton, error.start)}.") from None
    except JSONDecodeError as error:
        place = _place(skeleton, len(error.doc[: error.pos].encode()))
        raise NotJson(f"The body is not valid JSON at byte {place}.", detail=error.msg) from None
    except _TwiceError as error:
        raise InvalidRequest(f"The key {_shown(error.key)} stands twice in one object.", part=error.key[:64]) from None
    except RecursionError:
        raise TooComplex(f"The body is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:  # an integer beyond Python's limit of digits
        raise NotJson("The body holds a number with too many digits.", detail=str(error)) from None
    if not isinstance(tree, dict):
        raise NotJson("The body is JSON, but not an object.")
    return tree


def _place(skeleton: Skeleton, text_offset: int) -> int:
    return skeleton.absolute(text_offset) - skeleton.start


def _shown(key: str) -> str:
    return ascii(key if len(key) <= 64 else f"{key[:64]}...")


def _describe(buffer: Buffer, strings: list[Span], limits: Limits) -> list[LongString]:
    """Long strings other than data URLs are checked and counted, as far as the limit of bytes goes in sum."""
    left_bytes = limits.parsed_bytes
    described: list[LongString] = []
    for span in strings:
        has_escapes = buffer.find(b"\\", span.start, span.stop) >= 0
        text_byte_count = None
        is_data_url = buffer[span.start : span.start + 5].lower() == b"data:"
        if not is_data_url and span.byte_count <= left_bytes:
            left_bytes -= span.byte_count
            text_byte_count = _text_byte_count(buffer, span)
        described.append(LongString(span, has_escapes, text_byte_count, is_data_url))
    return described


def _text_byte_count(buffer: Buffer, span: Span) -> int:
    try:
        text = json.loads(buffer[span.start - 1 : span.stop + 1].decode())
    except (UnicodeDecodeError, JSONDecodeError) as error:
        raise NotJson("A long string of the body is not valid JSON in UTF-8.", detail=str(error)) from None
    return len(text.encode("utf-8", "surrogatepass"))


def _put_back(tree: JsonObject, tag: bytes, strings: list[LongString]) -> None:
    """Replace handles by what they stand for. Keys never are handles."""
    prefix = tag.decode()
    length = len(prefix)
    left = len(strings)
    todo: list[JsonObject | list[Json]] = [tree]
    while todo and left:
        container = todo.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        found: list[tuple[str | int, LongString]] = []
        for key, value in items:
            if type(value) is str:
                if value.startswith(prefix):
                    found.append((key, strings[int(value[length:])]))
            elif type(value) is dict or type(value) is list:
                todo.append(value)
        for key, string in found:
            container[key] = string  # type: ignore[index]
        left -= len(found)
