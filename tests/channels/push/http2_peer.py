"""The other side of an HTTP/2 connection, in memory: it says what a test lets it say."""

import asyncio
from contextlib import suppress

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event, RequestReceived
from h2.exceptions import H2Error
from h2.settings import SettingCodes

from recado.channels.http.answer import Answer, Lost, NotSent
from recado.channels.push.http2 import Http2Connection

HEADERS = [(":method", "POST"), (":scheme", "https"), (":authority", "example.com"), (":path", "/3/device/a")]


class Peer:
    """The other side, and the transport between both: what it writes is read at once."""

    def __init__(self, settings: dict[SettingCodes | int, int] | None = None) -> None:
        config = H2Configuration(
            client_side=False,
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        self.h2 = H2Connection(config)
        self.events: list[Event] = []
        self.closed = self.aborted = False
        self.told: list[str] = []  # whether it is to be read
        self.connection = Http2Connection()
        self.connection.connection_made(self)  # type: ignore[arg-type]
        self.h2.initiate_connection()
        if settings:
            self.h2.update_settings(settings)
        self.say()

    # What a transport does -------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        with suppress(H2Error):  # it has gone, or hears a consequence of its own nonsense
            self.events += self.h2.receive_data(data)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def is_closing(self) -> bool:
        return self.closed

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")

    # What a service does ---------------------------------------------------------------------------------------------

    def say(self) -> None:
        self.connection.data_received(self.h2.data_to_send())

    def answer(self, stream: int, *headers: tuple[str, str], ends: bool = True) -> None:
        self.h2.send_headers(stream, list(headers), end_stream=ends)
        self.say()

    @property
    def requests(self) -> list[RequestReceived]:
        """Their heads, in their order."""
        return [event for event in self.events if isinstance(event, RequestReceived)]

    def ask(self, body: bytes = b"{}", *, seconds: float = 10.0) -> "asyncio.Task[Answer | NotSent | Lost]":
        limit = asyncio.get_running_loop().time() + seconds
        return asyncio.create_task(self.connection.request(HEADERS, body, limit))


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
