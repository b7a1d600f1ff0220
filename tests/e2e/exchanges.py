"""Generated exchanges for the differential test: requests and answers as odd as HTTP and JSON allow, and no odder.

Decided here: what is generated. Each message is whole and valid by RFC 9110 and 9112; what is invalid is the business
of the edge's own tests. Hypothesis chooses a seed and no more: choosing every character took longer than a thousand
exchanges do.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from tests.e2e.wires import Printer, Script

PASS_THROUGH = ("/v1/audio/transcriptions", "/v1/audio/translations")
_TOKEN = string.ascii_letters + string.digits + "-_.!~"
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
_ODD_HEADER_VALUES = ("", '"quoted, with: colons"', "a=b; c=d", "*/*;q=0.1", "München 東京", "a\t \tb", "a  b")
_KNOWN_IN_REQUESTS = (
    "Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Cookie", "User-Agent", "traceparent", "Forwarded",
    "X-Forwarded-For", "Via", "Cache-Control", "If-None-Match", "OpenAI-Organization", "x-stainless-lang", "Priority",
    "DNT", "Range", "Pragma", "x-vlmgw-task-not", "x-smg-routing-key", "X-Data-Parallel-Rank", "Origin",
)  # fmt: skip
_KNOWN_IN_RESPONSES = (
    "Set-Cookie", "Cache-Control", "ETag", "Vary", "Link", "Server", "x-request-id", "Via", "Age", "Warning",
    "openai-processing-ms", "WWW-Authenticate", "Retry-After", "Access-Control-Allow-Origin", "Server-Timing",
    "Content-Language", "Location",
)  # fmt: skip
# A second one of these would not be valid.
_ONCE = frozenset(
    {
        "authorization",
        "user-agent",
        "server",
        "etag",
        "age",
        "location",
        "retry-after",
        "x-request-id",
        "range",
        "origin",
    }
)
_HOP_BY_HOP = (("Keep-Alive", "timeout=5"), ("TE", "trailers"), ("Proxy-Connection", "close"), ("Trailer", "X-End"))
_SPELLINGS = (str, str.lower, str.upper, str.title)

# JSON values as they may be spelt; what is inside is none of the gateway's business.
_ODD_VALUES = (
    "1", "1.0", "1E+2", "-0", "0.1e-7", "12345678901234567890123", "true", "null", '""', '"\\u00e9"', '"/\\/"',
    '"\\ud83d\\ude00"', '"\\ud800"', "[]", "{}", '[ 1 ,\t2 ]', '{"a" : {"b":[null]}}', '"é 東京"', '"\\b\\f"',
    "[[[[[]]]]]",
)  # fmt: skip
_FIELDS = ("temperature", "top_p", "stop", "seed", "x_unknown", "logit_bias", "été", "a.b", "reasoning_effort")
_TEXTS = ('"hi"', '"\\u0068i"', '"<|image_pad|>"', '[{"type":"text","text":"hi"}]', '"a\\nb"', '"😀"')
_EVENTS = (
    b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', b": keep-alive\n\n", b"event: x\ndata: 1\ndata: 2\n\n",
    b"data: [DONE]\n\n", b"\n", b"id: 7\r\ndata: y\r\n\r\n", b"data:\xf0\x9f\x98\x80\n\n", b"retry: 10\n\n",
    b'data: {"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n',
)  # fmt: skip
_KINDS = ("application/json", "text/event-stream; charset=utf-8", "application/octet-stream", "")
_STATUSES = (200, 200, 200, 200, 201, 204, 206, 302, 304, 400, 404, 409, 422, 429, 500, 503)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, ``head`` without its framing, and the answer to it."""

    target: str
    head: tuple[tuple[str, str], ...]
    body: bytes
    chunks: tuple[int, ...] | None
    cuts: tuple[int, ...]
    answer: Script

    def __repr__(self) -> str:
        said = (self.target, self.head, self.body[:1500], len(self.body), self.chunks, self.cuts, self.answer)
        return f"Exchange{said!r}"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(repr(self))

    def pieces(self, host: str) -> list[bytes]:
        """The request's bytes, cut where the exchange says."""
        framing = ("Content-Length", str(len(self.body))) if self.chunks is None else ("Transfer-Encoding", "chunked")
        lines = [f"POST {self.target} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in (*self.head, framing)]
        body = self.body if self.chunks is None else chunked(self.body, self.chunks, b"")
        return cut("\r\n".join([*lines, "", ""]).encode() + body, self.cuts)


def chunked(body: bytes, sizes: tuple[int, ...], trailers: bytes) -> bytes:
    """``body`` in chunks of these sizes, by turns; every third one carries an extension."""
    made, at, turn = bytearray(), 0, 0
    while at < len(body):
        size = sizes[turn % len(sizes)]
        piece = body[at : at + size]
        extension = b";name=value" if turn % 3 == 1 else b""
        made += b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)
        at += size
        turn += 1
    return bytes(made) + b"0\r\n" + trailers + b"\r\n"


