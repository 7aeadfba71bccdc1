"""What comes back from providers, as rows: reports, inbound messages, callbacks, and what waits for another try.

Everything is one statement for many rows, on a connection of the caller's: a report is taken out of its table in the
transaction that applies it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from recado.domain.channels.policies import POLICIES, carried_by, report_guard, states_before
from recado.domain.channels.source import Source
from recado.domain.messages.message import ARRIVED, FAILURES, Cause, MessageEvent, MessageStatus, Report
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.moves import Moved
from recado.storage.core.statements.rows import (
    Executor,
    array,
    columns,
    in_blocks,
    in_order,
    pack,
    pack_moments,
    pack_some,
)
from recado.storage.core.statements.sql import load
from recado.storage.messages.reached_recipients import REPORTED, any_shared

SQL = load("receipts")


def _applying(*, shared: bool, carried: bool) -> str:
    """`shared`: some have a sender that organizations share: what a report settles has left by it."""
    reached = f",\n{REPORTED}" if shared else ""
    return SQL.apply.replace("{reached}", reached).replace("{carried}", SQL.carried if carried else "")


APPLY = _applying(shared=False, carried=False)
APPLY_TO_SHARED = _applying(shared=True, carried=False)
_STATEMENTS: Final = {
    (False, False): APPLY,
    (True, False): APPLY_TO_SHARED,
    (False, True): _applying(shared=False, carried=True),
    (True, True): _applying(shared=True, carried=True),
}

_IN_HAND = states_before(MessageEvent.REPORT_SENT)
"""What is being sent: a report moves it only with its row of the queue."""
_UNPAID = {*map(MessageStatus, _IN_HAND), MessageStatus.FAILED}
"""A report moves a failed message only after an unknown outcome: its price was released, as far as we knew (C15.4)."""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report on a message that it names. `cause`: of a failure; `departed_at`: of a call under way.

    `account`, `adapter`, `gateway` (of those that senders share): who told it, where that is known;
    `receipt`: what the provider gave with it, as JSON. `carrier`: where a message may have several, the channel of the
    one that this counts for alone.
    """

    organization_id: str
    env: str
    channel: str
    id: str
    report: str
    at: datetime
    cause: Cause | None
    provider_message_id: str | None
    departed_at: datetime | None = None
    account: str | None = None
    adapter: str | None = None
    receipt: str | None = None
    gateway: str | None = None
    carrier: str | None = None


@dataclass(frozen=True, slots=True)
class InboundRow:
    """A message from a person.

    `payload`: its JSON text, where its channel keeps content; `link_origin`: that of `origemDoLink` (C27.4).
    """

    organization_id: str
    env: str
    channel: str
    id: str
    sender_id: str
    sender: str
    sender_hash: int
    type: str
    payload: str | None
    provider_message_id: str
    at: datetime
    contact_id: str | None = None
    link_origin: str | None = None


class ReportedMessage(NamedTuple):
    """What is asked of a message before a report on it is applied."""

    organization_id: str
    env: str
    channel: str
    id: str
    recipient: str
    status: str
    contact_id: str | None
    uncertain: bool

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self[:4]


class UncertainCall(NamedTuple):
    """A call of unknown outcome. `attempts`: with this one; `epoch`: of its claim."""

    organization_id: str
    id: str
    attempts: int
    epoch: int
    called_at: datetime
    channel: str


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """A report whose message is not known yet. `event`: its JSON text; None: its sender is not known either."""

    source: Source
    organization_id: str | None
    sender_id: str | None
    event: str
    retry_at: datetime
    give_up_at: datetime


@dataclass(frozen=True, slots=True)
class CallbackRow:
    """A callback as it came. `headers`: those that its body is read with."""

    channel: str
    adapter: str
    sha256: bytes
    body: bytes
    received_at: datetime
    headers: Mapping[str, str] = field(default_factory=dict)


async def apply(
    executor: Executor, rows: Sequence[ReportRow], now: datetime, *, months: Months = ALL_MONTHS
) -> dict[str, list[Moved]]:
    """Apply reports, at most one for each message; answers, for each message that exists, its moves.

    A message whose settlement keeps its row busy is left out, as if it were not known yet: its report comes too early.
    """
    found = await _apply(executor, rows, now, months)
    busy = {row["id"] for row in found if row["busy"]}
    if busy:
        found = [row for row in found if not row["busy"]]
        again = await _apply(executor, [row for row in rows if row.id in busy], now, months)
        found += [row for row in again if not row["busy"]]
    by_id = {row.id: row for row in rows}
    return {row["id"]: _moves(by_id[row["id"]], row) for row in found}


