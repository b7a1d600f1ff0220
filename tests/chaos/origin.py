"""The origin of remote pictures: a small HTTP server whose every path is a picture of the colour it names.

It runs on an address of its own, which alone the gateway is told to be public. It is a process, so that it can be
killed and frozen like every other part: ``python -m tests.chaos.origin PORT``.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys

from tests.chaos.load import picture

ADDRESS = "127.0.0.9"
_COLOUR = re.compile(rb"^GET /([0-9a-f]{6})\.jpg HTTP/1\.1\r\n")


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            asked = _COLOUR.match(head)
            if asked is None:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            else:
                data = picture(f"#{asked[1].decode()}")
                head = f"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}\r\n".encode()
                # Fetched anew every time: an origin that is away must be noticed.
                writer.write(head + b"Cache-Control: no-store\r\n\r\n" + data)
            await writer.drain()
    writer.close()


async def _main(port: int) -> None:
    server = await asyncio.start_server(_serve, ADDRESS, port)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