def cut(data: bytes, cuts: tuple[int, ...]) -> list[bytes]:
    """``data`` in pieces that begin at these places, taken modulo its length."""
    places = sorted({at % (len(data) + 1) for at in cuts} - {0, len(data)})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def _word(random: Random, alphabet: str) -> str:
    return "".join(random.choices(alphabet, k=random.randint(1, 12)))


def _value(random: Random) -> str:
    if random.random() < 0.4:
        return random.choice(_ODD_HEADER_VALUES)
    return "  ".join(_word(random, _VISIBLE) for _ in range(random.randint(1, 4)))


def _headers(random: Random, known: tuple[str, ...]) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []
    for _ in range(random.randint(0, 7)):
        name = random.choice(known) if random.random() < 0.6 else f"X-{_word(random, _TOKEN)}"
        if made and random.random() < 0.2:
            name = random.choice(made)[0]
        if name.lower() not in _ONCE or all(name.lower() != other.lower() for other, _ in made):
            made.append((random.choice(_SPELLINGS)(name), _value(random)))
    if random.random() < 0.3:
        made.append(random.choice(_HOP_BY_HOP))
    return made


def _bytes(random: Random) -> bytes:
    if random.random() < 0.2:
        return random.randbytes(random.randint(1, 160) * 1024)
    return random.randbytes(random.randint(0, 400))


def _sizes(random: Random, body: bytes) -> tuple[int, ...]:
    # Large bodies in single bytes would measure this test's own loops.
    least = 1 if len(body) < 1000 else 500
    return tuple(max(size, least) for size in random.choices((1, 2, 7, 100, 4096, 70000), k=random.randint(1, 3)))


def _cuts(random: Random) -> tuple[int, ...]:
    return tuple(random.randint(1, 2000) for _ in range(random.randint(0, 4)))


def _chat_body(random: Random) -> bytes:
    fields = {name: random.choice(_ODD_VALUES) for name in random.sample(_FIELDS, random.randint(0, 5))}
    fields["model"] = '"m"'
    fields["messages"] = f'[{{"role":"user","content":{random.choice(_TEXTS)}}}]'
    if random.random() < 0.5:
        fields["stream"] = random.choice(("true", "false"))
    names = random.sample(sorted(fields), len(fields))
    space = random.choice(("", " ", "\n", "\r\n  ", "\t"))
    inside = f"{space},{space}".join(f'"{name}"{space}:{space}{fields[name]}' for name in names)
    return f"{space}{{{space}{inside}{space}}}{space}".encode()


def _answer(random: Random) -> Script:
    status, kind = random.choice(_STATUSES), random.choice(_KINDS)
    is_stream = kind.startswith("text/")
    body = b"".join(random.choices(_EVENTS, k=random.randint(0, 8))) if is_stream else _bytes(random)
    headers = _headers(random, _KNOWN_IN_RESPONSES)
    headers += [("Content-Type", kind)] if kind else []
    if not is_stream and random.random() < 0.4:
        headers.append(("Content-Encoding", random.choice(("gzip", "br", "zstd", "identity"))))
    if random.random() < 0.2:
        headers.append(("X-Latin", "b\xe4r"))
    framing = random.choice(("length", "chunked", "close"))
    version, sent = "1.1", body
    if status in {204, 304}:
        framing, sent = "none", b""
    elif framing == "length":
        headers.append(("Content-Length", str(len(body))))
    elif framing == "chunked":
        headers.append(("Transfer-Encoding", "chunked"))
        sent = chunked(body, _sizes(random, body), random.choice((b"", b"", b"X-End: 1\r\n")))
    else:
        version = random.choice(("1.0", "1.1"))
        headers.append(("Connection", "close"))
    random.shuffle(headers)
    lines = [f"HTTP/{version} {status} Whatever", *(f"{name}: {value}" for name, value in headers), "", ""]
    head = b"\r\n".join(line.encode("latin-1" if line.startswith("X-Latin") else "utf-8") for line in lines)
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" if random.random() < 0.2 else b""
    return Script(tuple(cut(interim + head + sent, _cuts(random))), closes=framing == "close")


def exchange_of(seed: int) -> Exchange:
    """One exchange: on a path that is read or on one that passes through."""
    random = Random(seed)
    is_read = random.random() < 0.5
    body = _chat_body(random) if is_read else _bytes(random)
    head = _headers(random, _KNOWN_IN_REQUESTS)
    if random.random() < 0.3:
        head.append(("X-Request-ID", _word(random, _VISIBLE)))
    if random.random() < 0.3:
        head += [("Connection", "X-Nominated"), ("X-Nominated", "gone")]
    head.append(("Content-Type", random.choice(("application/json", "application/json; charset=utf-8", "text/x"))))
    random.shuffle(head)
    path = "/v1/chat/completions" if is_read else random.choice(PASS_THROUGH)
    query = random.choice(("", "", "?a=b", "?x=%2F%20&y=+&z", "?q=a/b?c&&"))
    sizes = _sizes(random, body) if random.random() < 0.5 else None
    return Exchange(path + query, tuple(head), body, sizes, _cuts(random), _answer(random))


def exchanges() -> st.SearchStrategy[Exchange]:
    """Exchanges of any seed."""
    return st.integers(0, 2**64 - 1).map(exchange_of)
