"""One client connection: aiohttp's protocol, with a limit on how long a request's head may take and problem bodies for
what is not even HTTP (C31).

No timer is set per request: the connection notes that bytes came, and the server looks at all connections once a
second. No task is made per request either: a connection answers its requests one after the other in the one task that
it has.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import _PAYLOAD_ACCESS_ERROR as _TOO_LATE
from aiohttp.web_protocol import ERROR, RequestHandler, RequestPayloadError, _ErrInfo
from aiohttp.web_request import BaseRequest

HEAD_SECONDS = 10.0
READING_SECONDS = 60.0  # how long a client may leave an answer unread once the buffers are full
KEEP_ALIVE_SECONDS = 75.0
LINGERING_SECONDS = 5.0  # how long the rest of a refused body is read, so that the client gets to see the answer
LONGEST_LINE = 8190
MOST_HEADERS = 100

_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

ErrorAnswer = Callable[[int], web.StreamResponse]
ErrorReport = Callable[[str, BaseException | None], None]


class Connection(RequestHandler):
    """A connection. `begun` is set while bytes have come that no request was made of yet."""

    __slots__ = ("answer_error", "begun", "busy", "heard", "late_since", "report_error", "rest", "stuck_since")

    def __init__(
        self, server: web.Server, *, answer_error: ErrorAnswer, report_error: ErrorReport, **options: Any
    ) -> None:
        super().__init__(
            server,
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGERING_SECONDS,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
            max_headers=MOST_HEADERS,
            **options,
        )
        self.answer_error = answer_error
        self.report_error = report_error
        self.begun = True  # a connection without any request is as late as one with half a head
        self.heard = False
        self.busy = False
        self.late_since: float | None = None
        self.stuck_since: float | None = None
        self.rest: StreamReader | None = None  # the body whose rest is being read for nothing but the client's sake

    async def start(self) -> None:
        """Answer the requests of this connection until it ends.

        Stands in for aiohttp's own loop, which runs each request in a task of its own: two more turns of the event loop
        and a tenth of the time of a short request.
        """
        try:
            while not self._force_close:
                if not self._messages:
                    await self._next_message()
                if not await self._answer_next():
                    break
        except asyncio.CancelledError:
            self.force_close()
            raise
        except Exception as error:  # noqa: BLE001 - one connection's failure is no other's
            self.log_exception(exc_info=error)
            self.force_close()
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    async def _next_message(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _answer_next(self) -> bool:
        """Answer one request; whether the connection takes another."""
        message, payload = self._messages.popleft()
        manager = self._manager
        if self._parser is None or manager is None:
            return False  # the client has left meanwhile
        self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()
        manager.requests_count += 1
        handler = manager.request_handler
        if isinstance(message, _ErrInfo):
            handler, message = self._make_error_handler(message), ERROR
        task = self._task_handler or asyncio.current_task()
        request = make_request(message, payload, self, StreamWriter(self, self._loop), task)
        try:
            response, left = await self._handle_request(request, None, handler)
        except ConnectionError:
            return False
        finally:
            request._task = None  # type: ignore[assignment] # a cycle that only the collector would break
        if left:
            return False
        self._keepalive = bool(response.keep_alive)
        if not payload.is_eof():
            await self._read_rest(payload)
        payload.set_exception(_TOO_LATE)
        if not self._keepalive or self._close or self._force_close:
            return False
        self._next_keepalive_close_time = self._loop.time() + KEEP_ALIVE_SECONDS
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)
        return True

    async def _read_rest(self, payload: StreamReader) -> None:
        """Read what the client still sends of a body that nobody wanted, for a moment: so it gets to see the answer.

        Not longer than the client is there, nor than this connection is open to further requests.
        """
        if self._lingering_time and not self._close and not self._force_close:
            self.rest = payload
            with contextlib.suppress(TimeoutError, ConnectionError, RequestPayloadError):
                async with asyncio.timeout(self._lingering_time):
                    while not payload.is_eof():
                        await payload.readany()
            self.rest = None
        if not payload.is_eof() and not self._force_close:
            self.close()

    def close(self) -> None:
        """Take no further request, and end when none is under way: a client that was answered is not waited for."""
        super().close()
        self._leave_rest()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Notice that the client is gone."""
        super().connection_lost(exc)
        self._leave_rest()

    def _leave_rest(self) -> None:
        if self.rest is not None:
            self.rest.set_exception(ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        self.begun = self.heard = True
        super().data_received(data)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Let bytes flow again; a body taken whole asks for this too, when nothing was held back."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def request_begins(self) -> None:
        """A complete head has become a request."""
        self.busy = True
        self.begun = False
        self.late_since = None

    def request_ends(self) -> None:
        """The request was answered; what came meanwhile was its body."""
        self.busy = False
        self.begun = False

    def spare_the_rest(self) -> None:
        """Do not wait for the rest of a body that does not come."""
        self._lingering_time = 0.0

    def look(self, now: float) -> None:
        """Close the connection when its head, or its reading of an answer, takes too long; `now`: monotonic seconds."""
        if not self.writing_paused:
            self.stuck_since = None
        elif self.stuck_since is None:
            self.stuck_since = now
        elif now - self.stuck_since >= READING_SECONDS and self.transport is not None:
            self.transport.abort()
        if self.busy or not self.begun:
            return
        if self.late_since is None:
            self.late_since = now
        elif now - self.late_since >= HEAD_SECONDS:
            if self.heard and self.transport is not None:
                self.transport.write(_TOO_SLOW)
            self.force_close()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what is not HTTP with a problem; nothing of it is logged."""
        if status >= 500 and not isinstance(exc, ConnectionError):
            self.report_error("http_request_failed", exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        return self.answer_error(status)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log the kind of an error only: its text may hold what a client sent."""
        error = kw.get("exc_info")
        self.report_error("http_connection_failed", error if isinstance(error, BaseException) else None)


def make_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: Any,
) -> BaseRequest:
    """Return aiohttp's request for a complete head, and tell the connection."""
    if isinstance(protocol, Connection):
        protocol.request_begins()
    return BaseRequest(message, payload, protocol, writer, task, task.get_loop(), client_max_size=0)
