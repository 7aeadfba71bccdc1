"""What happens to a request, step by step, in the order of C2.6: one straight function instead of nested middlewares.

credential → rate limit → scope → suspended → required headers → parsing → path resource → idempotency → body →
precondition → handler. Every step either passes or raises the `Problem` that is the answer.
"""

import asyncio
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, nullcontext, suppress
from functools import partial

import structlog
from aiohttp import web
from aiohttp.web_request import BaseRequest
from pydantic import BaseModel

from recado.domain.core.clock import Clock
from recado.domain.core.errors import NO_SUCH_RESOURCE, Problem, Unavailable, not_found
from recado.domain.core.ids import REQUEST, IdSource
from recado.domain.core.refusal_order import comes_after_version
from recado.http.api.answers import Answers
from recado.http.api.call import Call
from recado.http.api.operation import Operation, missing_scope, organization_suspended, session_needed
from recado.http.api.request_figures import RequestFigures
from recado.http.api.request_log import RequestLog
from recado.http.api.route import Access, Idempotency, Route
from recado.http.api.router import NO_PARAMETERS, Found, Router, ids_are_formed
from recado.http.api.shortcuts import Shortcuts
from recado.http.bodies.body_reading import NEVER_LARGE, LargeBody, is_large, model_of
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.bodies.parsing import JsonBody, pairs_of, parse_json, require_json, validate_body
from recado.http.bodies.unknown_fields import (
    is_strict,
    meant_instead,
    name_in,
    refuse,
    unknown_fields,
    unknown_parameters,
)
from recado.http.callers.principal import ACCOUNT, ADMINISTRATOR, NOBODY, Principal
from recado.http.callers.rate_limits import ANONYMOUS, FAILED, PUBLIC, RateLimiter
from recado.http.middleware import preconditions
from recado.http.middleware.authentication import Administrator, Authenticator, authenticate, bearer_token
from recado.http.middleware.idempotency import HEADER as IDEMPOTENCY_KEY
from recado.http.middleware.idempotency import IdempotencyStore, KeptAnswers, check_form, key_of
from recado.http.problems.holders import hide_holder
from recado.http.problems.missing import missing_record, no_method, no_route
from recado.http.problems.usual_words import usual
from recado.http.wire.body import ClientLeft, body_with_head, read_body
from recado.http.wire.body_pace import BodyPace
from recado.http.wire.byte_budget import SMALL, ByteBudget, Room
from recado.http.wire.client_ip import ClientAddresses, network_of, within
from recado.http.wire.deadlines import READ_SECONDS, SLOW_SECONDS, WRITE_SECONDS, Deadlines, Task
from recado.http.wire.reply import Reply, StreamReply
from recado.http.wire.request_turns import RequestTurns
from recado.http.wire.spool import Spooler, media_type_of
from recado.storage.core.shares.callers import STRANGER, working_for
from recado.storage.core.shares.fair_places import FairPlaces

# Pages, or parts of large ones, that are being made: each holds its rows while it waits for the database, or for its
# turn to be rendered. The more an organization makes at once, the longer everybody else's wait in that line.
PAGES = 64
PAGES_OF_CALLER = 4
# Those of them that search: they wait for each other, so that a list along its key finds a place beside them.
SEARCHES = PAGES // 2
SEARCHES_OF_CALLER = PAGES_OF_CALLER // 2
PAGES_WAITING = 500

_READS = ("GET", "HEAD")

_log = structlog.get_logger(__name__)


Reached = Callable[[], Awaitable[object] | None]


