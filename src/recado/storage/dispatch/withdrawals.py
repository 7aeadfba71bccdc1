"""Queued messages that must not leave: of who opted out, of deleted contacts, of what is over (C12.5.3, C12.6, C9.12).

They end in blocks: the first in the commit of the refusal or the deletion, which notes who has more; the others after
it (`withdrawals.py`), as do all of a journey. What is being sent is not touched: its row is claimed, or waits for its
repeat, and the claim asks for consent itself. Of an execution that ends it is noted, and ends if it comes back.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.channels.policies import states_before, withdrawn_as
from recado.domain.messages.message import Cause, FailureCode, MessageEvent, MessageStatus
from recado.domain.messages.withdrawal import ENDLESS, Withdrawal, WithdrawalKind
from recado.storage.core.statements.moves import Moved, left, withdrawn
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("withdrawals")

BLOCK = 500
"""Messages that end in one commit: with an event each, they hold the event loop for some 10 ms."""

Recipient = tuple[str, str, int]
"""Organization, environment, `recipient_hash`."""

_OPTED_OUT: Final = Cause(FailureCode.OPTED_OUT, "the contact opted out")
_DELETED: Final = Cause(FailureCode.WITHDRAWN, "the contact was deleted")
_ARCHIVED: Final = Cause(FailureCode.WITHDRAWN, "its journey was archived before it was sent")
_ENDED: Final = Cause(FailureCode.WITHDRAWN, "its execution ended before it was sent")
LATE_TURNS: Final = timedelta(minutes=1)
"""How long after a journey was archived a turn of its executions may still commit: it has read the journey before."""
_ENDLESS: Final = 2**31 - 1


def refusals(recipients: Sequence[Recipient], before_id: str) -> list[Withdrawal]:
    """What is withdrawn of people who opt out: whatever waits for each of them, in the order of their names."""
    return [
        Withdrawal(organization_id, env, WithdrawalKind.OPTED_OUT, str(consent_hash), before_id)
        for organization_id, env, consent_hash in sorted(set(recipients))
    ]


async def opted_out(
    connection: Executor, refused: Sequence[Withdrawal], now: datetime, *, limit: int, noted: bool = False
) -> list[Moved]:
    """Fail a block of what is queued for these recipients and subject to consent: its `dispatch` has a `consent_hash`.

    `noted`: also of those who are noted; else whoever notes them goes on with them.
    Run it in a transaction, and write what follows of the moves in the same one: it releases what they held.
    """
    if not refused:
        return []
    sources = states_before(MessageEvent.OPTED_OUT)
    cause = _OPTED_OUT
    rows = await connection.fetch(
        SQL.opted_out, *_recipients(refused), now, cause.last_error, sources, limit, noted, cause.code
    )
    return [
        left(row, row["env"], row["channel"], MessageStatus.QUEUED.value, MessageStatus.FAILED.value) for row in rows
    ]


async def left_of(
    connection: Executor, refused: Sequence[Withdrawal], *, count: int = _ENDLESS
) -> dict[Withdrawal, int]:
    """For which of them more is queued, and how many: no more than `count` are counted of each."""
    if not refused:
        return {}
    rows = await connection.fetch(SQL.left, *_recipients(refused), count)
    counts = {(row["organization_id"], row["env"], str(row["consent_hash"])): row["n"] for row in rows}
    found = [(each, counts.get((each.organization_id, each.env, each.name))) for each in refused]
    return {each: n for each, n in found if n}


async def of_contact(
    connection: Executor,
    organization_id: str,
    env: str,
    contact_id: str,
    now: datetime,
    *,
    after_id: str = "",
    limit: int,
) -> tuple[list[Moved], str | None]:
    """Archive a block of what is queued for a contact by its id, after a message; run it as `opted_out`.

    Answers also after which message the next block begins, None when there is none.
    """
    waiting = [*states_before(MessageEvent.WITHDRAWN), *states_before(MessageEvent.REPEAT)]
    found = await connection.fetch(SQL.waiting_of_contact, organization_id, env, contact_id, after_id, waiting, limit)
    if not found:
        return [], None
    ids = [row["id"] for row in found]
    moved = await of_messages(connection, organization_id, env, ids, now, _DELETED)
    return moved, ids[-1] if len(ids) == limit else None


def of_archived(organization_id: str, env: str, owner: str) -> Withdrawal:
    """What is withdrawn of a journey that is archived, or of a test of it: what waits, and what a turn still adds."""
    return Withdrawal(organization_id, env, WithdrawalKind.ARCHIVED, owner, ENDLESS)


async def of_journeys(
    connection: Executor, archived: Sequence[Withdrawal], now: datetime, *, limit: int
) -> list[Moved]:
    """Archive a block of what is queued of these journeys of one environment; run it as `opted_out`."""
    (organization_id, env) = _place_of(archived)
    found = await connection.fetch(SQL.waiting_of_journeys, organization_id, [each.name for each in archived], limit)
    ids = sorted(row["id"] for row in found)
    return await of_messages(connection, organization_id, env, ids, now, _ARCHIVED) if ids else []


async def left_of_journeys(connection: Executor, archived: Sequence[Withdrawal], now: datetime) -> set[Withdrawal]:
    """Of which of these journeys, of one environment, something may still have to be withdrawn."""
    names = [each.name for each in archived]
    rows = await connection.fetch(SQL.left_of_journeys, *_place_of(archived), names, now - LATE_TURNS)
    left = {row["journey_id"] for row in rows}
    return {each for each in archived if each.name in left}


async def of_ended(
    connection: Executor, organization_id: str, env: str, ids: Sequence[str], now: datetime
) -> tuple[list[Moved], list[Withdrawal]]:
    """Archive what is queued of these messages, in the order of their ids, whose executions end; run it as `opted_out`.

    Answers also those that a call has in hand: they are noted, and archived if they come back.
    """
    moved = await of_messages(connection, organization_id, env, ids, now, _ENDED)
    left = await _in_hand(connection, organization_id, env, ids)
    await note(connection, left)
    return moved, left


async def of_recalled(
    connection: Executor, recalled: Sequence[Withdrawal], now: datetime
) -> tuple[list[Moved], set[Withdrawal]]:
    """Archive those of these messages of one environment that have come back; answers those that still may."""
    where, ids = _place_of(recalled), sorted(each.name for each in recalled)
    moved = await of_messages(connection, *where, ids, now, _ENDED)
    return moved, set(await _in_hand(connection, *where, ids))


async def _in_hand(connection: Executor, organization_id: str, env: str, ids: Sequence[str]) -> list[Withdrawal]:
    """Those of these messages, of which what is queued was archived just now, that a call may give back."""
    rows = await connection.fetch(SQL.in_hand, organization_id, list(ids))
    return [Withdrawal(organization_id, env, WithdrawalKind.RECALLED, row["id"], ENDLESS) for row in rows]


def _place_of(withdrawals: Sequence[Withdrawal]) -> tuple[str, str]:
    ((organization_id, env),) = {(each.organization_id, each.env) for each in withdrawals}
    return organization_id, env


async def of_messages(
    connection: Executor, organization_id: str, env: str, ids: Sequence[str], now: datetime, cause: Cause
) -> list[Moved]:
    """Archive those of these messages, in the order of their ids, that are queued; run it as `opted_out`."""
    sources = states_before(MessageEvent.WITHDRAWN)
    rows = await connection.fetch(
        SQL.of_contact, organization_id, env, list(ids), now, cause.last_error, sources, cause.code, withdrawn_as()
    )
    return [withdrawn(row, env) for row in rows]


async def note(connection: Executor, withdrawals: Sequence[Withdrawal]) -> None:
    """Something is left of these, each once: noted in the commit that withdrew the first of it."""
    if withdrawals:
        await connection.execute(SQL.note, *_columns(withdrawals))


async def noted(executor: Executor) -> list[Withdrawal]:
    """All of whom something may be left."""
    return [_read(row) for row in await executor.fetch(SQL.noted)]


async def next_ones(executor: Executor, limit: int) -> list[Withdrawal]:
    """The first `limit` of each environment and kind, one group after the other."""
    return [_read(row) for row in await executor.fetch(SQL.next, limit)]


async def finish(connection: Executor, withdrawals: Sequence[Withdrawal]) -> None:
    """Nothing is left of these, in the commit that withdrew the last of it."""
    if withdrawals:
        await connection.execute(SQL.finish, *_columns(withdrawals))


def _read(row: Any) -> Withdrawal:
    return Withdrawal(row["organization_id"], row["env"], WithdrawalKind(row["kind"]), row["name"], row["before_id"])


def _columns(withdrawals: Sequence[Withdrawal]) -> list[list[Any]]:
    """In the order of their keys, in which everybody locks them."""
    rows = sorted((w.organization_id, w.env, w.kind.value, w.name, w.before_id) for w in withdrawals)
    return columns(rows, 5)


def _recipients(refused: Sequence[Withdrawal]) -> list[list[Any]]:
    return columns([(each.organization_id, each.env, int(each.name), each.before_id) for each in refused], 4)
