"""The queue: claims, holds and releases, each one statement for many rows. Settlements are in `settlements.py`.

A row of `dispatch` is the lock of its message: every move of a queued or sending message touches it first. All moves
are guarded by the states that they may leave (C15.4); rows that another was faster with are left out of the answer.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from recado.domain.channels.address import Address, AddressKind
from recado.domain.channels.policies import states_before
from recado.domain.channels.policy import Obeys
from recado.domain.journeys.belonging import QueueOwner
from recado.domain.messages.message import MessageEvent
from recado.domain.senders.sender import SenderKey
from recado.storage.contacts.opt_outs import by_email, pack_spellings, texts
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements import fence
from recado.storage.core.statements.rows import Executor, affected, columns, in_order, pack, pack_moments, pack_numbers
from recado.storage.core.statements.sql import load
from recado.storage.messages.messages import CLAIMED_AS

SQL = load("dispatch", owner=fence.owner("$6"))

CLAIM_BY_EMAIL = by_email(SQL.claim, place=13)
_CLAIMABLE = [*states_before(MessageEvent.CLAIM), *states_before(MessageEvent.REPEAT)]
_NOBODY: list[Any] = [None, None, None, CLAIMED_AS]

BLOCK = 1_000
OF_EACH, MOST_SENDERS = 200, 500
MOST_HEADS = 64  # of a sender: more owners take their turns in its lane


@dataclass(slots=True, eq=False)
class Claim:
    """A row about to be claimed. `at`: when that was decided, which tells this claim of the row from every other.

    `free_form`: it may be claimed only while its window is open. `counts`: its recipient, toward its number's tier.
    """

    organization_id: str
    id: str
    recipient_hash: int
    free_form: bool
    at: datetime
    asks: tuple[str, Address] | None = None  # environment and address of whose consent is asked for: nobody's
    counts: bool = False


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A gate of the message's own holds it back."""

    organization_id: str
    id: str
    not_before: datetime
    reason: str


class Head(NamedTuple):
    """A ready row that stands first: of a class and an owner, or of those that are forced."""

    klass: int
    owner: str
    id: str
    force: bool


CLAIMED, LOST, WINDOW_CLOSED, OPTED_OUT = "claimed", "lost", "window_closed", "opted_out"
IN_WINDOW = "in_window"
"""Claimed as well: a template into an open window, which counts toward no tier."""
OVERTAKEN = "overtaken"
"""Not claimed, and never will be: another process owns the numbers."""


async def claim(db: Database, rows: Sequence[Claim], epoch: int, now: datetime) -> list[str]:
    """queued → sending for the rows that are still to be had; a repeat is `sending` already.

    `claimed`, `in_window`, `lost`, `window_closed` or `opted_out` for each; `overtaken` for all.
    """
    ordered = sorted(rows, key=in_order)
    arguments = (
        pack([row.organization_id for row in ordered]),
        pack([row.id for row in ordered]),
        pack_numbers([row.recipient_hash for row in ordered]),
        pack_numbers([row.free_form + 2 * row.counts for row in ordered]),
        pack_moments([row.at for row in ordered]),
    )
    statement, consent = SQL.claim, _NOBODY
    if any(row.asks is not None for row in ordered):
        asks = [row.asks or (None, None) for row in ordered]
        phones = texts([address for _, address in asks], AddressKind.PHONE)
        emails = texts([address for _, address in asks], AddressKind.EMAIL)
        consent = [[env for env, _ in asks], phones, pack_spellings(phones), CLAIMED_AS]
        if any(emails):
            statement, consent = CLAIM_BY_EMAIL, [*consent, emails]
    left = {
        record["id"]: record["verdict"]
        for record in await db.months.fetch(
            db.hot, statement, [row.id for row in ordered], *arguments, epoch, now, _CLAIMABLE, *consent
        )
    }
    return [left.get(row.id, CLAIMED) for row in rows] if left else [CLAIMED] * len(rows)


async def hold(db: Database, rows: Sequence[HeldRow]) -> None:
    """Take rows out of the ready index until their moment comes."""
    ordered = sorted(rows, key=in_order)
    arguments = columns([(row.organization_id, row.id, row.not_before, row.reason) for row in ordered], 4)
    await db.hot.fetch(SQL.hold, *arguments)


async def hold_template(db: Database, organization_id: str, sender_id: str, template_id: str) -> int:
    """Hold one block of the ready rows that wait for this template; answers how many."""
    return len(await db.fetch(SQL.hold_template, organization_id, sender_id, template_id, BLOCK))


async def release(
    executor: Executor,
    organization_id: str,
    sender_id: str,
    reason: str,
    template_id: str | None = None,
    owner: str | None = None,
) -> int:
    """Make one block of the rows that wait for this reason ready again; answers how many."""
    return len(await executor.fetch(SQL.release, organization_id, sender_id, reason, template_id, BLOCK, owner))


async def release_due(executor: Executor, now: datetime) -> list[SenderKey]:
    """Make one block of the rows whose moment has come ready; answers the sender of each."""
    return [_sender(row) for row in await executor.fetch(SQL.release_due, now, BLOCK)]