async def _apply(executor: Executor, reports: Sequence[ReportRow], now: datetime, months: Months) -> list[Any]:
    rows = sorted(reports, key=in_order)
    guards = [report_guard(row.channel, Report(row.report)) for row in rows]
    causes = [row.cause for row in rows]
    carried = {row.id: row.carrier for row in rows if row.carrier is not None}
    return await months.fetch(
        executor,
        _STATEMENTS[any_shared(rows), bool(carried)],
        [row.id for row in rows],
        pack([row.organization_id for row in rows]),
        pack([row.env for row in rows]),
        pack([row.channel for row in rows]),
        pack([row.id for row in rows]),
        pack([guard.leads_to or row.report for guard, row in zip(guards, rows, strict=True)]),
        pack_moments([row.at for row in rows]),
        array([None if cause is None else cause.last_error for cause in causes]),
        [row.provider_message_id for row in rows],
        now,
        pack([" ".join(guard.leaves) or None for guard in guards]),
        pack([" ".join(guard.revives) or None for guard in guards]),
        _IN_HAND,
        sorted(ARRIVED),
        sorted(FAILURES),
        array([row.departed_at for row in rows]),
        array([None if cause is None else cause.code for cause in causes]),
        pack([row.account for row in rows]),
        pack([row.adapter for row in rows]),
        array([row.receipt for row in rows]),
        pack_some([row.gateway for row in rows]),
        *([carried] if carried else []),
    )


def _moves(report: ReportRow, row: Any) -> list[Moved]:
    """What a report moved: a first one also says that the message was sent (C15.4)."""
    if not row["moved"]:
        return []

    policy = POLICIES[report.channel]
    moves: list[Moved] = []
    status = MessageStatus(row["status"])
    for event in policy.report_moves(status, Report(report.report), uncertain=True):
        before, status = status, policy.machine.move(status, event)
        priced = before in _UNPAID
        moves.append(
            Moved(
                report.organization_id,
                report.env,
                report.channel,
                report.id,
                before,
                status,
                (row["price_coins"] or 0) if priced else 0,
                row["price_kind"] if priced else None,
                row["batch_id"],
                row["campaign_id"],
                units=row["units"],
            )
        )
    return moves


async def owners_of_accounts(executor: Executor, source: Source, accounts: Sequence[str]) -> dict[str, tuple[str, str]]:
    """(organization, sender) by the account's name at the provider."""
    rows = await executor.fetch(SQL.owners_of_accounts, source.env, source.channel, list(accounts))
    return {row["account"]: (row["organization_id"], row["sender_id"]) for row in rows}


class NamedMessage(NamedTuple):
    """Whose message a reference names, of a channel that the source carries."""

    organization_id: str
    id: str
    channel: str


async def messages_named(
    executor: Executor, source: Source, asked: Sequence[tuple[str, str | None]]
) -> list[NamedMessage | None]:
    """The message of each, named by the provider's id or by ours, and by the account where it was told."""
    if not asked:
        return []
    rows = await executor.fetch(
        SQL.messages_named, carried_by(source.channel), source.adapter, source.env, *columns(list(asked), 2)
    )
    found: dict[int, NamedMessage] = {}
    for row in rows:
        found.setdefault(row["n"], NamedMessage(row["organization_id"], row["message_id"], row["channel"]))
    return [found.get(n) for n in range(1, len(asked) + 1)]


async def reported_messages(executor: Executor, keys: Sequence[tuple[str, str, str, str]]) -> list[ReportedMessage]:
    """Those of these messages, by organization, environment, channel and id, whose recipient is still known."""
    rows = await executor.fetch(SQL.reported_messages, *columns(list(keys), 4))
    return [
        ReportedMessage(
            row["organization_id"],
            row["env"],
            row["channel"],
            row["id"],
            row["recipient"],
            row["status"],
            row["contact_id"],
            row["outcome_certain"] is False,
        )
        for row in rows
    ]


async def uncertain_calls(executor: Executor, source: Source, ids: Sequence[str]) -> list[UncertainCall]:
    """Those of these messages whose outcome is unknown, locked."""
    rows = await executor.fetch(SQL.uncertain_calls, carried_by(source.channel), source.env, list(ids))
    return [
        UncertainCall(
            row["organization_id"], row["id"], row["attempts"], row["claimed_epoch"], row["claimed_at"], row["channel"]
        )
        for row in rows
    ]


