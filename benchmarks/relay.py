"""A bare aiohttp relay, as one writes it: an application with one catch-all route that forwards the body as it came.

Run as ``python -m benchmarks.relay BACKEND_URL``; prints its port as a JSON line. It looks at nothing: no key, no
policy, no routing, no metrics, no log.
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
_BODY_LIMIT_BYTES = 1 << 30


async def _serve(backend: str) -> None:
    session = aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None))

    async def relay(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        async with session.request(
            request.method, backend + request.path_qs, data=body, headers=headers, allow_redirects=False
        ) as upstream:
            kept = {name: value for name, value in upstream.headers.items() if name.lower() not in _HOP}
            response = web.StreamResponse(status=upstream.status, headers=kept)
            response.content_length = upstream.content_length
            await response.prepare(request)
            async for chunk in upstream.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    application = web.Application(client_max_size=_BODY_LIMIT_BYTES)
    application.router.add_route("*", "/{path:.*}", relay)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
