"""Turns replies and problems into what goes over the wire, with the headers that every answer carries (C2.3.8, C6)."""

from contextlib import aclosing
from datetime import datetime

import structlog
from aiohttp import web
from aiohttp.http import HttpVersion10
from aiohttp.web_request import BaseRequest

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.http.api.call import Call
from recado.http.problems.problems import MEDIA_TYPE, ProblemRenderer
from recado.http.wire.byte_budget import ByteBudget
from recado.http.wire.rendering import JSON, LARGE, NO_STORE, DateHeader, WireResponse, clean, dump, head
from recado.http.wire.reply import Reply, StreamReply

_log = structlog.get_logger(__name__)

_CLOSE = "Connection: close\r\n"
_KEEP = "Connection: keep-alive\r\n"

# After these the rest of a body may still be on its way: the connection is not used again.
_CLOSING = frozenset({408, 413})


class Answers:
    """Renders replies. After `drain()` every answer ends its connection.

    `unread` counts what organizations do not take. Answers without a credential do not count: the large ones are
    documents, of which all readers share one copy.
    """

    def __init__(self, problems: ProblemRenderer, clock: Clock, unread: ByteBudget) -> None:
        self._problems = problems
        self._clock = clock
        self._unread = unread
        self._date = DateHeader()
        self._draining = False

    def drain(self) -> None:
        """Prepare for the end of the server."""
        self._draining = True

    def problem(self, problem: Problem, call: Call) -> Reply:
        """Return `problem` as the reply to `call`."""
        instance = call.target.encode("utf-8", "replace").decode()
        body = self._problems.body(problem, instance, call.request_id)
        return Reply(problem.status, body, headers={**problem.headers, "Content-Type": MEDIA_TYPE})

    def render(self, reply: Reply) -> None:
        """Turn the body of `reply` into bytes; TypeError when it holds what JSON cannot."""
        if reply.body is not None and not isinstance(reply.body, bytes):
            reply.body = dump(reply.body)

    def whole(self, reply: Reply, call: Call, request: BaseRequest, at: float) -> WireResponse:
        """Return a rendered `reply` ready to be written in one go; `at`: monotonic seconds."""
        content: bytes = reply.body or b""
        content_type = JSON if content else None
        cache, lines = NO_STORE, ""
        if call.bucket is not None:
            lines = call.bucket.lines()
        if reply.revision is not None:
            lines += f'ETag: "{reply.revision}"\r\n'
        if reply.headers:
            for name, value in reply.headers.items():
                if name == "Content-Type":
                    content_type = clean(value)
                elif name == "Cache-Control":
                    cache = clean(value)
                else:
                    lines += f"{name}: {clean(value)}\r\n"
        keep_alive = request.keep_alive and not self._draining and reply.status not in _CLOSING
        if not keep_alive:
            lines += _CLOSE
        elif request.version == HttpVersion10:
            lines += _KEEP
        lines = self._first_lines(call.request_id, call.now, at, cache) + lines
        wire = head(reply.status, lines, len(content), content_type)
        large = None
        if call.method != "HEAD":
            if len(content) > LARGE:
                large = content
            else:
                wire += content
        caller = call.principal.organization_id
        unread = self._unread if caller else None
        return WireResponse(wire, reply.status, keep_alive=keep_alive, large=large, caller=caller, unread=unread)

    def redirect(self, location: str, request_id: str, now: datetime, at: float) -> bytes:
        """Return the whole 302 to `location`, as `whole` would make it for HTTP/1.1; `at`: as there."""
        lines = f"{self._first_lines(request_id, now, at, NO_STORE)}Location: {clean(location)}\r\n"
        return head(302, f"{lines}{_CLOSE}" if self._draining else lines, 0, None)

    def image(self, content: bytes, request_id: str, now: datetime, at: float) -> bytes:
        """Return the whole 200 with a GIF, likewise."""
        lines = self._first_lines(request_id, now, at, NO_STORE)
        return head(200, f"{lines}{_CLOSE}" if self._draining else lines, len(content), "image/gif") + content

    def _first_lines(self, request_id: str, now: datetime, at: float, cache: str) -> str:
        return f"X-Request-Id: {request_id}\r\n{self._date.line(at, now)}Cache-Control: {cache}\r\n"

    async def stream(self, reply: StreamReply, call: Call, request: BaseRequest) -> web.StreamResponse:
        """Write `reply` piece by piece and return its end; ConnectionError when the client leaves, or a piece fails."""
        headers = {"X-Request-Id": call.request_id, "Cache-Control": NO_STORE, **reply.headers}
        if call.bucket is not None:
            for line in call.bucket.lines().splitlines():
                name, _, value = line.partition(": ")
                headers[name] = value
        response = web.StreamResponse(status=reply.status, headers={n: clean(v) for n, v in headers.items()})
        response.content_length = reply.length
        if self._draining:
            response.force_close()
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client has left")
        with self._unread.holding(call.principal.share, reply.memory, transport.abort):
            try:
                async with aclosing(reply.chunks) as chunks:
                    writer = await response.prepare(request)
                    if reply.outlet is not None and writer is not None:
                        reply.outlet.open(writer)
                    if call.method != "HEAD":
                        async for chunk in chunks:
                            if reply.outlet is not None:
                                await reply.outlet.settled()
                            await response.write(chunk)
            except Problem as problem:  # the status is sent: that the body has no end is all that can be told
                _log.warning("answer_broken_off", request_id=call.request_id, code=problem.code)
                raise ConnectionResetError("the answer could not be read to its end") from None
            await response.write_eof()
        return response
