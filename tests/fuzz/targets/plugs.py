"""Stand-ins for sockets, so that bytes meet real protocols without a network: a transport, a loop that is stepped, and
a server that says the same to whatever it is asked."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

# Far more steps than any exchange of a few kilobytes takes; whoever needs more hangs.
_MOST_STEPS = 20_000
_COMMAND = re.compile(rb"(?:^|\r\n)\*\d+(?=\r\n)")


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
    """A server on a Unix socket that answers every command of Redis's protocol with ``says``; or whatever it hears,
    once, before it ends the connection, if that is its ``last`` word."""

    def __init__(self) -> None:
        self.says = b""
        self.last = True
        self.path = _folder() / f"{id(self):x}.sock"

    async def start(self) -> None:
        """Listen until closed."""
        self._server = await asyncio.start_unix_server(self._answer, self.path)

    def close(self) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while heard := await reader.read(1 << 16):
            if self.last:
                writer.write(self.says)
                break
            writer.write(self.says * len(_COMMAND.findall(heard)))
        writer.close()


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=f"fuzz-{os.getpid()}-"))
