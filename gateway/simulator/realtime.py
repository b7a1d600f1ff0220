"""A stand-in for a realtime API over WebSocket: greets, echoes what it hears, ends as it is told.

Not a model of any engine's events: enough to see that messages, codes and subprotocols cross whatever is in front.
"""

import asyncio
import json

from aiohttp import WSMsgType, web

SUBPROTOCOL = "realtime"
_BYE = "bye "


async def realtime(request: web.Request) -> web.StreamResponse:
    """`GET /v1/realtime`: text and binary come back; `bye CODE REASON` closes so; `flood COUNT SIZE` sends so much."""
    socket = web.WebSocketResponse(protocols=(SUBPROTOCOL,), compress=False, max_msg_size=0)
    await socket.prepare(request)
    greeting = {
        "type": "session.created",
        "path": request.path_qs,
        "authorization": request.headers.get("Authorization"),
    }
    await socket.send_str(json.dumps(greeting))
    async for message in socket:
        if message.type is WSMsgType.TEXT and message.data.startswith(_BYE):
            code, _, reason = message.data.removeprefix(_BYE).partition(" ")
            await socket.close(code=int(code), message=reason.encode())
        elif message.type is WSMsgType.TEXT and message.data.startswith("flood "):
            await _flood(socket, *map(int, message.data.split(" ")[1:]))
        elif message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket


async def _flood(socket: web.WebSocketResponse, count: int, size: int) -> None:
    for _ in range(count):
        await socket.send_bytes(b"x" * size)
        await asyncio.sleep(0)
