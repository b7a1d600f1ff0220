"""A bare aiohttp relay: the least that a proxy on this stack can cost. Reads the body, forwards it, relays the answer.

Run as ``python -m benchmarks.relay BACKEND_URL``; prints its port as a JSON line. It forwards bodies as they come and
looks at nothing: no key, no policy, no routing, no metrics.
"""

from __future__ import annotations

import asyncio
import json
import sys

import aiohttp
from aiohttp import web

_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length"}
)


async def _serve(backend: str) -> None:
    session = aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        timeout=aiohttp.ClientTimeout(total=None),
        connector=aiohttp.TCPConnector(limit=0),
    )

    async def relay(request: web.BaseRequest) -> web.StreamResponse:
        pieces = []
        while piece := await request.content.readany():
            pieces.append(piece)
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _HOP]
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        async with session.post(backend + request.path_qs, data=body, headers=headers) as upstream:
            kept = [(name, value) for name, value in upstream.headers.items() if name.lower() not in _HOP]
            response = web.StreamResponse(status=upstream.status, headers=dict(kept))
            response.content_length = upstream.content_length
            await response.prepare(request)
            while chunk := await upstream.content.readany():
                await response.write(chunk)
            await response.write_eof()
            return response

    runner = web.ServerRunner(web.Server(relay, access_log=None, read_bufsize=512 * 1024, auto_decompress=False))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
