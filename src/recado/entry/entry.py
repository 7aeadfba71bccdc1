"""The entry: answers each request with what the cell of its organization answers.

A cell that says that it has not what it was asked with may have been left since: then all are asked anew, and the
request goes to the one that has it now, or is answered with 503 where its body was sent and is not at hand any more.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import unquote

import aiohttp
import orjson
import structlog
from aiohttp import web
from aiohttp.web_request import BaseRequest

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.core.ids import REQUEST, IdSource
from recado.entry.answers import EntryAnswers
from recado.entry.asked_cell import AskedCell
from recado.entry.cell_finder import CellFinder, Whereabouts
from recado.entry.figures import CALLER, CELL, EntryBound, EntryFigures
from recado.entry.forwarding import (
    RETRY_AFTER,
    AnswerBrokeOff,
    Forwarder,
    NotReached,
    given,
    target_of,
)
from recado.entry.metrics import EntryMetrics
from recado.entry.passed_body import PassedBody
from recado.entry.places import CellList, CellPlaces
from recado.entry.rules import Rule, Way, rule_of, shown_by_text, shown_by_token
from recado.http.callers.rate_limits import Limit, RateLimiter
from recado.http.middleware.authentication import bearer_token, unauthorized
from recado.http.middleware.scraping import Scrapers
from recado.http.problems.missing import no_method, no_route
from recado.http.wire.body import read_body
from recado.http.wire.body_pace import BodyPace
from recado.http.wire.byte_budget import ByteBudget
from recado.http.wire.client_ip import ClientAddresses, network_of
from recado.http.wire.deadlines import WRITE_SECONDS
from recado.storage.cells.whereabouts import Shown, Shows
from recado.storage.core.shares.callers import STRANGER

LONGEST_SIGN_IN: Final = 64 * 1024  # bytes
LONGEST_CALLBACK: Final = 3 * 1024 * 1024  # bytes, as each cell takes
CALLBACK_PATIENCE: Final = WRITE_SECONDS + 5.0  # seconds: each cell has answered sooner

log = structlog.get_logger(__name__)


class EntryRequest:
    """One request. `network`: whose share it takes."""

    def __init__(self, request: BaseRequest, ip: str, request_id: str) -> None:
        self.request = request
        self.ip = ip
        self.id = request_id
        self.network = STRANGER + network_of(ip)
        self.cell = ""  # that answers it, or should
        self.answered_at: float | None = None  # since when it does, in monotonic seconds
        self.path = unquote(target_of(request).partition("?")[0])


class Entry:
    """Handles requests."""

    def __init__(
        self,
        cells: CellList,
        places: CellPlaces,
        finder: CellFinder,
        forwarder: Forwarder,
        *,
        limits: dict[str, Limit],
        addresses: ClientAddresses,
        bodies: ByteBudget,
        held: ByteBudget,
        answers: EntryAnswers,
        figures: EntryFigures,
        metrics: EntryMetrics,
        scrapers: Scrapers,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        """`limits`: of the classes that the rules name; `bodies`: those that are read here; `held`: of others what came
        before they are passed on.
        """
        self._cells = cells
        self._places = places
        self._finder = finder
        self._forwarder = forwarder
        self._limiter = RateLimiter(limits, {})
        self._addresses = addresses
        self._bodies = bodies
        self._held = held
        self._answers = answers
        self._figures = figures
        self._metrics = metrics
        self._scrapers = scrapers
        self._pace = BodyPace(clock)
        self._clock = clock
        self._new_id = ids.new

    async def handle(self, request: BaseRequest) -> web.StreamResponse:
        """Answer `request`; raises nothing but what tells that the client has left, or that an answer broke off."""
        peer = request.protocol.peername
        ip = self._addresses.resolve(peer[0] if isinstance(peer, tuple) else "127.0.0.1", request.headers)
        asked = EntryRequest(request, ip, self._new_id(REQUEST))
        rule, shown = rule_of(request.method, asked.path)
        began = self._clock.monotonic()
        try:
            response = await self._answered(asked, rule, shown)
        except BaseException as error:
            by = CELL if isinstance(error, AnswerBrokeOff) else CALLER
            self._figures.broken[by, asked.cell] += 1
            raise
        until = self._clock.monotonic() if asked.answered_at is None else asked.answered_at
        self._figures.answered(rule.way.value, asked.cell, response.status, until - began)
        return response

    async def _answered(self, asked: EntryRequest, rule: Rule, shown: str | None) -> web.StreamResponse:
        request = asked.request
        try:
            match rule.way:
                case Way.HERE:
                    return await self._here(asked)
                case Way.NOWHERE:
                    raise no_route(None)
                case Way.ALL:
                    if rule.held and self._cells.may_move:
                        raise Unavailable("This is taken later: send it again.", retry_after=RETRY_AFTER)
                    return await self._give_to_all(asked)
                case Way.BODY:
                    return await self._by_body(asked, rule)
                case Way.ANY:
                    async with self._body(asked) as body:
                        return await self._give_to_any(asked, body)
                case Way.PATH:
                    async with self._body(asked) as body:
                        return await self._give(asked, rule, shown_by_text(rule, shown), body)
                case _:
                    async with self._body(asked) as body:
                        return await self._give(asked, rule, _by_credential(request), body)
        except Problem as problem:
            return self._answers.problem(problem, request, asked.path, asked.id)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was: the client is told, and the log has its kind only
            log.error("request_failed", request_id=asked.id, error=type(error).__qualname__)
            failed = Problem("INTERNAL_ERROR", "The request failed; the log has the requestId.")
            return self._answers.problem(failed, request, asked.path, asked.id)

    async def _here(self, asked: EntryRequest) -> web.StreamResponse:
        request = asked.request
        if asked.path != "/metrics":
            return self._answers.probe(asked.path == "/healthz" or await self._ready(), request)
        if request.method not in ("GET", "HEAD"):
            raise no_method(("GET",), None)
        self._scrapers.let_in(asked.ip, request.headers)
        return self._answers.metrics(await self._metrics.text(), request)

    async def _ready(self) -> bool:
        """Whether a cell is there. Those that were away are asked again: while no requests come nobody else does."""
        there = [each for each in self._cells.cells.values() if not self._away_now(each)]
        return any(not each.away for each in there) or any(await asyncio.gather(*(each.is_back() for each in there)))

    def _body(self, asked: EntryRequest, whole: bytes | None = None) -> PassedBody:
        return PassedBody(asked.request, self._clock, self._pace, asked.network, whole, self._held, self._figures)

    # To the cell of an organization ----------------------------------------------------------------------------------

    async def _give(
        self, asked: EntryRequest, rule: Rule, shown: tuple[Shows, Shown] | None, body: PassedBody
    ) -> web.StreamResponse:
        if rule.hides and shown is not None:
            return await self._give_hiding(asked, rule, shown, body)
        found = None if shown is None else await self._find(asked, rule, *shown)
        if shown is not None and found is not None and found.cell is not None and await body.gather():
            found = await self._find(asked, rule, *shown)  # it may have moved meanwhile
        if shown is None or found is None or found.cell is None:
            if not rule.strangers:
                raise unauthorized("This needs an API key, or a session, of an organization.")
            return await self._give_to_any(asked, body)
        async with self._answer_of(found.cell, asked, body) as answer:
            if answer.status not in rule.unknown or self._finder.is_certain(found):
                return await self._given(answer, asked)
            anew = await self._finder.find(*shown, asked.network, held=rule.held)
            if anew.cell is found.cell or anew.cell is None:
                return await self._given(answer, asked)
        if body.whole is None and body.begun:
            raise Unavailable("This is being moved; try again shortly.", retry_after=RETRY_AFTER)
        async with self._answer_of(anew.cell, asked, body) as answer:
            return await self._given(answer, asked)

    async def _give_hiding(
        self, asked: EntryRequest, rule: Rule, shown: tuple[Shows, Shown], body: PassedBody
    ) -> web.StreamResponse:
        """Who is refused learns nothing of what is known: while a cell is away it is 503, with one text, for all.

        Several cells may have it, as an e-mail address of accounts in two of them: the one that takes it is meant.
        """
        self._take(asked, rule, self._clock.monotonic())
        having, all_asked = await self._finder.find_always(*shown, asked.network)
        every = self._in_order(repr(shown[1]).encode())  # failures are counted by the address, wherever they come from
        there = await asyncio.gather(*(self._forwarder.is_there(self._places.url(each.cell)) for each in every))
        away = [each for each, is_there in zip(every, there, strict=True) if not is_there]
        left = [each for each in having or every if each not in away]
        for number, cell in enumerate(left, 1):
            try:
                async with self._open(cell, asked, body, CALLBACK_PATIENCE) as answer:
                    if answer.status not in rule.unknown:
                        return await self._given(answer, asked)
                    if not having or number == len(left):
                        if all_asked and not away:
                            return await self._given(answer, asked)
                        break
            except (NotReached, Unavailable):
                away.append(cell)
        raise Unavailable("Signing in fails at the moment: try again shortly.", retry_after=RETRY_AFTER)

    def _take(self, asked: EntryRequest, rule: Rule, now: float) -> None:
        bucket = self._limiter.of_address(asked.ip, rule.limit, now)
        if not bucket.take(now):
            self._figures.refused[rule.limit] += 1
            raise bucket.refusal()

    async def _find(self, asked: EntryRequest, rule: Rule, shows: Shows, shown: Shown) -> Whereabouts:
        """Where it is; who shows what is unknown uses up his share."""
        now = self._clock.monotonic()
        if rule.limit == "login":
            self._take(asked, rule, now)
        known = self._finder.known(shows, shown)
        if known is not None:
            return known
        if rule.limit != "login" and not self._limiter.lets_in(asked.ip, rule.limit, now):
            self._figures.refused[rule.limit] += 1
            raise self._limiter.of_address(asked.ip, rule.limit, now).refusal()
        found = None
        try:
            found = await self._finder.find(shows, shown, asked.network, held=rule.held)
            return found
        finally:
            if (found is None or found.cell is None) and rule.limit != "login":
                self._limiter.of_address(asked.ip, rule.limit, now).owe(now)

    async def _by_body(self, asked: EntryRequest, rule: Rule) -> web.StreamResponse:
        async with self._read(asked, LONGEST_SIGN_IN) as content:
            try:
                document = orjson.loads(content)
            except ValueError:
                document = None
            member = document.get(rule.member) if isinstance(document, dict) else None
            return await self._give(asked, rule, shown_by_text(rule, member), self._body(asked, content))

    @asynccontextmanager
    async def _read(self, asked: EntryRequest, limit: int) -> AsyncIterator[bytes]:
        room = self._bodies.room(asked.network)
        try:
            try:
                content = await read_body(asked.request, limit, self._clock, room, self._pace)
            except Problem as problem:
                self._figures.refused[EntryBound.BODIES] += problem.status in (429, 503)
                raise
            yield content
        finally:
            room.give_back()

    # To others -------------------------------------------------------------------------------------------------------

    def _in_order(self, by: bytes) -> list[AskedCell]:
        """All cells, in an order of whoever asks: what a cell counts for an address, it counts in one place."""
        cells = list(self._cells.cells.values())
        cells.sort(key=lambda each: hashlib.sha256(by + each.cell.name.encode()).digest())
        return cells

    async def _give_to_any(self, asked: EntryRequest, body: PassedBody) -> web.StreamResponse:
        """To the first that is there."""
        await body.gather()
        cells = self._in_order(asked.network.encode())
        for cell in sorted(cells, key=self._away_now):
            try:
                async with self._open(cell, asked, body) as answer:
                    return await self._given(answer, asked)
            except NotReached:
                if body.whole is None and body.begun:
                    break
        raise Unavailable(retry_after=RETRY_AFTER)

    async def _give_to_all(self, asked: EntryRequest) -> web.StreamResponse:
        """A callback: first to one cell, which refuses it where it is not the provider's; then to all others.

        The provider is told that it was taken when all have taken it, and sends it again otherwise: those who have it
        do nothing then.
        """
        async with self._read(asked, LONGEST_CALLBACK) as content:
            order = self._in_order(asked.network.encode())
            order.sort(key=self._away_now)
            body = self._body(asked, content)
            for number, cell in enumerate(order):
                try:
                    async with self._open(cell, asked, body, CALLBACK_PATIENCE) as answer:
                        if _failed(answer.status):
                            continue  # it cannot say whether it is the provider's
                        if answer.status >= 300:
                            return await self._given(answer, asked)
                        others = await asyncio.gather(*(self._takes(each, asked, body) for each in order[number + 1 :]))
                        if number or not all(others):  # those before it have not taken it
                            break
                        return await self._given(answer, asked)
                except (NotReached, Unavailable):
                    continue
            raise Unavailable("Not all of the service has taken this: send it again.", retry_after=RETRY_AFTER)

    async def _takes(self, cell: AskedCell, asked: EntryRequest, body: PassedBody) -> bool:
        """Whether a cell has it now, or does not want it."""
        try:
            async with self._open(cell, asked, body, CALLBACK_PATIENCE, beside=True) as answer:
                await answer.content.read()
                return not _failed(answer.status) and answer.status != 429
        except (NotReached, Problem, aiohttp.ClientError, OSError):
            return False

    def _away_now(self, cell: AskedCell) -> bool:
        return self._forwarder.is_away(self._places.url(cell.cell))

    @asynccontextmanager
    async def _open(
        self,
        cell: AskedCell,
        asked: EntryRequest,
        body: PassedBody,
        patience: float | None = None,
        *,
        beside: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """`beside`: another cell's answer is given."""
        url = self._places.url(cell.cell)
        if url is None:
            raise NotReached
        if not beside:
            asked.cell = cell.cell.name
        try:
            async with self._forwarder.answer(
                url, asked.request, body, ip=asked.ip, caller=asked.network, patience=patience
            ) as answer:
                yield answer
        except NotReached:
            self._places.not_reached(cell.cell, url)
            raise

    @asynccontextmanager
    async def _answer_of(
        self, cell: AskedCell, asked: EntryRequest, body: PassedBody
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._open(cell, asked, body) as answer:
                yield answer
        except NotReached:
            raise Unavailable(retry_after=RETRY_AFTER) from None

    async def _given(self, answer: aiohttp.ClientResponse, asked: EntryRequest) -> web.StreamResponse:
        asked.answered_at = self._clock.monotonic()
        return await given(answer, asked.request, closing=self._answers.draining, figures=self._figures)


def _failed(status: int) -> bool:
    """Whether a cell did not get so far as to look at a callback."""
    return status >= 500 or status == 408


def _by_credential(request: BaseRequest) -> tuple[Shows, Shown] | None:
    try:
        return shown_by_token(bearer_token(request.headers.get("Authorization")))
    except Problem:
        return None
