"""One client connection: aiohttp's protocol, with a limit on how long a request's head may take and problem bodies for
what is not even HTTP (C31).

No timer is set per request: the connection notes that bytes came, and the server looks at all connections once a
second. No task is made per request either: a connection answers its requests one after the other in the one task that
it has.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError, LineTooLong
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import _PAYLOAD_ACCESS_ERROR as _TOO_LATE
from aiohttp.web_protocol import ERROR, RequestHandler, RequestPayloadError, _ErrInfo
from aiohttp.web_request import BaseRequest

from recado.http.wire.client_ip import network_of
from recado.http.wire.connection_limits import ConnectionLimits
from recado.http.wire.direct_body import DirectBody
from recado.http.wire.rendering import WireResponse
from recado.http.wire.request_turns import RequestTurns
from recado.http.wire.small_pieces import SmallPieces

HEAD_SECONDS = 10.0
HEAD_BYTES = 64 * 1024
READING_SECONDS = 60.0  # how long a client may leave an answer unread once the buffers are full, or nothing follows
KEEP_ALIVE_SECONDS = 75.0
LEAST_TAKEN = 16 * 1024  # bytes of an answer in that time: who takes fewer, takes nothing
LINGERING_SECONDS = 5.0  # how long the rest of a refused body is read, so that the client gets to see the answer
LONGEST_LINE = 8190
MOST_HEADERS = 100
END_OF_HEAD = b"\r\n\r\n"  # and of a chunked body

_ENDING_SECONDS = 1.0  # how long what is broken off at the end of the server may take to let go
_SLICE = 4 * 1024  # bytes of chunks given to the parser at once: what it makes of them is looked at in between
_USUAL_FRAMING = 1024  # bytes around the chunks of any body
_FRAMING_SHARE = 2  # beyond them: as many as a half of the body itself
_REST = 64 * 1024  # bytes of a body that nobody wanted, which are read on for anyone
_REST_WAIT = 1.0  # seconds that such bodies of one network may be ahead of their pace, all together
_TOO_SMALL_CHUNKS = "The chunks of the body are too small: send it in larger ones, or with a Content-Length."
_OTHER_CODING = "A body may be in chunks, and has no other Transfer-Encoding: send it as it is."
_TOO_LONG_HEAD = f"The head of a request has at most {HEAD_BYTES // 1024} KiB."

ErrorAnswer = Callable[[int, str | None], WireResponse]  # of a status, with its own words or those of the status
Pace = Callable[[str, int], float]
"""Counts so many bytes of the network; the seconds until more of it may be read."""
ErrorReport = Callable[[str, BaseException | None], None]
Shortcut = Callable[[RawRequestMessage, str, "asyncio.Task[None]"], bytes | Awaitable[bytes | None] | None]
"""From a GET without a body, the peer's address and the task that answers to the whole answer; None where the handler
has to answer."""


class _NotTaken(BadHttpMessage):
    """A request passes a limit of our own, or has a coding that is not taken; the message says so."""


class Connection(RequestHandler):
    """A connection. `begun` is set while bytes have come that no request was made of yet."""

    __slots__ = (
        "_address", "_at_start", "_chunked", "_framing", "_head_size", "_held", "_incoming", "_network",
        "_open_transport", "_received", "_writer", "answer_error", "begun", "busy", "closing_since", "ending",
        "framing_pace", "going_on", "heard", "late_since", "limits", "report_error", "rest", "rest_pace", "shortcut",
        "sleep", "stuck_at", "stuck_since", "turns",
    )  # fmt: skip

    def __init__(
        self,
        server: web.Server,
        *,
        shortcut: Shortcut,
        answer_error: ErrorAnswer,
        report_error: ErrorReport,
        limits: ConnectionLimits,
        turns: RequestTurns,
        sleep: Callable[[float], Awaitable[None]],
        rest_pace: Pace,
        framing_pace: Pace,
        **options: Any,
    ) -> None:
        """`sleep`: for so many seconds; none lets others run. `rest_pace`: of bodies that nobody wanted;
        `framing_pace`: of what surrounds very small chunks.
        """
        super().__init__(
            server,
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGERING_SECONDS,
            **options,
        )
        self._parser = self._new_parser()
        self.shortcut = shortcut
        self.answer_error = answer_error
        self.report_error = report_error
        self.limits = limits
        self.turns = turns
        self.sleep = sleep
        self.rest_pace = rest_pace
        self.framing_pace = framing_pace
        self.going_on: asyncio.Task[None] | None = None  # what answers a client that is gone
        self.begun = True  # a connection without any request is as late as one with half a head
        self.heard = False
        self.busy = False
        self.ending = False  # no further request is taken
        self.late_since: float | None = None
        self.stuck_since: float | None = None
        self.stuck_at = 0  # bytes that waited for the client then
        self.closing_since: float | None = None
        self.rest: StreamReader | None = None  # the body whose rest is being read for nothing but the client's sake
        self._incoming: StreamReader | None = None  # the body of the newest message; None before the first
        self._at_start = True  # of a message: the parser holds nothing
        self._chunked = False
        self._received = 0  # bytes since the head of the newest message, where it is chunked
        self._framing = 0  # of them: those beyond what is usual, which were counted
        self._writer: StreamWriter | None = None  # of all answers that are written in one go
        self._network = ""
        self._address = ""  # of the peer
        # Until the connection is lost: `transport` is None already while the last answer is on its way.
        self._open_transport: asyncio.Transport | None = None
        self._head_size = 0  # bytes of a head that is not whole
        self._held = b""  # what came behind as many requests as may wait
        self._msg_queue_resume_size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or end at once where there are too many."""
        peer = transport.get_extra_info("peername")
        address = peer[0] if isinstance(peer, tuple) else None
        self._network = "" if address is None else network_of(address)
        self._address = "127.0.0.1" if address is None else address
        if self.limits.enter(self, address):
            self._open_transport = transport  # type: ignore[assignment]
            super().connection_made(transport)
            return
        self.transport = transport  # type: ignore[assignment]
        self.refuse(503)

    def _new_parser(self) -> HttpRequestParser:
        return HttpRequestParser(
            self,
            self._loop,
            self._read_bufsize,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
            max_headers=MOST_HEADERS,
            payload_exception=RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=1,  # it stops at the end of each message: see `_parse`
        )

    @property
    def rested_since(self) -> tuple[bool, float]:
        """Whether a request ever came, and when the last was answered, as far as two connections compare."""
        return self._request_count > 0, self._next_keepalive_close_time

    @property
    def idle(self) -> bool:
        """No request is under way, nor waits for its turn, and no answer is still being sent."""
        return not self._messages and not self._answering and not self._unsent

    @property
    def unread(self) -> bool:
        """Nothing is left but an answer that the client has not taken."""
        return not self._messages and not self.busy

    @property
    def _unsent(self) -> bool:
        """A part of an answer is still here, though nobody waits for it to go."""
        return self._open_transport is not None and self._open_transport.get_write_buffer_size() > 0

    @property
    def _answering(self) -> bool:
        """A request is under way, or its answer is still being sent."""
        return self.busy or self._request_in_progress

    def close_idle(self) -> None:
        """End, for another's sake, while no request is under way: what the client does not take now is lost."""
        self.force_close()
        if self._open_transport is not None:
            self._loop.call_soon(self._open_transport.abort)  # uvloop writes once in a turn: a small answer still goes

    def refuse(self, status: int, detail: str | None = None) -> None:
        """Answer what is no request, and end."""
        if self.transport is not None:
            self.transport.write(self.answer_error(status, detail).wire)
        self.force_close()

    async def start(self) -> None:
        """Answer the requests of this connection until it ends.

        Replaces aiohttp's own loop, which runs each request in a task of its own: two more turns of the event loop
        and a tenth of the time of a short request.
        """
        try:
            while not self._force_close:
                if not self._messages:
                    self._waiter = self._loop.create_future()
                    await self._waiter
                    self._waiter = None
                turn = self.turns.wait(self._network)
                if turn is not None:
                    await turn
                if not await self._answer_next():
                    break
                if self._messages:
                    await self.sleep(0.0)  # requests sent ahead take turns with everybody else's
        except asyncio.CancelledError:
            self._waiter = None
            self.force_close()
            raise
        except Exception as error:  # noqa: BLE001 - one connection's failure is no other's
            self.log_exception(exc_info=error)
            self.force_close()
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    async def _answer_next(self) -> bool:
        """Answer one request; whether the connection takes another."""
        manager = self._manager
        if self._parser is None or manager is None or self._force_close:
            return False  # the client has left meanwhile, or had to
        message, payload = self._messages.popleft()
        manager.requests_count += 1
        self.late_since = None
        handler = manager.request_handler
        if isinstance(message, _ErrInfo):
            handler, message = self._make_error_handler(message), ERROR
        elif message.upgrade:
            # Nothing here speaks another protocol. What a proxy takes for one is not read as requests.
            message = message._replace(should_close=True)
        elif message.method == "GET" and payload is EMPTY_PAYLOAD:
            wire = self.shortcut(message, self._address, self._task)
            if wire is not None:
                if not isinstance(wire, bytes):
                    wire = await self._awaited(wire)
                    if self.transport is None:
                        return False  # the client has left meanwhile
                if wire is not None:
                    return await self._answer_with(wire)
        task = self._task
        self.busy = True
        writer = self._writer
        if writer is None:
            writer = self._writer = StreamWriter(self, self._loop)
        request = BaseRequest(message, payload, self, writer, task, self._loop, client_max_size=0)
        self._read_ahead()
        # In the place of aiohttp's `_handle_request` and `finish_response`, which are coroutines of each request.
        self._request_in_progress, self._current_request = True, request
        try:
            try:
                response = await handler(request)
            except (asyncio.CancelledError, ConnectionError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it was: the client is told
                response = self.handle_error(request, 500, error)
            finally:
                self._current_request = None
                self.busy = False
            if type(response) is not WireResponse or response.large is not None:
                self._writer = None  # it knows that it was written to
                response, left = await self.finish_response(request, response, None)
            elif (transport := self.transport) is None or transport.is_closing():
                left = True
            else:
                left = False
                transport.write(response.wire)
                if self.writing_paused:
                    await response.taken(request, transport)
        except ConnectionError:
            return False
        finally:
            self._end_request()
            request._task = None  # type: ignore[assignment] # a cycle that only the collector would break
            if payload.exception() is not None:
                _forget_frames(payload)
        if left:
            return False
        self._keepalive = bool(response.keep_alive)
        if not payload.is_eof():
            if response.status == 408:  # the rest does not come
                self._lingering_time = 0.0
            await self._read_rest(payload)
            _forget_frames(payload)
            payload.set_exception(_TOO_LATE)
        return self._stays()

    @property
    def _task(self) -> "asyncio.Task[None]":
        """That of this connection, without asking for the running one: that asks the system who this process is."""
        task = self._task_handler or asyncio.current_task()
        assert task is not None  # noqa: S101 - a request is answered in it
        return task

    async def _awaited(self, wire: Awaitable[bytes | None]) -> bytes | None:
        """What a shortcut answers, when it knows it; the connection counts as busy meanwhile."""
        self.busy = self._request_in_progress = True
        self._read_ahead()
        try:
            return await wire
        finally:
            self.busy = False
            self._end_request()

    async def _answer_with(self, wire: bytes) -> bool:
        """Send the answer of a shortcut; whether the connection takes another request."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return False
        transport.write(wire)
        if self.writing_paused:
            self._request_in_progress = True
            try:
                await self._drain_helper()
            except ConnectionError:
                return False
            finally:
                self._end_request()
        self._read_ahead()
        self._keepalive = True
        return self._stays()

    def _read_ahead(self) -> None:
        """Let the client go on with what it sends ahead, where there is room again."""
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()

    def _end_request(self) -> None:
        self._request_in_progress = False
        if self._handler_waiter is not None and not self._handler_waiter.done():
            self._handler_waiter.set_result(None)

    def _stays(self) -> bool:
        """Whether the connection takes another request, for which it waits from now on."""
        if not self._keepalive or self.ending or self._force_close:
            return False
        self._next_keepalive_close_time = self._loop.time() + KEEP_ALIVE_SECONDS
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)
        return True

    async def _read_rest(self, payload: StreamReader) -> None:
        """Read what the client still sends of a body that nobody wanted, for a moment: so it gets to see the answer.

        Not longer than the client is there, nor than this connection is open to further requests.
        """
        if self._lingering_time and not self.ending and not self._force_close and payload.exception() is None:
            self.rest = payload
            with contextlib.suppress(TimeoutError, ConnectionError, RequestPayloadError):
                async with asyncio.timeout(self._lingering_time):
                    read, small, began = 0, SmallPieces(), self._loop.time()
                    while not payload.is_eof():
                        size = len(await payload.readany())
                        read += size
                        wait = self.rest_pace(self._network, size) if read > _REST else 0.0
                        if wait > _REST_WAIT:  # as many as wait for so long hold enough memory
                            break
                        gathering = 0.0 if payload.is_eof() else small.wait(size, self._loop.time() - began)
                        if gathering > wait:
                            await self.gather(gathering)
                        elif wait:
                            await self.sleep(wait)
            self.rest = None
        if not payload.is_eof() and not self._force_close:
            self.close()

    def close(self) -> None:
        """Take no further request, and end when none is under way: a client that was answered is not waited for.

        A body that is not whole still comes, of a request that is under way or next.
        """
        self.ending = True
        if self.rest is not None or self._between_messages:
            super().close()  # from now on all bytes are dropped
        self._leave_rest()

    async def shutdown(self, timeout: float | None = None) -> None:
        """End after `close`: when the request under way is answered, or `timeout` seconds have passed.

        aiohttp's own drops all bytes from the first moment on.
        """
        task = self._task_handler or self.going_on
        if task is not None:
            await asyncio.wait((task,), timeout=timeout)
        await super().shutdown(_ENDING_SECONDS)
        if self.going_on is not None:
            self.going_on.cancel()  # aiohttp forgot it when the client left

    def connection_lost(self, exc: BaseException | None) -> None:
        """Notice that the client is gone."""
        self._open_transport = None
        self.limits.leave(self)
        self.going_on = self._task_handler
        super().connection_lost(exc)
        self._messages.clear()  # each of them holds its reader, and that this connection
        self._writer = None  # likewise
        self._held = b""
        self._incoming = None
        self._leave_rest()

    def _leave_rest(self) -> None:
        if self.rest is not None:
            self.rest.set_exception(ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        """Take what the client sent; of chunks a slice at a time, so that tiny ones are noticed before all are parsed.

        Other bodies stay in large pieces: the system takes the memory of those back at once.
        """
        if len(data) <= _SLICE and not self._held and len(self._messages) < self._max_msg_queue_size:
            self._take(data)
            return
        if self._held:
            if not self._full:
                self._take(b"")  # what the parser holds comes before it
            data, self._held = self._held + data, b""
        start = 0
        while len(data) - start > _SLICE and (self._chunked or self._between_messages) and not self._full:
            self._take(data[start : start + _SLICE])
            start += _SLICE
            if self._force_close or self._close:
                return
        rest = data[start:] if start else data
        if self._full and not self._close:
            self._held = rest  # at most what one read brings: reading is paused
        else:
            self._take(rest)

    @property
    def _full(self) -> bool:
        """As many requests wait as may: what follows them is not looked at until they are answered."""
        return len(self._messages) >= self._max_msg_queue_size

    @property
    def _between_messages(self) -> bool:
        return self._incoming is None or self._incoming.is_eof()

    def _take(self, data: bytes) -> None:
        if self._force_close or self._close or self._upgraded:
            return
        self.heard = True
        known, body = self._request_count, self._incoming
        before = -1 if self._at_start or body is None or body.is_eof() else body.total_bytes  # -1: between messages
        if self._parse(data, before >= 0):
            self.begun = False
            if self.ending:
                super().close()
            if self.busy or self._full:
                self._wait_for_room()
            return
        if self.ending and self._between_messages:
            super().close()
        if self._request_count > known:
            self._received = self._framing = self._head_size = 0
            self.begun = not self._ends_with(data, 0)
            if self.busy or self._full:
                self._wait_for_room()
        elif before < 0:
            self._take_head(data)
        else:
            self.begun = not self._ends_with(data, before)
            if self._chunked:
                self._watch_framing(data)
        if data:
            self._at_start = not (self.begun or self._full) and self._between_messages

    def read_directly(self, payload: StreamReader, length: int, monotonic: Callable[[], float]) -> DirectBody | None:
        """Take the rest of a body past the parser; None where it cannot be, or a part of it is held here.

        `length`: that of the whole body, as its head says.
        """
        transport, left = self.transport, length - payload.total_bytes
        if transport is None or transport.is_closing() or payload is not self._incoming or self._chunked or left <= 0:
            return None
        held = self._held or self._reading_paused or self._buffer_paused or payload._size
        if held or payload.is_eof() or payload.exception() is not None:
            return None
        return DirectBody(self, transport, payload, left, monotonic)

    async def gather(self, seconds: float) -> None:
        """Read nothing for so long: what the client sends comes together in the buffer of the system."""
        if self.transport is None or self._buffer_paused:
            await self.sleep(seconds)
            return
        self._pause_reading_for_buffer()
        try:
            await self.sleep(seconds)
        finally:
            if self.transport is not None:
                self._read_ahead()

    def take_back(self, payload: StreamReader) -> None:
        """A body came whole past the parser, which knows nothing of its end: what follows has a new one."""
        if self._parser is not None:
            self._parser = self._new_parser()
        self._at_start, self.begun = True, False
        payload.feed_eof()
        if self.ending:
            super().close()

    def _wait_for_room(self) -> None:
        """What else is sent ahead waits on the client's side."""
        if not self._buffer_paused:
            self._pause_reading_for_buffer()

    def _parse(self, data: bytes, within: bool) -> bool:
        """Queue the requests in `data`, and in what the parser held back before. `within`: a body has begun.

        True when `data` is one request from its first byte to its last, as that of a client which waits for its answer:
        then the parser holds nothing, as before. Replaces that of aiohttp. Its parser loses all that it found in the
        same bytes before a fault; so it is made to stop at the end of each message, holds back what follows, and goes
        on with `b""`.
        """
        parser, body = self._parser, self._incoming
        assert parser is not None  # noqa: S101 - until the connection is lost, after which nothing comes
        try:
            while True:
                found, self._upgraded, _ = parser.feed_data(data)
                if found:
                    message, body = found[0]
                    if message.chunked and message.headers["Transfer-Encoding"].strip().lower() != "chunked":
                        # The parser looks at the last coding only: what is packed would be taken for the body.
                        self._refuse_in_turn(_NotTaken(_OTHER_CODING))
                        return False
                    self._incoming, self._chunked = body, message.chunked
                    self._enqueue(found[0])
                    parser.message_consumed()  # without this the parser in Python stops before the next one for good
                    if (
                        self._at_start
                        and body.is_eof()
                        and not (message.chunked or self._upgraded)
                        and data.find(END_OF_HEAD) + len(END_OF_HEAD) + body.total_bytes == len(data)
                    ):
                        return True
                elif not within:
                    return False  # a part of a head at most
                within = body is not None and not body.is_eof()
                if within or self._upgraded or len(self._messages) >= self._max_msg_queue_size:
                    return False
                self._at_start, data = False, b""
        except HttpProcessingError as error:
            self._end_at(error, within)
            return False

    def _enqueue(self, message: tuple[Any, StreamReader]) -> None:
        self._request_count += 1
        self._messages.append(message)
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _end_at(self, error: HttpProcessingError, within: bool) -> None:
        """Nothing from here on is HTTP; `within`: a body of which a part came."""
        if within and self._incoming is not None:
            self._incoming.set_exception(RequestPayloadError())  # its own request is told
            super().close()
        else:
            self._refuse_in_turn(error)

    def _refuse_in_turn(self, error: HttpProcessingError) -> None:
        """Answer what is no request with 400, and end, when all requests before it have their answers."""
        self._enqueue((_ErrInfo(status=400, exc=error, message=error.message), EMPTY_PAYLOAD))
        super().close()  # from now on all bytes are dropped

    def _watch_framing(self, data: bytes) -> None:
        """Every chunk costs the parser the same, however small: what surrounds them has a pace for each network."""
        self._received += len(data)
        body = self._incoming
        # While reading is paused the parser holds back some of it.
        if body is None or self._reading_paused or self._force_close or self._close:
            return
        framing = self._received - body.total_bytes - body.total_bytes // _FRAMING_SHARE - _USUAL_FRAMING
        if framing <= self._framing:
            return
        wait = self.framing_pace(self._network, framing - self._framing)
        self._framing = framing
        if wait and not body.is_eof():
            if self._messages:  # the newest of them is the one that still comes
                self._messages.pop()
                self._refuse_in_turn(_NotTaken(_TOO_SMALL_CHUNKS))
            elif self.busy:
                self.refuse(400, _TOO_SMALL_CHUNKS)
            else:  # it is answered already
                self.force_close()

    def _take_head(self, data: bytes) -> None:
        """More of a head that is not whole."""
        if data:
            self.begun = True
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                self._refuse_in_turn(_NotTaken(_TOO_LONG_HEAD))

    def _ends_with(self, data: bytes, before: int) -> bool:
        """Whether `data` ends inside, or with, the newest body; otherwise a further head has begun.

        `before`: how many bytes of the body came earlier.
        """
        body = self._incoming
        if body is None or not body.is_eof() or not data:
            return True
        rest = len(data)
        if not self._chunked and body is not EMPTY_PAYLOAD:
            rest -= body.total_bytes - before
            if before:
                return rest == 0
        return rest <= 0 or data.endswith(END_OF_HEAD[-rest:], 0, rest)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Let bytes flow again; a body taken whole asks for this too, when nothing was held back."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def look(self, now: float) -> None:
        """Close the connection when its head, or its reading of an answer, takes too long; `now`: monotonic seconds."""
        transport = self._open_transport
        if transport is None:
            return
        if not self.writing_paused:
            self.stuck_since = None
        else:
            unsent = transport.get_write_buffer_size()
            # More than before: all of that went, and something else came.
            if self.stuck_since is None or not self.stuck_at - LEAST_TAKEN < unsent <= self.stuck_at:
                self.stuck_since, self.stuck_at = now, unsent
        if self.closing_since is None and transport.is_closing():
            self.closing_since = now
        for since in (self.stuck_since, self.closing_since):
            if since is not None and now - since >= READING_SECONDS:
                transport.abort()
        if self._answering or not self.begun or transport.is_closing():
            return
        if self.late_since is None:
            self.late_since = now
        elif now - self.late_since >= HEAD_SECONDS:
            if self.heard:
                self.refuse(408)
            self.force_close()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what is not HTTP with a problem; nothing of it is logged."""
        if status >= 500 and not isinstance(exc, ConnectionError):
            self.report_error("http_request_failed", exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        return self.answer_error(status, _too_long(exc))

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log the kind of an error only: its text may hold what a client sent."""
        error = kw.get("exc_info")
        self.report_error("http_connection_failed", error if isinstance(error, BaseException) else None)


def _too_long(error: BaseException | None) -> str | None:
    """The sentence on a request beyond a limit of its head or framing (C31), or in a coding that is not taken; None for
    any other error.
    """
    if isinstance(error, _NotTaken):
        return error.message
    if isinstance(error, LineTooLong):
        return f"A line of the request's head has at most {LONGEST_LINE:,} bytes: shorten the address or the header."
    if isinstance(error, BadHttpMessage) and error.message.startswith("Too many headers"):
        return f"A request has at most {MOST_HEADERS} headers."
    return None


def _forget_frames(payload: StreamReader) -> None:
    """Break the circle of a reader, the error that ended it, and the frames that it went through."""
    error = payload.exception()
    if error is not None:
        error.__traceback__ = None