class Dispatcher:
    """Answers requests, and logs them."""

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        authenticator: Authenticator,
        limiter: RateLimiter,
        idempotency_store: IdempotencyStore,
        clock: Clock,
        ids: IdSource,
        answers: Answers,
        addresses: ClientAddresses,
        administrator: Administrator,
        spooler: Spooler,
        workers: BodyWorkers,
        bodies: ByteBudget,
        unread: ByteBudget,
        pace: BodyPace,
        turns: RequestTurns,
        figures: RequestFigures,
        reached: Reached | None = None,
    ) -> None:
        """`reached`: what to wait for until changes hold in all processes of the service; None: they do."""
        self._reached = reached
        routes = tuple(routes)
        self._figures = figures
        self._router = Router(
            ((route.method, route.path, Operation(route, figures.of(route))) for route in routes),
            suggest=lambda operation: (
                operation.route.documented and (operation.route.access is not Access.ADMIN or administrator.exists)
            ),
        )
        self._authenticator = authenticator
        self._administrator = administrator
        self._limiter = limiter
        self._kept_answers = KeptAnswers(idempotency_store, clock)
        self._clock = clock
        self._now = clock.now
        self._monotonic = clock.monotonic
        self._new_id = ids.new
        self._answers = answers
        self._addresses = addresses
        self._spooler = spooler
        self._workers = workers
        self._requests = RequestLog(clock)
        self._bodies = bodies
        self._unread = unread
        self._pages = FairPlaces(PAGES, each=PAGES_OF_CALLER, most_waiting=PAGES_WAITING)
        self._searches = FairPlaces(SEARCHES, each=SEARCHES_OF_CALLER, most_waiting=PAGES_WAITING)
        self._pace = pace
        self._turns = turns
        self._reads = Deadlines(READ_SECONDS, clock)
        self._writes = Deadlines(WRITE_SECONDS, clock)
        self._slow = Deadlines(SLOW_SECONDS, clock)
        self.shortcuts = Shortcuts(
            routes, limiter=limiter, addresses=addresses, answers=answers, requests=self._requests, turns=turns,
            clock=clock, ids=ids, figures=figures,
        )  # fmt: skip

    def hurry(self, seconds: float) -> None:
        """Answer what is under way within so many seconds."""
        self._reads.hurry(seconds)
        self._writes.hurry(seconds)
        self._slow.hurry(seconds)
        self.shortcuts.hurry()

    async def handle(self, request: BaseRequest) -> web.StreamResponse:
        """Answer `request`; raises nothing but what tells that the client has left."""
        started = self._monotonic()
        now = self._now()
        target, _, query = _target(request).partition("?")
        operation: Operation | None = None
        code: str | None = None
        call = Call(
            request.method, target, NO_PARAMETERS, request.headers, _peer(request), self._addresses,
            self._new_id(REQUEST), now, NOBODY,
        )  # fmt: skip
        task = request.task
        deadlines = self._reads if request.method in _READS else self._writes
        deadlines.begin(task, started)
        try:
            found = self._router.find(target)
            if found is None and (turn := self._turns.wait(STRANGER, stranger=True)) is not None:
                await turn  # the search for what was meant costs more than most answers
            operation = self._find(found, call, started)
            if operation.route.slow:
                deadlines.end(task)
                deadlines = self._slow
                deadlines.begin(task, started)
            task.set_name(operation.route.operation_id)  # for the watch over the event loop
            if operation.administered and self._administrator.is_shown(call.headers.get("Authorization")):
                call.principal = ADMINISTRATOR
            elif operation.by_key:
                call.principal = self._known(call, started) or await self._authenticated(call, started)
                self._admit(operation, call, started)
            else:
                self._admit_without_key(operation, call, started)
            owner = _caller(call)
            if working_for.get() != owner:  # a connection is mostly one caller's, and to set it costs more
                working_for.set(owner)
            body = _declared(call) if self._turns.several else 0
            stranger, probe = not call.principal.organization_id, operation.route.probe
            turn = self._turns.wait(owner, stranger=stranger, body=body, probe=probe)
            if turn is not None:
                await turn
            try:
                reply = await self._run(operation, call, request, query, deadlines, task)
            finally:
                if self._reached is not None and operation.writes and (others := self._reached()) is not None:
                    await others  # what it changed holds in all processes before its answer, be it a refusal
            if operation.route.versioned and not operation.writes and preconditions.not_modified(call, reply):
                reply = Reply(304, headers=reply.headers, revision=reply.revision)
            if call.unknown:
                name_in(reply, call.unknown, writes=operation.writes)
            self._answers.render(reply)
            if not operation.writes and call.principal is not NOBODY:  # what was written is answered in any case
                size = reply.memory if isinstance(reply, StreamReply) else len(reply.body or b"")
                if size > SMALL:
                    self._unread.admit(call.principal.share, size)
        except Problem as error:  # no name outlives it: a frame and an error that hold each other hold the body too
            code, reply = self._refused(error, operation, call, started)
        except ClientLeft:
            raise
        except asyncio.CancelledError:
            if not deadlines.expired(task):
                raise
            late = Unavailable("There was no answer in time; whether the request was carried out is not known.")
            code = late.code
            reply = self._answers.problem(late, call)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in a handler is answered with 500
            self._report(operation, call, error)
            _forget_frames(error)
            reply = self._answers.problem(
                Problem("INTERNAL_ERROR", "The request failed inside the service; its log has the requestId."), call
            )
        finally:
            deadlines.end(task)
            if call.spool is not None:
                await call.spool.close()
            if call.room is not None:
                call.room.give_back()
        if operation is not None and operation.rate_class == PUBLIC and reply.status == 404:
            self._limiter.of_address(call.client_ip, PUBLIC, started).owe(started)
        seconds = self._monotonic() - started
        (self._figures.nowhere if operation is None else operation.figures).answered(reply.status, seconds)
        if code is not None or self._requests.every:
            self._requests.answered(operation, call, reply.status, code, seconds)
        if isinstance(reply, StreamReply):
            return await self._stream(reply, call, request, deadlines, task)
        return self._answers.whole(reply, call, request, started)

    async def _stream(
        self, reply: StreamReply, call: Call, request: BaseRequest, deadlines: Deadlines, task: Task
    ) -> web.StreamResponse:
        """Send `reply` at the client's pace; when the service stops before its end, the body has none (0037)."""
        deadlines.begin(task, self._monotonic())
        try:
            with deadlines.uncounted(task):
                return await self._answers.stream(reply, call, request)
        except asyncio.CancelledError:
            if not deadlines.expired(task):
                raise
            _log.warning("answer_broken_off", request_id=call.request_id, code="SERVICE_UNAVAILABLE")
            raise ConnectionResetError("the service stops before the end of the answer") from None
        finally:
            deadlines.end(task)

    # The steps, in order ------------------------------------------------------------------------------------------

    def _find(self, found: Found[Operation] | None, call: Call, at: float) -> Operation:
        """The operation at the path; 404 or 405, which ask for no credential and so have a limit per address."""
        if found is None:
            self._count(call, ANONYMOUS, at)  # before the search for what was meant
            meant = usual(call.method, call.target)
            call.route = self._router.similar(call.target) if meant is None else meant.partition(" ")[2]
            raise no_route(meant or call.route)
        methods, call.path = found
        operation = methods.get(call.method)
        if operation is None and call.method == "HEAD":
            operation = methods.get("GET")
        if operation is None:
            self._count(call, ANONYMOUS, at)
            call.route = next(iter(methods.values())).route.path
            raise no_method(methods, usual(call.method, call.target))
        if operation.route.access is Access.ADMIN and not self._administrator.exists:
            self._count(call, ANONYMOUS, at)
            raise no_route(None)
        return operation

    def _known(self, call: Call, at: float) -> Principal | None:
        """Who shows the credential, when that is known without waiting; raises the 401 of what has no form."""
        try:
            return self._authenticator.peek(bearer_token(call.headers.get("Authorization")))
        except Problem as problem:
            self._count_failure(problem, call, at)
            raise

    async def _authenticated(self, call: Call, at: float) -> Principal:
        """Who shows the credential, which the database is asked for; raises the 401."""
        working_for.set(_caller(call))
        try:
            return await authenticate(self._authenticator, bearer_token(call.headers.get("Authorization")))
        except Problem as problem:
            self._count_failure(problem, call, at)
            raise

    def _admit(self, operation: Operation, call: Call, at: float) -> None:
        """Rate limit, and what a caller with a credential may (C2.6)."""
        principal = call.principal
        if not principal.unlimited:
            bucket = call.bucket = self._limiter.of_principal(principal, operation.rate_class, at)
            if not bucket.take(at):
                raise bucket.refusal()
            total = self._limiter.of_organization(principal, operation.rate_class, at)
            if total is not None and not total.take(at):
                call.bucket = total  # what the headers tell of
                raise total.refusal()
        self._allow(operation, call)

    async def _ask_again(self, operation: Operation, call: Call) -> None:
        """Whether the caller may still, after a body that came in pieces: its key may have ended, it may have moved."""
        if operation.by_key and call.principal is not ADMINISTRATOR:
            at = self._monotonic()
            principal = self._known(call, at) or await self._authenticated(call, at)
            if principal is not call.principal:
                call.principal = principal
                self._allow(operation, call)

    def _allow(self, operation: Operation, call: Call) -> None:
        """Address, scope, suspension."""
        principal = call.principal
        if principal.allowed_ips and not within(call.client_ip, principal.allowed_ips):
            raise Problem(
                "IP_NOT_ALLOWED", "The API key is not allowed from this address: its allowedIps do not include it."
            )
        if operation.route.session_only and principal.actor_type != ACCOUNT:
            raise session_needed()
        scope = operation.scope
        if scope is not None and scope not in principal.scopes and principal.scopes.isdisjoint(operation.or_scopes):
            raise missing_scope(scope)
        if principal.suspended and operation.writes and not operation.route.while_suspended:
            raise organization_suspended()

    def _admit_without_key(self, operation: Operation, call: Call, at: float) -> None:
        """The administrator, public routes and callbacks."""
        if operation.route.access is Access.ADMIN:
            try:
                call.principal = self._administrator.authenticate(bearer_token(call.headers.get("Authorization")))
            except Problem as problem:
                self._count_failure(problem, call, at)
                raise
        if operation.route.before_body is not None:
            operation.route.before_body(call)
        if not operation.rate_class:
            return
        bucket = self._limiter.of_address(call.client_ip, operation.rate_class, at)
        # Only unknown codes and tokens cost anything on public routes: they are counted after the answer.
        if not (bucket.has_token(at) if operation.rate_class == PUBLIC else bucket.take(at)):
            raise bucket.refusal()

    def _count_failure(self, problem: Problem, call: Call, at: float) -> None:
        """Failed credentials have a limit of their own per address, so that guessing is slow for the guesser only."""
        if problem.status == 401:
            self._count(call, FAILED, at)

    def _count(self, call: Call, rate_class: str, at: float) -> None:
        """Take one token of the caller's address; 429 when there is none."""
        bucket = self._limiter.of_address(call.client_ip, rate_class, at)
        if not bucket.take(at):
            raise bucket.refusal() from None

    def _refused(self, problem: Problem, operation: Operation | None, call: Call, at: float) -> tuple[str, Reply]:
        """The code and the answer of a refusal."""
        _forget_frames(problem)
        if operation is not None and problem.detail is NO_SUCH_RESOURCE:
            problem.detail = missing_record(operation.path_ids, call)
        if call.unknown and problem.errors:
            problem.detail += meant_instead(problem, call.unknown)
        hide_holder(problem, call)
        problem = self._counted(problem, operation, call, at)
        reply = self._answers.problem(problem, call)
        if call.unknown:
            name_in(reply, call.unknown, writes=False)
        return problem.code, reply

    def _counted(self, problem: Problem, operation: Operation | None, call: Call, at: float) -> Problem:
        """A callback's credential is its signature, which only its handler knows to be wrong; or nobody is there."""
        if operation is None or operation.route.access is not Access.CALLBACK:
            return problem
        rate_class = {401: FAILED, 404: ANONYMOUS}.get(problem.status)
        if rate_class is None:
            return problem
        bucket = self._limiter.of_address(call.client_ip, rate_class, at)
        return problem if bucket.take(at) else bucket.refusal()

    async def _run(
        self, operation: Operation, call: Call, request: BaseRequest, query: str, deadlines: Deadlines, task: Task
    ) -> Reply:
        """Required headers, parsing, path resource, idempotency, and the rest."""
        route = operation.route
        keyed = operation.idempotency and call.principal is not ADMINISTRATOR  # whose repeats are done again
        given_key = call.headers.get(IDEMPOTENCY_KEY) if keyed else None
        if given_key is not None:
            check_form(given_key)
        elif route.idempotency is Idempotency.REQUIRED:
            raise Problem(
                "IDEMPOTENCY_KEY_REQUIRED",
                f"The header {IDEMPOTENCY_KEY} is required: 1 to 255 printable ASCII characters, new for each request.",
            )
        body: JsonBody | LargeBody | None = None
        model = operation.body
        if operation.has_body:
            whole = body_with_head(request, route.body_limit)
            if whole is None:
                call.room = self._room(call)
                with deadlines.uncounted(task):  # bodies have limits of their own
                    call.raw_body = await read_body(request, route.body_limit, self._clock, call.room, self._pace)
                await self._ask_again(operation, call)
            else:
                call.raw_body = whole
            if model is not None:
                if len(call.raw_body) > NEVER_LARGE and is_large(call.raw_body, operation.most_at_once):
                    body = await self._large(operation, model, call)
                    call.unknown += body.unknown
                else:
                    body = _parse(operation, call)
                    if operation.bodies:
                        model = model_of(body.document, model, operation.bodies)
                    if unknown := unknown_fields(model, body.document):
                        call.unknown += unknown
        elif operation.spooled:
            media_type = media_type_of(call.headers.get("Content-Type"), operation.spooled)
            owner = call.principal.organization_id
            with deadlines.uncounted(task):
                call.spool = await self._spooler.read(request, route.body_limit, media_type, owner)
            await self._ask_again(operation, call)
        if operation.query is not None:
            call.query = operation.query.parse(query, call.unknown)
        elif query and (operation.by_key or route.access is Access.ADMIN):
            with suppress(Problem):  # nobody reads it: what is no text is no fault either
                call.unknown += unknown_parameters((name for name, _ in pairs_of(query)), ())
        if operation.path_ids and not ids_are_formed(operation.path_ids, call.path):
            raise not_found()
        if operation.load is not None:
            call.resource = await operation.load(call)
        if given_key is not None:
            content = call.spool.digest if call.spool is not None else call.raw_body if body is None else body.digest
            key = key_of(call, route.path, given_key, query, content)
            if operation.keeps_answers or (route.makes_no_row and body and route.makes_no_row(body.document)):
                return await self._kept_answers.once(
                    route, call, key, partial(self._finish, operation, call, body, model)
                )
            call.idempotency = key
        if isinstance(body, LargeBody):
            return await self._finish(operation, call, body, model)
        return await self._begin(operation, call, body, model)

    async def _finish(
        self, operation: Operation, call: Call, body: JsonBody | LargeBody | None, model: type[BaseModel] | None
    ) -> Reply:
        """Body, precondition, handler; `model`: of the body."""
        if isinstance(body, LargeBody):
            if call.unknown and is_strict(call.headers.get("Prefer")):
                refuse(call.unknown)
            async with self._workers.place_of_value(_caller(call)):
                call.body = await body.value()
                return await self._begin(operation, call, None, model)
        return await self._begin(operation, call, body, model)

    def _begin(
        self, operation: Operation, call: Call, body: JsonBody | None, model: type[BaseModel] | None
    ) -> Awaitable[Reply]:
        """Body and precondition at once, then what the handler answers. `body` None: the call has its value."""
        if call.unknown and is_strict(call.headers.get("Prefer")):
            refuse(call.unknown)
        if model is not None and body is not None:
            call.body = validate_body(model, body, operation.route.bad_body_status)
        if operation.creates:
            if preconditions.has_if_match(call):
                return self._never_made(operation.route, call)
        elif operation.versioned:
            preconditions.read_if_match(call)
        return self._page(operation, call) if operation.lists else operation.handler(call)

    async def _never_made(self, route: Route, call: Call) -> Reply:
        """What refuses a create with an If-Match: its body, else that there is no version yet."""
        if route.examine is not None:
            try:
                examined = route.examine(call)
                if isinstance(examined, Awaitable):
                    await examined
            except Problem as refusal:
                if not comes_after_version(refusal):
                    raise
        raise preconditions.no_version()

    async def _page(self, operation: Operation, call: Call) -> Reply:
        """A page of a list, read and rendered when its turn has come."""
        async with self._place(call):
            reply = await operation.handler(call)
        if isinstance(reply, StreamReply):
            reply.chunks = self._in_turns(reply.chunks, call)
        return reply

    @asynccontextmanager
    async def _place(self, call: Call) -> AsyncIterator[None]:
        """A place for a page, or a part of one; for a search it is one of the few that searches may have."""
        owner = _caller(call)
        async with self._searches.place(owner) if call.query.searches else nullcontext(), self._pages.place(owner):
            yield

    async def _in_turns(self, chunks: AsyncGenerator[bytes], call: Call) -> AsyncGenerator[bytes]:
        """Each piece is made when its turn has come. No place is held while one is sent: that may take a minute."""
        async with aclosing(chunks):
            while True:
                async with self._place(call):
                    piece = await anext(chunks, None)
                if piece is None:
                    return
                yield piece

    async def _large(self, operation: Operation, model: type[BaseModel], call: Call) -> LargeBody:
        """A body that takes its time is read in another process, and only one of each caller at once."""
        require_json(call.headers.get("Content-Type"))
        raw, call.raw_body = call.raw_body, b""
        return await self._workers.read(
            model, raw, bad_status=operation.route.bad_body_status, most_values=operation.most_values,
            caller=_caller(call), by_channel=operation.bodies,
        )  # fmt: skip

    def _room(self, call: Call) -> Room:
        """Where the body counts: with its organization, or with where it came from."""
        return self._bodies.room(_caller(call), stranger=not call.principal.organization_id)

    def _report(self, operation: Operation | None, call: Call, error: Exception) -> None:
        """Log what happened and where; an exception's own text may hold what a caller sent, so it stays out."""
        frames = traceback.extract_tb(error.__traceback__)[-8:]
        _log.error(
            "request_failed",
            request_id=call.request_id,
            operation=operation.route.operation_id if operation is not None else None,
            error=type(error).__qualname__,
            where=[f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames],
        )


