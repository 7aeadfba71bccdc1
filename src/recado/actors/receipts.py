"""What comes back for messages: reports move them on, inbound messages are stored and open the 24 h window (C28).

Every move is guarded, so that late, early and repeated reports are normal outcomes. A report on a message that is not
known yet is parked and tried again for ten minutes (C29.5).
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
import structlog

from recado.actors.consequences import Consequences
from recado.channels.events import Inbound, Status, event_from_json, event_to_json
from recado.domain.clock import Clock
from recado.domain.errors import Problem
from recado.domain.ids import MESSAGE, IdSource, is_id
from recado.domain.message import FailureCode, MessageStatus, last_error
from recado.domain.phones import canonical_phone, recipient_hash
from recado.storage import receipts
from recado.storage.moves import AfterCommit, Moved
from recado.storage.numbers import Number
from recado.storage.postgres import Connection, Database
from recado.storage.receipts import InboundRow, ParkedRow, ReportRow
from recado.storage.rows import Executor

log = structlog.get_logger()

CHANNEL = "chatapp"
PARKED_FOR = timedelta(minutes=10)
FIRST_RETRY = timedelta(seconds=1)
BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Report:
    """A report and whose it is. `message_id` is None until its message is known."""

    organization_id: str
    number_id: str
    message_id: str | None
    status: Status
    give_up_at: datetime


class Receipts:
    """Applies what providers report, each time in a `transaction` of its own."""

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource, consequences: Consequences) -> None:
        self._db = db
        self._consequences = consequences
        self._uncommitted: dict[Executor, list[AfterCommit]] = {}
        self._clock = clock
        self._ids = ids

    async def inbound(self, number: Number, event: Inbound) -> str:
        """Store one inbound message; its id, also when the provider had sent it before."""
        row = self._inbound_row(number.organization_id, number.env, number.id, event)
        if row is None:
            raise Problem("PHONE_INVALID", "The sender is not a phone number.")
        async with self.transaction() as connection:
            new = await self._store(connection, [row])
        if row.id in new:
            return row.id
        known = await receipts.inbound_of(self._db, number.organization_id, number.id, event.provider_message_id)
        return known or row.id

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction in which reports and inbound messages are applied; what follows its commit is done after it."""
        async with self._db.hot.transaction() as connection:
            after = self._uncommitted[connection] = []
            try:
                yield connection
            finally:
                del self._uncommitted[connection]
        for each in after:
            each()

    async def take_in(self, executor: Executor, env: str, events: Sequence[Status | Inbound]) -> None:
        """Apply what a provider reported, in its order for each message, on a connection in a transaction."""
        reports = await self._find(executor, env, [event for event in events if isinstance(event, Status)])
        await self.apply(executor, env, reports)
        await self._store_inbound(executor, env, [event for event in events if isinstance(event, Inbound)])

    async def apply(self, executor: Executor, env: str, reports: Iterable[Report]) -> None:
        """Apply reports whose owner is known; park those whose message is not."""
        now = self._clock.now()
        unknown: list[Report] = []
        moved: list[Moved] = []
        for round_of_reports in _rounds(reports):
            rows = [
                _row(report, report.message_id, env, now)
                for report in round_of_reports
                if report.message_id is not None
            ]
            exist = await receipts.apply(executor, rows, now) if rows else {}
            moved += [move for moves in exist.values() for move in moves]
            unknown += [report for report in round_of_reports if report.message_id not in exist]
        # Once, after all rounds: a transaction locks its messages before wallets and totals, or two would deadlock.
        await self._follow(executor, moved)
        parked = [_parked(report, now) for report in unknown if report.give_up_at > now]
        if parked:
            await receipts.park(executor, parked)
        if len(parked) < len(unknown):
            log.info("reports_dropped", count=len(unknown) - len(parked))

    async def retry_parked(self) -> None:
        """Try parked reports again."""
        while True:
            async with self.transaction() as connection:
                rows = await receipts.take_parked(connection, self._clock.now(), BLOCK)
                reports = []
                for row in rows:
                    status = event_from_json(row["event"])
                    if isinstance(status, Status):
                        reports.append(
                            Report(row["organization_id"], row["number_id"], None, status, row["give_up_at"])
                        )
                await self.apply(connection, "live", await self._with_messages(connection, reports))
            if len(rows) < BLOCK:
                return

    # Whose report it is ---------------------------------------------------------------------------------------------

    async def _find(self, executor: Executor, env: str, statuses: Sequence[Status]) -> list[Report]:
        """Find the number by its provider id and the message by our reference, else by the provider's id."""
        give_up_at = self._clock.now() + PARKED_FOR
        accounts = {status.account for status in statuses if status.account is not None}
        owners = await receipts.owners_of_accounts(executor, env, sorted(accounts)) if accounts else {}
        nameless = {status.reference for status in statuses if status.account is None and status.reference is not None}
        by_message = {}
        if nameless:
            by_message = await receipts.organizations_of_messages(executor, env, CHANNEL, sorted(nameless))
        reports = []
        for status in statuses:
            owner = owners.get(status.account or "") or by_message.get(status.reference or "")
            if owner is None:
                log.info("report_without_number")
            else:
                reports.append(Report(*owner, None, status, give_up_at))
        return await self._with_messages(executor, reports)

    async def _with_messages(self, executor: Executor, reports: Sequence[Report]) -> list[Report]:
        wanted = {
            (report.organization_id, report.number_id, report.status.provider_message_id)
            for report in reports
            if not _referenced(report.status) and report.status.provider_message_id is not None
        }
        found = await receipts.messages_of_provider_ids(executor, sorted(wanted)) if wanted else {}
        placed = []
        for report in reports:
            status = report.status
            message_id = status.reference if _referenced(status) else None
            if message_id is None and status.provider_message_id is not None:
                message_id = found.get((report.organization_id, report.number_id, status.provider_message_id))
            placed.append(Report(report.organization_id, report.number_id, message_id, status, report.give_up_at))
        return placed

    # Inbound --------------------------------------------------------------------------------------------------------

    async def _store_inbound(self, executor: Executor, env: str, events: Sequence[Inbound]) -> None:
        if not events:
            return
        owners = await receipts.owners_of_accounts(executor, env, sorted({event.account for event in events}))
        rows = []
        for event in events:
            owner = owners.get(event.account)
            row = None if owner is None else self._inbound_row(owner[0], env, owner[1], event)
            if row is None:
                log.info("inbound_dropped", known_number=owner is not None)
            else:
                rows.append(row)
        await self._store(executor, rows)

    async def _store(self, executor: Executor, rows: Sequence[InboundRow]) -> set[str]:
        new = await receipts.store_inbound(executor, rows, self._clock.now())
        await self._follow(
            executor,
            [
                Moved(row.organization_id, row.env, CHANNEL, row.id, None, MessageStatus.DELIVERED.value)
                for row in rows
                if row.id in new
            ],
        )
        return new

    async def _follow(self, executor: Executor, moved: Sequence[Moved]) -> None:
        """Write what follows from the moves, in the same commit."""
        if moved:
            after = await self._consequences.write(executor, moved)
            self._uncommitted.get(executor, []).append(after)

    def _inbound_row(self, organization_id: str, env: str, number_id: str, event: Inbound) -> InboundRow | None:
        try:
            sender = canonical_phone(event.sender if event.sender.startswith("+") else f"+{event.sender}")
        except Problem:
            return None
        return InboundRow(
            organization_id,
            env,
            self._ids.new(MESSAGE),
            number_id,
            sender,
            recipient_hash(organization_id, sender),
            event.type,
            orjson.dumps(event.payload).decode(),
            event.provider_message_id,
            min(event.at, self._clock.now()),
        )


