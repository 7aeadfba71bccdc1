"""One HTTP/2 connection that we opened, over which many requests go at once: to a service that has one address.

A connection that says GOAWAY carries what it has taken to its end, and takes nothing more: what it will not answer is
`NotSent`, and goes again on another connection. It is closed when it carries nothing.
"""

import asyncio
import re
import ssl
from contextlib import suppress
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
from h2.settings import SettingCodes

from recado.channels.http.answer import Answer, Lost, NotSent

LONGEST_READ: Final = 64 * 1024  # bytes of an answer's body
MOST_STREAMS: Final = 500
_HELD_BACK: Final = 4 * 1024 * 1024  # bytes that the other side has not taken: more than the bodies of all streams
_STATUS: Final = re.compile(rb"[1-9][0-9]{2}")

Headers = list[tuple[str, str]]


@dataclass(slots=True)
class _Exchange:
    done: "asyncio.Future[Answer | NotSent | Lost]"
    status: int = 0
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)

    @property
    def answered(self) -> bool:
        return self.done.done() and not self.done.cancelled()

    def came(self) -> Answer | Lost:
        """What has come of an answer that is not whole: a status stands."""
        if not self.status:
            return Lost()
        return Answer(self.status, self.retry_after, bytes(self.body), complete=False)


class Http2Connection(asyncio.Protocol):
    """`usable` while it takes requests; `room` says whether it takes one now; `idle_since`: monotonic seconds."""

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
        self._heard = 0  # times that something came
        self._writable = True
        self.usable = True
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        self._transport.set_write_buffer_limits(_HELD_BACK)
        self._h2.initiate_connection()
        self._h2.update_settings({SettingCodes.ENABLE_PUSH: 0})  # nobody asks for answers to other requests
        self._flush()

    def pause_writing(self) -> None:
        """The other side does not read: whatever else it says could add an answer to what it has to read."""
        self._writable = False
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable = True
        if self._transport is not None:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._heard += 1
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

    @property
    def busy(self) -> bool:
        """Whether it carries a request."""
        return bool(self._exchanges)

    async def wait_for_room(self) -> None:
        """Until something changed."""
        self._changed.clear()
        await self._changed.wait()

    async def request(self, headers: Headers, body: bytes, limit: float | None = None) -> Answer | NotSent | Lost:
        """One request, for which there is `room`. Whoever gives up resets its stream. `limit`: in the loop's time."""
        try:
            stream_id = self._h2.get_next_available_stream_id()
            self._h2.send_headers(stream_id, headers)
        except H2Error:
            self.retire()
            return NotSent()
        exchange = _Exchange(asyncio.get_running_loop().create_future())
        self._exchanges[stream_id] = exchange
        heard, whole = self._heard, False
        try:
            async with asyncio.timeout_at(limit):
                while not exchange.done.done():
                    window = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
                    if len(body) <= window:
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
                    whole = True
                    self._flush()
                return await exchange.done
        except TimeoutError:
            self._doubt(heard)
            return exchange.came()
        except H2Error:
            return exchange.came()
        except asyncio.CancelledError:
            self._doubt(heard)
            raise
        finally:
            self._exchanges.pop(stream_id, None)
            if not whole or not exchange.answered:
                self._reset(stream_id)
            self._close_when_idle()
            self._changed.set()

    def _doubt(self, heard: int) -> None:
        """Nothing came since then, for as long as a call may last: what stands between may have forgotten it."""
        if self._heard == heard:
            self.usable = False

    def retire(self) -> None:
        """Take no new requests; what is under way may still be answered."""
        self.usable = False
        self._changed.set()
        self._close_when_idle()

    def _reset(self, stream_id: int) -> None:
        """End a stream that one of the sides has not ended: it would take the place of another."""
        with suppress(H2Error):  # it is over
            self._h2.reset_stream(stream_id, ErrorCodes.CANCEL)
            self._flush()

    def _close_when_idle(self) -> None:
        if not self.usable and not self._exchanges:
            self.close()

    def close(self) -> None:
        """End it with all that it carries."""
        self.usable = False
        if self._transport is not None:
            if self._writable:
                self._transport.close()
            else:  # what is still to be written to it would wait for ever
                self._transport.abort()

    def _begun(self, event: ResponseReceived) -> None:
        exchange = self._exchanges.get(event.stream_id)
        if exchange is not None:
            for name, value in event.headers:
                if name == b":status":
                    exchange.status = int(value) if _STATUS.fullmatch(value) else 0
                elif name == b"retry-after":
                    exchange.retry_after = value.decode("ascii", "replace")

    def _end(self, stream_id: int, *, lost: bool, unsent: bool = False) -> None:
        exchange = self._exchanges.pop(stream_id, None)
        if exchange is None or exchange.done.done():
            return
        if unsent:
            exchange.done.set_result(NotSent())
        elif lost or not exchange.status:
            exchange.done.set_result(exchange.came())
        else:
            exchange.done.set_result(Answer(exchange.status, exchange.retry_after, bytes(exchange.body), complete=True))

    def _leaving(self, event: ConnectionTerminated) -> None:
        """What it did not take goes elsewhere; what it took is answered still."""
        last = event.last_stream_id if event.last_stream_id is not None else 0
        for stream_id in list(self._exchanges):
            if stream_id > last:
                self._end(stream_id, lost=False, unsent=True)
        self.retire()

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
