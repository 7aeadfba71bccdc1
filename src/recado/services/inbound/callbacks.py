"""Providers' callbacks: stored as they came and answered at once, then processed in their order (C29.5).

Each source is one line, as the order of a message's reports counts, and lines do not wait for one another: what takes
long to read is worked off beside the rest, which goes on with the other sources.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

import structlog

from recado.channels.core.adapters import EventReader
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import CallbackEvent, FlowNews, NumberNews, Payment, Status, TemplateVerdict
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import SenderKind
from recado.domain.channels.source import Source
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.engine.turns import turns
from recado.services.billing.payments import Payments
from recado.services.flows.flow_reports import FlowReports
from recado.services.inbound.postponed_callbacks import ENV, PostponedCallbacks, source_of
from recado.services.inbound.receipts import KINDS, Receipts
from recado.services.senders.number_refresh import NumberRefresh
from recado.services.senders.social_accounts import SocialAccountReports
from recado.services.templates.template_review import TemplateReview
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.failures import connection_broke, worth_repeating
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import receipts
from recado.storage.messages.receipts import CallbackRow

log = structlog.get_logger()

Find = Callable[[bytes], tuple[Sequence[Any], str | None]]


class Apart(Protocol):
    """Has `find` find the events of a body, in another process where that takes long; so it can be pickled.

    Callers take turns there.
    """

    def takes_long(self, body: bytes, /) -> bool: ...

    async def find(self, find: Find, body: bytes, /, *, caller: str) -> tuple[Sequence[Any], str | None]: ...


AT_ONCE, AT_ONCE_BYTES = 50, 512 * 1024  # of callbacks in one transaction: about 1,300 reports
MOST_EVENTS: Final = 1_000  # reports of one source in a transaction
OF_OTHERS: Final = 5  # reports: as long as one of these, anything else takes
STORED_BYTES: Final = 4 * 1024 * 1024  # of bodies in one statement, which are copied at once
LONG_TO_HASH: Final = 64 * 1024  # bytes
ALL_AGAIN_AFTER: Final = 1.0  # seconds
AT_STOP: Final = 10.0  # seconds that a stop gives those that are worked off apart
KEPT = timedelta(days=7)
MOST_BROKEN = 10
"""Connections that may break under one callback, one after another, before it is taken to be what breaks them."""


class Callbacks:
    """Takes callbacks in, and works them off one block after another: nobody else takes one of the same source, which
    keeps the order of each message.
    """

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        providers: Mapping[tuple[str, str], EventReader],
        receipts_of: Receipts,
        numbers: NumberRefresh,
        social_accounts: SocialAccountReports,
        templates: TemplateReview,
        flows: FlowReports,
        apart: Apart,
        payments: Payments | None = None,
    ) -> None:
        self._db = db
        self._apart = apart
        self._clock = clock
        self._providers = dict(providers)
        self._receipts = receipts_of
        self._of_account = partial(social_accounts.report, ENV)
        self._handlers: Mapping[type[CallbackEvent], Callable[[Any], Awaitable[None]] | None] = {
            **dict.fromkeys(KINDS),  # those of a block are taken in together, in one transaction
            NumberNews: partial(numbers.report, ENV),
            TemplateVerdict: partial(templates.report, ENV),
            FlowNews: partial(flows.report, ENV),
            **({} if payments is None else {Payment: payments.report}),
        }
        self._store: Batcher[CallbackRow, None] = Batcher(
            "callbacks", self._store_batch, clock=clock, max_rows=100, max_queue=2_000
        )
        self._worker = Periodic("callbacks", 1.0, self.work, clock)
        self._stopping = False
        self._alone: dict[str, asyncio.Task[None]] = {}  # by source: the one that takes long, and is worked off apart
        self._seen_to = 0  # while some are: up to this callback, as far as it was seen, none is left to be begun
        self._seen_from = 0.0  # monotonic: when that was begun with
        # By source: the callback that waits for a connection that holds, and how many have not.
        self._broken: dict[str, tuple[int, int]] = {}
        self.postponed = PostponedCallbacks(
            db, clock=clock, read=self._read, apply=self._apply, answers=self._database_answers
        )

    async def start(self) -> None:
        self._stopping = False
        await self._store.start()
        await self.postponed.start()
        await self._worker.start()

    async def stop(self) -> None:
        """What is under way ends with its transaction. What is left of it is open in the table, and begun again."""
        self._stopping = True
        await asyncio.gather(self._worker.stop(), self._stop_alone(), self.postponed.stop())
        self._seen_to = 0
        await self._store.stop()

    async def _stop_alone(self) -> None:
        if tasks := list(self._alone.values()):
            await asyncio.wait(tasks, timeout=AT_STOP)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._alone.clear()

    async def take(self, channel: str, adapter: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Store a verified callback once, with the headers that its body is read with; it is processed right after."""
        digest = _digest(body) if len(body) <= LONG_TO_HASH else await asyncio.to_thread(_digest, body)
        row = CallbackRow(channel, adapter, digest, body, self._clock.now(), headers)
        await self._store.put(row)
        self._worker.hint()

    async def work(self) -> None:
        """Process what is open. Raises `Unavailable` while the database is away, or does not write."""
        self._require_writes()
        self._end_ended()
        # A stop is asked for after the look: what was begun apart then would outlive it.
        while (found := await self._look()) and not self._stopping:
            rows = self._without_long(found)
            try:
                await self._process(rows)
            except Exception:  # noqa: BLE001 - some callback is at fault, or the database: each alone shows which
                for row in rows:
                    if not self._stopping:
                        await self._process_alone(row)
            if self._alone and len(rows) == len(found):
                self._seen_to = rows[-1]["id"]
            self._end_ended()

    async def _look(self) -> Sequence[Mapping[str, Any]]:
        """What may be worked off next.

        What waits for one that takes long is gone through again once a second, and not by each look: there may be much
        of it, and of two that are stored at once the earlier may be seen later.
        """
        now = self._clock.monotonic()
        if not self._alone or now - self._seen_from >= ALL_AGAIN_AFTER:
            self._seen_to, self._seen_from = 0, now
        newest = await receipts.newest_open(self._db) if self._alone else 0
        found = await receipts.open_callbacks(
            self._db, AT_ONCE, AT_ONCE_BYTES, but=self.postponed.ids, but_of=list(self._alone), after=self._seen_to
        )
        if not found:
            self._seen_to = max(self._seen_to, newest)
        return found

    def _without_long(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Begin with what takes long and is the first of its source; what comes after such a one waits for it."""
        found: list[Mapping[str, Any]] = []
        begun, waiting = set[str](), set[str]()
        for row in rows:
            line = _line_of(row)
            if line in waiting:
                continue
            if not self._apart.takes_long(row["body"]):
                found.append(row)
                begun.add(line)
                continue
            waiting.add(line)
            if line not in begun:
                self._alone[line] = task = asyncio.create_task(self._process_alone(row), name=f"callback of {line}")
                task.add_done_callback(lambda _: self._worker.hint())
        return found

    def _end_ended(self) -> None:
        """Let their sources go on. Raises what one of them failed with, as all that `work` does."""
        ended = [(line, task) for line, task in self._alone.items() if task.done()]
        for line, _ in ended:
            del self._alone[line]
            self._seen_to = 0
        for _, task in ended:
            task.result()

    async def purge(self, now: datetime) -> None:
        """Delete callbacks older than seven days."""
        await receipts.purge_callbacks(self._db, now - KEPT)

    async def _process(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One transaction for what a block holds of a source: its events and the mark that it is done.

        More than `MOST_EVENTS` take several, the last of which has the mark: each event can be applied twice. A stop is
        heeded between two.
        """
        blocks: dict[Source, tuple[list[CallbackEvent], list[tuple[int, str | None]]]] = {}
        for row in rows:
            if self._stopping:
                return
            read, failure = await self._read(row)
            events, results = blocks.setdefault(source_of(row), ([], []))
            events += read
            results.append((row["id"], failure))
            await self._clock.sleep(0)  # a body may hold thousands of reports: others have their turn between two
        for source, (events, results) in blocks.items():
            *before, last = _parts(events)
            for part in before:
                if self._stopping:
                    return
                await self._apply(source, part)
                await turns.next()
            if self._stopping:
                return
            await self._apply(source, last, results)

    async def _process_alone(self, of: Mapping[str, Any]) -> None:
        """What fails alone, while the database answers and writes, stands aside, so that those behind it can go on.

        An error of the connection is not the callback's: it waits for the next one, and those behind it wait too.
        """
        callback_id = of["id"]
        row = await receipts.open_callback(self._db, callback_id)
        if row is None:  # its block is committed after all
            return
        try:
            await self._process([row])
        except Exception as error:
            if worth_repeating(error):
                await self._database_answers()
            if connection_broke(error) and self._may_break_more(row):
                raise
            self.postponed.take(callback_id, error)

    def _may_break_more(self, row: Mapping[str, Any]) -> bool:
        """Count a connection that broke under a callback; False when it was one too many."""
        waiting, broken = self._broken.get(_line_of(row), (0, 0))
        broken = broken + 1 if waiting == row["id"] else 1
        self._broken[_line_of(row)] = (row["id"], broken)
        return broken < MOST_BROKEN

    async def _apply(
        self, source: Source, events: Sequence[CallbackEvent], results: Sequence[tuple[int, str | None]] = ()
    ) -> None:
        """Apply events, and mark the callbacks done whose last they are."""
        # What has a handler of its own can be applied twice, and so comes first: a crash repeats it, and loses none.
        together: list[Any] = []
        for event in events:
            handle = self._handler(source, event)
            if handle is None:
                together.append(event)
            else:
                await handle(event)
        async with self._receipts.transaction() as connection:
            await self._receipts.take_in(connection, source, together)
            if results:
                await receipts.callbacks_processed(connection, results, self._clock.now())

    def _handler(self, source: Source, event: CallbackEvent) -> Callable[[Any], Awaitable[None]] | None:
        """Who handles an event alone; None: it is taken in with the others."""
        if type(event) is NumberNews and POLICIES[source.channel].sender is SenderKind.ACCOUNT:
            return self._of_account
        return self._handlers[type(event)]

    async def _database_answers(self) -> None:
        """Raises `Unavailable` while the database is away, or does not write: then no callback is at fault."""
        self._require_writes()
        await self._db.fetchval("select 1")

    def _require_writes(self) -> None:
        if self._db.refuses_writes:
            raise Unavailable("The database does not write.")

    async def _read(self, row: Mapping[str, Any]) -> tuple[Sequence[CallbackEvent], str | None]:
        """The events of a callback, and what was wrong with the rest of it. Raises `Unavailable`: not read by now."""
        provider = self._providers.get((row["channel"], row["adapter"]))
        if provider is None:
            return [], "no such adapter"
        find = partial(_events, provider.parse_callback, dict(row["headers"]))
        events, failure = await self._apart.find(find, row["body"], caller=_line_of(row))
        if failure is not None:
            log.warning("callback_malformed", callback=row["id"])
        return events, failure

    async def _store_batch(self, rows: Sequence[CallbackRow]) -> Sequence[None]:
        some: list[CallbackRow] = []
        size = 0
        for row in rows:
            if some and size + len(row.body) > STORED_BYTES:
                await receipts.store_callbacks(self._db.hot, some)
                some, size = [], 0
            some.append(row)
            size += len(row.body)
        await receipts.store_callbacks(self._db.hot, some)
        return [None] * len(rows)


def _events(
    parse: Callable[[Mapping[str, str], bytes], Sequence[CallbackEvent]], headers: Mapping[str, str], body: bytes
) -> tuple[Sequence[CallbackEvent], str | None]:
    try:
        return parse(headers, body), None
    except MalformedCallback as error:
        return error.events, f"malformed: {error}"  # what could be read counts all the same


def _parts(events: Sequence[CallbackEvent]) -> list[list[CallbackEvent]]:
    """The events as they are applied, each part in a transaction; one part at least."""
    parts: list[list[CallbackEvent]] = [[]]
    room = MOST_EVENTS
    for event in events:
        takes = 1 if type(event) is Status else OF_OTHERS
        if takes > room:
            parts.append([])
            room = MOST_EVENTS
        room -= takes
        parts[-1].append(event)
    return parts


def _line_of(row: Mapping[str, Any]) -> str:
    return f"{row['channel']}/{row['adapter']}"


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