def _referenced(status: Status) -> bool:
    return status.reference is not None and is_id(MESSAGE, status.reference)


def _rounds(reports: Iterable[Report]) -> list[list[Report]]:
    """Reports in rounds in which each message stands once: one statement cannot move a row twice."""
    rounds: list[list[Report]] = []
    seen: dict[str, int] = {}
    for report in reports:
        turn = 0
        if report.message_id is not None:
            turn = seen.get(report.message_id, 0)
            seen[report.message_id] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(report)
    return rounds


def _row(report: Report, message_id: str, env: str, now: datetime) -> ReportRow:
    status = report.status
    error = None
    if status.status == "failed":
        code = FailureCode(status.code) if status.code in set(FailureCode) else FailureCode.PROVIDER_ERROR
        error = last_error(code, "reported by the provider after it had taken the message")
    return ReportRow(
        report.organization_id,
        env,
        CHANNEL,
        message_id,
        status.status,
        min(status.at, now),
        error,
        status.provider_message_id,
    )


def _parked(report: Report, now: datetime) -> ParkedRow:
    """Tried again after 1 s, then less and less often: after as long as it has waited already."""
    waited = now - (report.give_up_at - PARKED_FOR)
    return ParkedRow(
        report.organization_id,
        report.number_id,
        orjson.dumps(event_to_json(report.status)).decode(),
        now + max(FIRST_RETRY, waited),
        report.give_up_at,
    )
