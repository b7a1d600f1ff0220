"""From the string in an image part to the file's bytes, with each engine's strictness and its texts.

vLLM 0.32.0: only `data:…;base64,` with nothing else between (anything else is 501), strict alphabet and padding;
`http(s)` is fetched with 5 s; `file` needs a server flag nobody set, hence 500. SGLang 0.5.23 takes bare base64 too
and gives 400 for whatever it cannot read.
"""

import asyncio
from urllib.parse import urlsplit

import aiohttp
import pybase64

from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import EngineKind

FETCH_TIMEOUT_S = 5.0


async def read_source(url: str, engine: EngineKind) -> bytes:
    """The bytes that `url` stands for. Raises Refusal with the engine's own status and text."""
    scheme = url[:8].partition(":")[0].lower() if ":" in url[:8] else ""
    if scheme == "data":
        return await asyncio.to_thread(read_data_url, url, engine)
    if scheme in {"http", "https"}:
        return await _fetch(url, engine)
    if scheme == "file":
        raise Refusal(500 if engine is EngineKind.VLLM else 400, _FILE_REFUSED, _kind_of(engine))
    if engine is EngineKind.SGLANG and not scheme:
        return _decode_base64(url)
    raise Refusal(400, "The URL must be either a HTTP, data or file URL.")


def read_data_url(url: str, engine: EngineKind) -> bytes:
    """Decode a data URL. The media type is ignored, as both engines do."""
    header, comma, payload = url.partition(",")
    if not comma:
        raise Refusal(400, "Invalid data URL: no comma")
    _, _, coding = header.partition(":")[2].partition(";")
    if engine is EngineKind.VLLM and coding != "base64":  # vLLM 0.32 answers with these very words, status and type
        raise Refusal(501, "Only base64 data URLs are supported for now.", "NotImplementedError")
    return _decode_base64(payload)


def _decode_base64(payload: str) -> bytes:
    try:
        return pybase64.b64decode(payload, validate=True)
    except ValueError:
        raise Refusal(400, "Non-base64 digit found") from None


async def _fetch(url: str, engine: EngineKind) -> bytes:
    unreachable = Refusal(500 if engine is EngineKind.VLLM else 400, f"Failed to fetch {url}", _kind_of(engine))
    if not urlsplit(url).hostname:
        raise Refusal(400, "The URL has no host.")
    timeout = aiohttp.ClientTimeout(total=FETCH_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            if answer.status == 200:
                return await answer.read()
            status = answer.status
    except (aiohttp.ClientError, TimeoutError):
        raise unreachable from None
    if engine is EngineKind.VLLM and 400 <= status < 500 and status != 429:
        message = f"Failed to fetch media from URL: HTTP {status} error ({url})"
        raise Refusal(422, message, "UnprocessableEntityError", "image_url")
    raise unreachable


def _kind_of(engine: EngineKind) -> str:
    return "InternalServerError" if engine is EngineKind.VLLM else "BadRequestError"


_FILE_REFUSED = "Cannot load local files without `--allowed-local-media-path`."