async def release_of_each(executor: Executor, now: datetime) -> list[SenderKey]:
    """Make some of the scheduled rows whose moment has come ready, of each sender; answers the sender of each.

    As many as a sender with the highest pace sends before its next turn comes.
    """
    rows = await executor.fetch(SQL.release_of_each, now, OF_EACH, 2 * OF_EACH, MOST_SENDERS)
    return [_sender(row) for row in rows]


async def ready_senders(executor: Executor) -> list[SenderKey]:
    """Every sender with a row ready."""
    return [_sender(row) for row in await executor.fetch(SQL.ready_senders)]


async def heads(executor: Executor, senders: Collection[SenderKey], due_until: datetime) -> dict[SenderKey, list[Head]]:
    """Where the ready rows of these senders begin, as far as they were due by then."""
    if not senders:
        return {}
    keys = {(sender.organization_id, sender.sender_id): sender for sender in senders}
    found: dict[SenderKey, list[Head]] = {}
    for organization_id, sender_id, *head in await executor.fetch(
        SQL.heads, *columns(list(keys), 2), due_until, MOST_HEADS
    ):
        found.setdefault(keys[organization_id, sender_id], []).append(Head(*head))
    return found


async def refill(
    executor: Executor, organization_id: str, sender_id: str, klass: int, after_owner: str, limit: int
) -> list[Mapping[str, Any]]:
    """The next ready rows of a class that are not forced, by owner, due time and id."""
    rows: list[Mapping[str, Any]] = await executor.fetch(
        SQL.refill, organization_id, sender_id, klass, after_owner, limit
    )
    return rows


async def forced(executor: Executor, organization_id: str, sender_id: str, limit: int) -> list[Mapping[str, Any]]:
    """The first ready rows that a caller forced, by due time and id."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.forced, organization_id, sender_id, limit)
    return rows


async def to_give_up(executor: Executor, claimed_before: datetime) -> list[Mapping[str, Any]]:
    """One block of messages whose outcome stayed unknown too long: keys, and `called_at` of the last call."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.give_up, claimed_before, BLOCK)
    return rows


async def expiring(executor: Executor, now: datetime) -> list[Mapping[str, Any]]:
    """One block of rows whose time to live may have run out."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.expiring, now, BLOCK)
    return rows


async def prolong(executor: Executor, rows: Sequence[tuple[str, str, datetime]]) -> int:
    """Move the expiry of (organization, id, expiry)."""
    return affected(await executor.execute(SQL.prolong, *columns(rows, 3)))


async def crashed(executor: Executor, organization_id: str, message_id: str) -> Mapping[str, Any] | None:
    """Count a failure of the actor with this row in hand; `crashes`."""
    row: Mapping[str, Any] | None = await executor.fetchrow(SQL.crashed, organization_id, message_id)
    return row


async def state(executor: Executor, organization_id: str, message_id: str) -> Mapping[str, Any] | None:
    """The row of a queued or sending message."""
    row: Mapping[str, Any] | None = await executor.fetchrow(SQL.state, organization_id, message_id)
    return row


async def ahead(
    executor: Executor, organization_id: str, sender_id: str, klass: int, due_at: datetime, message_id: str
) -> int:
    """Ready rows of the class before this one, counted up to 10,001."""
    count: int = await executor.fetchval(SQL.ahead, organization_id, sender_id, klass, due_at, message_id, 10_001)
    return count


async def uncertain_of_sender(
    executor: Executor, organization_id: str, sender_id: str, since: datetime
) -> list[datetime]:
    """When the last calls for the messages of the sender began whose outcome is unknown, since then."""
    rows = await executor.fetch(SQL.uncertain_of_sender, organization_id, sender_id, since)
    return [row["claimed_at"] for row in rows]


async def day_minutes(
    executor: Executor, organization_id: str, sender_id: str, now: datetime
) -> list[tuple[datetime, int]]:
    """(minute, sent) of the last 24 hours."""
    rows = await executor.fetch(SQL.day_minutes, organization_id, sender_id, now - timedelta(hours=24, minutes=1))
    return [(row["minute"], row["sent"]) for row in rows]


async def tier_recipients(
    executor: Executor, organization_id: str, sender_id: str, now: datetime
) -> list[tuple[int, datetime]]:
    """(recipient hash, last business-initiated message) of the last 24 hours, oldest first."""
    rows = await executor.fetch(SQL.tier_recipients, organization_id, sender_id, now - timedelta(hours=24))
    return [(row["recipient_hash"], row["last_at"]) for row in rows]


def _sender(row: Mapping[str, Any]) -> SenderKey:
    return SenderKey(row["organization_id"], row["env"], row["channel"], row["sender_id"])


async def again(
    connection: Executor,
    message: tuple[str, str, str, str],
    sender_id: str,
    *,
    details: str,
    units: int,
    coins: int,
    ttl: timedelta,
    obeys: Obeys,
    owner: QueueOwner,
    now: datetime,
) -> None:
    """Queue a message (organization, environment, channel, id) that had left, and is queued, for another sender.

    `details`: JSON text of what changes in its own; `coins`: what it holds; `owner`: whose it is there.
    """
    milliseconds = ttl // timedelta(milliseconds=1)
    arguments = (sender_id, details, units, coins, milliseconds, now, obeys.consent, obeys.quiet_hours, *owner)
    await connection.execute(SQL.again, *message, *arguments)
