"""One HTTP/2 connection in the hands of a test: what httpx does not do, above all resetting one stream of many."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset

from tests.e2e.processes import DEADLINE_S


class Http2:
    """Requests on one connection; ``bodies`` and ``statuses`` by stream, ``ended`` those that are complete."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        trust.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        self._socket = trust.wrap_socket(plain, server_hostname="localhost")
        assert self._socket.selected_alpn_protocol() == "h2"
        self._connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._connection.initiate_connection()
        self.bodies: dict[int, bytes] = {}
        self.statuses: dict[int, int] = {}
        self.ended: set[int] = set()
        self._flush()

    def __enter__(self) -> Http2:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def post(self, path: str, body: Mapping[str, Any]) -> int:
        """Begin a request; its stream."""
        data = json.dumps(body).encode()
        stream = self.announce(path, len(data))
        self._connection.send_data(stream, data, end_stream=True)
        self._flush()
        return stream

    def announce(self, path: str, length: int) -> int:
        """A request's head alone; its stream."""
        stream = self._connection.get_next_available_stream_id()
        heads = {":method": "POST", ":path": path, ":scheme": "https", ":authority": "localhost"}
        fields = {"content-type": "application/json", "content-length": str(length)}
        self._connection.send_headers(stream, [*heads.items(), *fields.items()])
        self.bodies[stream] = b""
        self._flush()
        return stream

    def reset(self, stream: int) -> None:
        """Cancel one stream (RST_STREAM)."""
        self._connection.reset_stream(stream, 8)
        self._flush()

    def until(self, condition: Callable[[], bool]) -> None:
        """Receive until it holds. Raises TimeoutError, and ConnectionError when the other side closes."""
        while not condition():
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("closed")
            for event in self._connection.receive_data(data):
                self._take(event)
            self._flush()

    def _take(self, event: object) -> None:
        match event:
            case ResponseReceived(headers=headers, stream_id=int(stream)):
                self.statuses[stream] = int(next(str(value) for name, value in headers or () if str(name) == ":status"))
            case DataReceived(data=data, stream_id=int(stream), flow_controlled_length=int(length)):
                self.bodies[stream] += data or b""
                self._connection.acknowledge_received_data(length, stream)
            case StreamEnded(stream_id=int(stream)) | StreamReset(stream_id=int(stream)):
                self.ended.add(stream)
            case _:
                pass

    def _flush(self) -> None:
        self._socket.sendall(self._connection.data_to_send())
