"""Stand-ins for sockets, so that bytes meet real protocols without a network: a transport, a loop that is stepped, and
a server that says the same to whatever it is asked."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

# Far more steps than any exchange of a few kilobytes takes; whoever needs more hangs.
_MOST_STEPS = 20_000


class Plug(asyncio.Transport):
    """Keeps what a protocol writes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self._loop = loop
        self._protocol = protocol
        self._closing = False
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing:
            self.written += data

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.write(data)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        """What comes is handed over piece by piece anyway."""

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""


class Stepped(asyncio.SelectorEventLoop):
    """A loop that runs until nothing is left to do at once, and notes what nobody caught."""

    def __init__(self) -> None:
        super().__init__()
        self.uncaught: list[str] = []
        self.set_exception_handler(lambda _, context: self.uncaught.append(repr(context)))

    def settle(self) -> None:
        """Run what is ready. Raises AssertionError for work that does not end."""
        for _ in range(_MOST_STEPS):
            if not self._ready:  # type: ignore[attr-defined]  # asyncio's own queue: there is no public way to look
                return
            self.call_soon(self.stop)
            self.run_forever()
        raise AssertionError("the loop does not come to rest")


class Heard(logging.Handler):
    """What a library's logger said, which nobody may have to read."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self.records: list[str] = []
        logger = logging.getLogger(name)
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(logging.Formatter().format(record))


class Parrot:
    """A server on a Unix socket that answers everything with ``says``; what is asked once more hears an end."""

    def __init__(self, times: int) -> None:
        self.says = b""
        self._times = times
        self.path = _folder() / f"{id(self):x}.sock"

    async def start(self) -> None:
        """Listen until the process ends."""
        self._server = await asyncio.start_unix_server(self._answer, self.path)

    def close(self) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(self._times):
            if not await reader.read(1 << 16):
                break
            writer.write(self.says)
        writer.close()


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=f"fuzz-{os.getpid()}-"))
