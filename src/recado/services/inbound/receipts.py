"""What comes back for messages: reports move them on; inbound messages, which `inbound.py` takes in (C28).

Every move is guarded, so that late, early and repeated reports are normal outcomes. A report on a message that is not
known yet is parked and tried again for ten minutes, also when nobody knows its number yet (C29.5).
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

import orjson
import structlog

from recado.channels.core.event_json import event_from_json, event_to_json
from recado.channels.core.events import Inbound, NotTaken, Preference, Status
from recado.channels.core.refusals import codes_of
from recado.domain.channels.address import Address
from recado.domain.channels.policies import POLICIES, carrier_of, report_guard
from recado.domain.channels.source import Source
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import MESSAGE, is_id
from recado.domain.dispatch.retry import MAX_ATTEMPTS, RETRY_DELAYS, retry_delay
from recado.domain.messages.message import FAILURES, Cause, FailureCode, Report, WaitReason, last_error
from recado.services.contacts.consents import Gathered
from recado.services.effects.consequences import Consequences
from recado.services.effects.due_blocks import take_due
from recado.services.inbound.account_owners import AccountOwner, owners_in
from recado.services.inbound.inbound import Came, InboundMessages, address_told
from recado.services.inbound.mail_returns import MailReport
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch import settlements
from recado.storage.dispatch.settlements import Failed, Returned
from recado.storage.messages import receipts
from recado.storage.messages.receipts import NamedMessage, ParkedRow, ReportRow

log = structlog.get_logger()

PARKED_FOR = timedelta(minutes=10)
FIRST_RETRY = timedelta(seconds=1)
PUT_OFF_FOR = timedelta(minutes=1)
BLOCK = 1_000
_OF_ADDRESSES: Final = frozenset({Report.BOUNCED, Report.COMPLAINED})
_OF_A_CARRIER: Final = frozenset({Report.SENT, Report.FAILED})
Arrival = Status | Inbound | Preference | NotTaken
KINDS: Final = get_args(Arrival)  # what is taken in together


@dataclass(frozen=True, slots=True)
class OwnedReport:
    """A report and whose it is. `message_id` is None until its message is known.

    `source`: with the channel of the message; `told_by`: whoever told it, where that is of another one (C17).
    """

    source: Source
    organization_id: str
    sender_id: str | None
    message_id: str | None
    status: Status
    give_up_at: datetime
    told_by: Source | None = None

    @property
    def teller(self) -> Source:
        return self.told_by or self.source

    @property
    def carrier(self) -> str | None:
        """Where its message may go on by another, of which carrier it says that the message left, or failed."""
        if not POLICIES[self.source.channel].carriers or self.status.status not in _OF_A_CARRIER:
            return None
        if self.told_by is not None:
            return self.told_by.channel
        return carrier_of(self.source.channel, self.sender_id or "")


class OwnedReply(NamedTuple):
    """What a person answers, and whose sender the person answers to."""

    source: Source
    owner: AccountOwner
    event: Inbound


class Receipts:
    """Applies what providers report, each time in a `transaction` of its own."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        consequences: Consequences,
        inbound: InboundMessages,
        departed_at: Callable[[str], datetime | None] = lambda message_id: None,
        gateways: Mapping[Source, Sequence[str]] = MappingProxyType({}),
        late: Callable[[Sequence[Failed]], None] = lambda rows: None,
    ) -> None:
        """`departed_at`: when the call for a message began whose outcome is not recorded yet. `gateways`: those that
        senders share, by who tells of them. `late` hears of messages that failed after they had left, after the commit.
        """
        self._late = late
        self._db = db
        self._departed_at = departed_at
        self._gateways = gateways
        self._consequences = consequences
        self._inbound = inbound
        self._uncommitted: dict[Executor, list[AfterCommit]] = {}
        self._clock = clock

    async def inbound(self, source: Source, owner: AccountOwner, event: Inbound) -> str:
        """Store one inbound message; its id, also when the provider had sent it before."""
        came = self._inbound.read(source, [owner], event)
        if came is None:
            raise Problem("PHONE_INVALID", "The sender is not a phone number.")
        async with self.transaction() as connection:
            await self._follow(connection, await self._take_inbound(connection, [came]))
        known = await receipts.inbound_of(self._db, *owner, event.provider_message_id)
        return known or came.row.id

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

    async def stopped(self, source: Source, event: Preference) -> None:
        """Record that a person told the provider to stop, when a send was refused for it (C28.4)."""
        async with self.transaction() as connection:
            await self.take_in(connection, source, [event])

    async def take_in(self, executor: Executor, source: Source, events: Sequence[Arrival]) -> None:
        """Apply what a provider reported, in its order for each message, on a connection in a transaction."""
        await self.take_in_of_each(executor, {source: events})

    async def take_in_of_each(
        self,
        executor: Executor,
        arrived: Mapping[Source, Sequence[Arrival]],
        reports: Sequence[OwnedReport] = (),
        replies: Sequence[OwnedReply] = (),
    ) -> None:
        """As `take_in`, by where it came from. `reports`, `replies`: besides, those whose owner is known."""
        # Anyone who changes a contact locks it before messages, and messages before wallets and totals: so do we.
        came = [
            each
            for source, events in arrived.items()
            for each in await self._received(executor, source, [event for event in events if type(event) is Inbound])
        ]
        came += [
            read for each in replies if (read := self._inbound.read(each.source, [each.owner], each.event)) is not None
        ]
        moved = await self._take_inbound(executor, came)
        for source, events in arrived.items():
            moved += await self._refuse(executor, source, [event for event in events if type(event) is Preference])
            moved += await self._not_taken(executor, source, [event for event in events if type(event) is NotTaken])
        give_up_at = self._clock.now() + PARKED_FOR
        owned = [*reports]
        for source, events in arrived.items():
            owned += await self._find(
                executor, source, [(event, give_up_at) for event in events if type(event) is Status]
            )
        await self._follow(executor, await self._apply(executor, owned) + moved)

    async def apply(self, executor: Executor, reports: Iterable[OwnedReport]) -> None:
        """Apply reports whose owner is known, of any source; park those whose message is not."""
        # Once, after all rounds: a transaction locks its messages before wallets and totals, or two would deadlock.
        await self._follow(executor, await self._apply(executor, reports))

    async def _apply(self, executor: Executor, reports: Iterable[OwnedReport]) -> list[Moved]:
        now = self._clock.now()
        reports = list(reports)
        unknown: list[OwnedReport] = []
        moved = await self._returned(executor, reports, now)
        for round_of_reports in _rounds(reports):
            rows = [
                _row(
                    report,
                    report.message_id,
                    now,
                    self._departed_at(report.message_id),
                    self._gateway(report.teller, report.status.account),
                )
                for report in round_of_reports
                if report.message_id is not None
            ]
            exist = await receipts.apply(executor, rows, now, months=self._db.months) if rows else {}
            moved += [move for moves in exist.values() for move in moves]
            if fell := _fell(rows, round_of_reports, exist):
                self._uncommitted.get(executor, []).append(partial(self._late, fell))
            unknown += [report for report in round_of_reports if report.message_id not in exist]
        parked = [
            _parked(each.teller, each.status, each.give_up_at, now, each.organization_id, each.sender_id)
            for each in unknown
        ]
        await self._park(executor, parked, now)
        return moved

    async def _returned(self, executor: Executor, reports: Sequence[OwnedReport], now: datetime) -> list[Moved]:
        """What follows for the addresses that gave something back, or complained; answers what was withdrawn."""
        told = [
            MailReport((each.organization_id, each.source.env, each.source.channel, each.message_id), each.status)
            for each in reports
            if each.message_id is not None and each.status.status in _OF_ADDRESSES
        ]
        if not told:
            return []
        gathered = Gathered()
        await self._inbound.returns.take(executor, told, now, gathered)
        self._uncommitted.get(executor, []).extend(gathered.after)
        return gathered.moved

    def _gateway(self, source: Source, account: str | None) -> str | None:
        """Of which shared gateway this tells: two may have one adapter, which names them as its accounts then."""
        names = self._gateways.get(source, ())
        return account if account in names else names[0] if len(names) == 1 else None

    async def _park(self, executor: Executor, rows: Sequence[ParkedRow], now: datetime) -> None:
        """Keep reports for another try, but those whose ten minutes are over."""
        parked = [row for row in rows if row.give_up_at > now]
        if parked:
            await receipts.park(executor, parked)
        if len(parked) < len(rows):
            log.info("reports_dropped", count=len(rows) - len(parked))

    async def retry_parked(self) -> None:
        """Try parked reports again. One that fails alone while the database answers waits longer than the others."""
        await take_due(self._db, BLOCK, self._retry_block, self._put_off)

    async def _put_off(self, error: Exception) -> None:
        now = self._clock.now()
        log.warning("report_put_off", error=type(error).__name__)
        if await receipts.put_off(self._db, now, now + PUT_OFF_FOR):
            log.info("reports_dropped", count=1)

    async def _retry_block(self, block: int) -> int:
        async with self.transaction() as connection:
            rows = await receipts.take_parked(connection, self._clock.now(), block)
            reports: list[OwnedReport] = []
            others: dict[Source, list[tuple[Status, datetime]]] = {}
            for row in rows:
                source, give_up_at = Source(row["channel"], row["adapter"], row["env"]), row["give_up_at"]
                status = event_from_json(row["event"], codes_of(row["channel"]))
                if not isinstance(status, Status):
                    continue
                if row["organization_id"] is not None and _referenced(status):
                    owner = (row["organization_id"], row["sender_id"])
                    reports.append(OwnedReport(source, *owner, status.reference, status, give_up_at))
                else:
                    others.setdefault(source, []).append((status, give_up_at))
            for source, given in others.items():
                reports += await self._find(connection, source, given)
            await self.apply(connection, reports)
        return len(rows)

    # Answers that came late ---------------------------------------------------------------------------------------

    async def _not_taken(self, executor: Executor, source: Source, events: Sequence[NotTaken]) -> list[Moved]:
        """Settle calls of unknown outcome as their answers say; what is settled by now stays as it is (C29.2)."""
        if not events:
            return []
        answers = {event.reference: event for event in events}
        now = self._clock.now()
        failed: list[Failed] = []
        returned: dict[int, list[Returned]] = {}  # by the epoch of the claim
        for call in await receipts.uncertain_calls(executor, source, sorted(answers)):
            answer = answers[call.id]
            message = (call.organization_id, source.env, call.channel, call.id)
            delay = retry_delay(call.attempts) if answer.spent else RETRY_DELAYS[0]
            if answer.code is not None:
                code = POLICIES[call.channel].failure_code(answer.code)
                failed.append(Failed(*message, Cause(code, "refused by an answer that came late"), now, False))
            elif delay is None:
                cause = Cause(FailureCode.PROVIDER_ERROR, f"refused for now {MAX_ATTEMPTS} times")
                failed.append(Failed(*message, cause, now, False))
            else:
                error = last_error(FailureCode.PROVIDER_ERROR, "refused for now") if answer.spent else None
                until = now + timedelta(seconds=delay)
                back = Returned(*message, call.called_at, until, WaitReason.RETRY, error, not answer.spent, now)
                returned.setdefault(call.epoch, []).append(back)
        for epoch, rows in returned.items():
            await settlements.returned(executor, rows, epoch, months=self._db.months)
        return await settlements.failed(executor, failed, months=self._db.months) if failed else []

    # Whose report it is ---------------------------------------------------------------------------------------------

    async def _find(
        self, executor: Executor, source: Source, given: Sequence[tuple[Status, datetime]]
    ) -> list[OwnedReport]:
        """Find whose they are, and of which message: by our id of an account that is somebody's, else by a look-up.

        `given`: each with the moment at which it is given up. Those of which nothing is known yet are parked.
        """
        accounts = {status.account for status, _ in given if status.account is not None}
        owners = await receipts.owners_of_accounts(executor, source, sorted(accounts)) if accounts else {}
        found = await _named(
            executor,
            source,
            {n: each for n, (each, _) in enumerate(given) if not (_referenced(each) and each.account in owners)},
        )
        reports: list[OwnedReport] = []
        parked: list[ParkedRow] = []
        dropped = 0
        now = self._clock.now()
        for n, (status, give_up_at) in enumerate(given):
            owner, named = owners.get(status.account or ""), found.get(n)
            if named is not None:
                told_by = None if named.channel == source.channel else source
                of_message = source._replace(channel=named.channel)
                reports.append(
                    OwnedReport(of_message, named.organization_id, None, named.id, status, give_up_at, told_by)
                )
            elif owner is not None:
                ours = status.reference if _referenced(status) else None
                reports.append(OwnedReport(source, *owner, ours, status, give_up_at))
            elif status.account is not None or _referenced(status):
                parked.append(_parked(source, status, give_up_at, now))
            else:  # nor does it name anything by which one could be found later
                dropped += 1
        if dropped:
            log.info("report_without_number", count=dropped)
        await self._park(executor, parked, now)
        return reports

    # Inbound --------------------------------------------------------------------------------------------------------

    async def _received(self, executor: Executor, source: Source, events: Sequence[Inbound]) -> list[Came]:
        """Those that somebody with an address sent to an account that is known; the rest is dropped."""
        asked = [(event.account, address_told(source, event.sender)) for event in events]
        received = []
        dropped: Counter[bool] = Counter()
        for event, owners in zip(events, await self._owners(executor, source, asked), strict=True):
            came = self._inbound.read(source, owners, event)
            if came is None:
                dropped[bool(owners)] += 1
            else:
                received.append(came)
        for known, count in dropped.items():  # a line for each would hold the loop while thousands come
            log.info("inbound_dropped", known_number=known, count=count)
        return received

    async def _owners(
        self, executor: Executor, source: Source, asked: Sequence[tuple[str, Address | None]]
    ) -> list[Sequence[AccountOwner]]:
        return await owners_in(source.channel)(executor, source, asked, self._clock.now()) if asked else []

    async def _take_inbound(self, executor: Executor, came: Sequence[Came]) -> list[Moved]:
        taken = await self._inbound.take_in(executor, came)
        self._uncommitted.get(executor, []).extend(taken.after)
        return taken.moved

    async def _refuse(self, executor: Executor, source: Source, events: Sequence[Preference]) -> list[Moved]:
        if not events:
            return []
        asked = [(each.account, address_told(source, each.phone)) for each in events]
        refusals = [*zip(await self._owners(executor, source, asked), events, strict=True)]
        gathered = Gathered()
        await self._inbound.refuse(executor, source, refusals, gathered)
        self._uncommitted.get(executor, []).extend(gathered.after)
        return gathered.moved

    async def _follow(self, executor: Executor, moved: Sequence[Moved]) -> None:
        """Write what follows from the moves, in the same commit."""
        if moved:
            after = await self._consequences.write(executor, moved)
            self._uncommitted.get(executor, []).append(after)