def _forget_frames(error: BaseException) -> None:
    """Break the circles of errors and frames that have them in a name: they would hold the request's body (C31)."""
    known: BaseException | None = error
    while known is not None:
        known.__traceback__ = None
        known = known.__context__


def _parse(operation: Operation, call: Call) -> JsonBody:
    """The JSON of the body; an empty one stands for `{}` where every field is optional."""
    if not call.raw_body and operation.route.body_optional:
        return parse_json(b"{}")
    require_json(call.headers.get("Content-Type"))
    return parse_json(call.raw_body)


def _caller(call: Call) -> str:
    """Whose share the request takes: its organization's; that of its network where no credential says which."""
    return call.principal.organization_id or STRANGER + network_of(call.client_ip)


def _declared(call: Call) -> int:
    """Bytes of the body as the head declares them; of one in chunks, which declares nothing, as many as are small."""
    length = call.headers.get("Content-Length")
    if length is not None:
        return int(length)
    return SMALL if "Transfer-Encoding" in call.headers else 0


def _target(request: BaseRequest) -> str:
    """Path and query as they were sent; of the absolute form of a target too (`GET http://host/path`)."""
    target = request.raw_path
    return target if target.startswith("/") else str(request.rel_url)


def _peer(request: BaseRequest) -> str:
    name = request.protocol.peername
    return name[0] if isinstance(name, tuple) else "127.0.0.1"
