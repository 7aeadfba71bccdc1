"""One HTTP/2 connection that we opened, over which many requests go at once: to a service that has one address.

A connection that says GOAWAY carries what it has taken to its end, and takes nothing more: what it will not answer is
`NotSent`, and goes again on another connection.
"""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Final, cast

from h2.config import H2Configuration
from h2.connection import ConnectionInputs, ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import H2Error

from recado.channels.http.answer import Answer, Lost, NotSent

LONGEST_READ: Final = 64 * 1024  # bytes of an answer's body
MOST_STREAMS: Final = 500

Headers = list[tuple[str, str]]


@dataclass(slots=True)
class _Exchange:
    done: "asyncio.Future[Answer | NotSent | Lost]"
    status: int = 0
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)


class Http2Connection(asyncio.Protocol):
    """`usable` while it takes requests; `room` says whether it takes one now."""

    def __init__(self) -> None:
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        # To h2 the connection is over with a GOAWAY: by the protocol its streams go on.
        machine, open_still = self._h2.state_machine, ConnectionState.CLIENT_OPEN
        leaving = {(open_still, ConnectionInputs.RECV_GOAWAY): (None, open_still)}
        machine._transitions = {**machine._transitions, **leaving}
        self._transport: asyncio.Transport | None = None
        self._exchanges: dict[int, _Exchange] = {}
        self._changed = asyncio.Event()
        self._told = False  # how many streams the other side takes
        self.usable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        self._h2.initiate_connection()
        self._flush()

    def data_received(self, data: bytes) -> None:
        try:
            events = self._h2.receive_data(data)
        except H2Error:
            self.close()
            return
        for event in events:
            match event:
                case ResponseReceived():
                    self._begun(event)
                case DataReceived():
                    self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    exchange = self._exchanges.get(event.stream_id)
                    if exchange is not None and len(exchange.body) < LONGEST_READ:
                        exchange.body += event.data
                case StreamEnded():
                    self._end(event.stream_id, lost=False)
                case StreamReset():
                    # A stream that was refused was not looked at.
                    refused = event.error_code == ErrorCodes.REFUSED_STREAM
                    self._end(event.stream_id, lost=not refused, unsent=refused)
                case ConnectionTerminated():
                    self._leaving(event)
                case RemoteSettingsChanged():
                    self._told = True
        self._flush()
        self._changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        for stream_id in list(self._exchanges):
            self._end(stream_id, lost=True)
        self._changed.set()

    @property
    def room(self) -> bool:
        """Whether one more request may begin."""
        most = min(self._h2.remote_settings.max_concurrent_streams, MOST_STREAMS) if self._told else 1
        return self.usable and len(self._exchanges) < most

    async def wait_for_room(self) -> None:
        """Until something changed."""
        self._changed.clear()
        await self._changed.wait()

    async def request(self, headers: Headers, body: bytes) -> Answer | NotSent | Lost:
        """One request, for which there is `room`. Whoever gives up resets its stream."""
        try:
            stream_id = self._h2.get_next_available_stream_id()
            self._h2.send_headers(stream_id, headers)
        except H2Error:
            self.usable = False
            return NotSent()
        exchange = _Exchange(asyncio.get_running_loop().create_future())
        self._exchanges[stream_id] = exchange
        try:
            while body or not exchange.done.done():
                window = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
                if exchange.done.done() or len(body) <= window:
                    break
                if window > 0:
                    self._h2.send_data(stream_id, body[:window])
                    body = body[window:]
                    self._flush()
                else:
                    self._flush()
                    await self.wait_for_room()
            if not exchange.done.done():
                self._h2.send_data(stream_id, body, end_stream=True)
                self._flush()
            return await exchange.done
        except H2Error:
            return Lost()
        except asyncio.CancelledError:
            if self._exchanges.pop(stream_id, None) is not None and self.usable:
                self._h2.reset_stream(stream_id, ErrorCodes.CANCEL)
                self._flush()
            raise
        finally:
            self._exchanges.pop(stream_id, None)
            self._changed.set()

    def close(self) -> None:
        """End it with all that it carries."""
        self.usable = False
        if self._transport is not None:
            self._transport.close()

    def _begun(self, event: ResponseReceived) -> None:
        exchange = self._exchanges.get(event.stream_id)
        if exchange is not None:
            for name, value in event.headers:
                if name == b":status":
                    exchange.status = int(value)
                elif name == b"retry-after":
                    exchange.retry_after = value.decode("ascii", "replace")

    def _end(self, stream_id: int, *, lost: bool, unsent: bool = False) -> None:
        exchange = self._exchanges.pop(stream_id, None)
        if exchange is None or exchange.done.done():
            return
        if unsent:
            exchange.done.set_result(NotSent())
        elif exchange.status and not lost:
            exchange.done.set_result(Answer(exchange.status, exchange.retry_after, bytes(exchange.body), complete=True))
        else:
            exchange.done.set_result(Lost())

    def _leaving(self, event: ConnectionTerminated) -> None:
        """What it did not take goes elsewhere; what it took is answered still."""
        self.usable = False
        last = event.last_stream_id if event.last_stream_id is not None else 0
        for stream_id in list(self._exchanges):
            if stream_id > last:
                self._end(stream_id, lost=False, unsent=True)

    def _flush(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._h2.data_to_send())


async def connect(host: str, port: int, tls: ssl.SSLContext, limit: float) -> Http2Connection:
    """A connection that speaks HTTP/2. Raises OSError (a time-out is one)."""
    async with asyncio.timeout(limit):
        transport, made = await asyncio.get_running_loop().create_connection(Http2Connection, host, port, ssl=tls)
    secured = transport.get_extra_info("ssl_object")
    if secured is None or secured.selected_alpn_protocol() != "h2":
        made.close()
        raise OSError("it does not speak HTTP/2")
    return made