async def claim_inbound(executor: Executor, rows: Sequence[InboundRow]) -> set[str]:
    """Take the provider ids of inbound messages; answers the ids of those that were new (C28.1)."""
    given = [(row.organization_id, row.sender_id, row.provider_message_id, row.id) for row in rows]
    return {row["id"] for row in await executor.fetch(SQL.claim_inbound, *columns(given, 4))}


async def store_inbound(executor: Executor, rows: Sequence[InboundRow], now: datetime) -> None:
    """Store inbound messages that are new, and open their windows where the channel has some."""
    arguments = columns(
        [
            (
                row.organization_id,
                row.env,
                row.channel,
                row.id,
                row.sender_id,
                row.sender,
                row.sender_hash,
                row.type,
                row.payload,
                row.provider_message_id,
                row.at,
                row.contact_id,
                row.link_origin,
            )
            for row in rows
        ],
        13,
    )
    with_windows = [channel for channel, policy in POLICIES.items() if policy.opens_window]
    await executor.execute(SQL.store_inbound, *arguments, now, with_windows)


async def inbound_quoted(executor: Executor, wanted: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """Ids of inbound messages by (organization, sender, provider message id)."""
    rows = await executor.fetch(SQL.quoted_inbound, *columns(list(wanted), 3))
    return {(row["organization_id"], row["sender_id"], row["provider_message_id"]): row["message_id"] for row in rows}


async def inbound_of(executor: Executor, organization_id: str, sender_id: str, provider_message_id: str) -> str | None:
    """The message that a provider's inbound id became."""
    found: str | None = await executor.fetchval(SQL.inbound_of, organization_id, sender_id, provider_message_id)
    return found


async def park(executor: Executor, rows: Sequence[ParkedRow]) -> None:
    """Keep reports for another try."""
    arguments = columns(
        [(*row.source, row.organization_id, row.sender_id, row.event, row.retry_at, row.give_up_at) for row in rows], 8
    )
    await executor.execute(SQL.park, *arguments)


async def take_parked(executor: Executor, now: datetime, limit: int) -> list[Mapping[str, Any]]:
    """Take reports out for another try."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.take_parked, now, limit)
    return rows


async def put_off(executor: Executor, now: datetime, retry_at: datetime) -> bool:
    """Let the report that `take_parked` would take first wait; True when its time was over and it is gone instead."""
    return bool(await executor.fetchval(SQL.put_off, now, retry_at))


async def take_sandbox(executor: Executor, now: datetime, limit: int) -> list[Mapping[str, Any]]:
    """Take out the sandbox's reports that are due, each with its message's `channel` and `env`."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.take_sandbox, now, limit, list(POLICIES))
    return rows


async def next_sandbox(executor: Executor) -> datetime | None:
    """When the sandbox's next report is due."""
    found: datetime | None = await executor.fetchval(SQL.next_sandbox)
    return found


async def store_callbacks(executor: Executor, rows: Sequence[CallbackRow]) -> None:
    """Store callbacks; a repeat of the same bytes is left out (C29.5)."""
    arguments = columns(
        [(row.channel, row.adapter, row.sha256, row.body, row.received_at, row.headers) for row in rows], 6
    )
    await executor.execute(SQL.store_callbacks, *arguments)


async def open_callbacks(
    executor: Executor, limit: int, size: int, *, but: Sequence[int] = (), but_of: Sequence[str] = (), after: int = 0
) -> list[Mapping[str, Any]]:
    """The oldest callbacks that are not processed yet, of about `size` bytes together, one at least.

    `but`: these are left out, `but_of` all of these sources, each as `channel/adapter`, and `after` all up to this one.
    """
    given = limit, size, list(but), list(but_of), after
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.open_callbacks, *given)
    return rows


async def newest_open(executor: Executor) -> int:
    """The last callback that is not processed yet; 0 where there is none."""
    newest: int = await executor.fetchval(SQL.newest_open)
    return newest


async def open_callback(executor: Executor, callback_id: int) -> Mapping[str, Any] | None:
    """One that is not processed yet."""
    row: Mapping[str, Any] | None = await executor.fetchrow(SQL.open_callback, callback_id)
    return row


async def callbacks_processed(executor: Executor, results: Sequence[tuple[int, str | None]], now: datetime) -> None:
    """Mark callbacks done; the second value says what was wrong with one that could not be read."""
    await executor.execute(SQL.callbacks_processed, *columns(list(results), 2), now)


async def purge_callbacks(executor: Executor, before: datetime, *, block: int = 5_000) -> int:
    """Delete the callbacks that came before a moment, in blocks; answers how many."""
    return await in_blocks(executor, SQL.purge_callbacks, before, block=block)