def _referenced(status: Status) -> bool:
    return status.reference is not None and is_id(MESSAGE, status.reference)


async def _named(executor: Executor, source: Source, statuses: Mapping[int, Status]) -> dict[int, NamedMessage]:
    """The messages of those that are known by an id that they name, under the same keys."""
    asked = [(n, reference, each.account) for n, each in statuses.items() for reference in _references(each)]
    found = await receipts.messages_named(executor, source, [(reference, account) for _, reference, account in asked])
    return {
        n: named
        for (n, _, _), named in zip(asked, found, strict=True)
        if named is not None and (not _referenced(statuses[n]) or named.id == statuses[n].reference)
    }


def _references(status: Status) -> list[str]:
    """What names the message: our id, and the provider's, which means nothing without its account."""
    ours = status.reference if _referenced(status) else None
    theirs = None if status.account is None else status.provider_message_id
    return [each for each in (ours, theirs) if each is not None]


def _rounds(reports: Iterable[OwnedReport]) -> list[list[OwnedReport]]:
    """Reports in rounds in which each message stands once: one statement cannot move a row twice."""
    rounds: list[list[OwnedReport]] = []
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


def _row(
    report: OwnedReport, message_id: str, now: datetime, departed_at: datetime | None, gateway: str | None
) -> ReportRow:
    status, source, kind = report.status, report.source, Report(report.status.status)
    cause = None
    if report_guard(source.channel, kind).leads_to in FAILURES:
        code = POLICIES[source.channel].failure_code(status.code)
        cause = Cause(code, "reported by the provider after it had taken the message")
    return ReportRow(
        report.organization_id,
        source.env,
        source.channel,
        message_id,
        kind,
        min(status.at, now),
        cause,
        status.provider_message_id,
        departed_at,
        status.account,
        source.adapter,
        None if status.receipt is None else orjson.dumps(status.receipt).decode(),
        gateway,
        report.carrier,
    )


def _fell(
    rows: Sequence[ReportRow], reports: Sequence[OwnedReport], moved: Mapping[str, Sequence[Moved]]
) -> list[Failed]:
    """The messages that failed by these reports, with their senders: hardly ever any."""
    fallen = [(row, row.cause) for row in rows if row.cause is not None and moved.get(row.id)]
    if not fallen:
        return []
    senders = {report.message_id: report.sender_id for report in reports}
    return [
        Failed(row.organization_id, row.env, row.channel, row.id, cause, row.at, False, sender_id=senders.get(row.id))
        for row, cause in fallen
    ]


def _parked(
    source: Source,
    status: Status,
    give_up_at: datetime,
    now: datetime,
    organization_id: str | None = None,
    sender_id: str | None = None,
) -> ParkedRow:
    """Tried again after 1 s, then less and less often: after as long as it has waited already."""
    waited = now - (give_up_at - PARKED_FOR)
    event = orjson.dumps(event_to_json(status)).decode()
    return ParkedRow(source, organization_id, sender_id, event, now + max(FIRST_RETRY, waited), give_up_at)
