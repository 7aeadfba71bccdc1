"""Queued messages that must not leave any more: of anyone who opted out, and of deleted contacts (C12.5.3, C12.6).

What is being sent is not touched: its row is claimed, or waits for its repeat, and the claim asks for consent itself.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from recado.domain.message import MESSAGE_MACHINE, FailureCode, MessageEvent, MessageStatus, last_error
from recado.storage.moves import Moved, left
from recado.storage.rows import Executor, columns
from recado.storage.sql import load

SQL = load("withdrawals")

Recipient = tuple[str, str, int]
"""Organization, environment, `recipient_hash`."""

_OPTED_OUT = last_error(FailureCode.OPTED_OUT, "the contact opted out")
_DELETED = last_error(FailureCode.WITHDRAWN, "the contact was deleted")


async def opted_out(connection: Executor, recipients: Sequence[Recipient], now: datetime) -> list[Moved]:
    """Fail what is queued for these recipients and subject to consent: those rows of `dispatch` have a `consent_hash`.

    Run it in a transaction, and write what follows of the moves in the same one: it releases what they held.
    """
    if not recipients:
        return []
    rows = await connection.fetch(
        SQL.opted_out, *columns(sorted(set(recipients)), 3), now, _OPTED_OUT, _sources(MessageEvent.OPTED_OUT)
    )
    return [_moved(row, MessageStatus.FAILED) for row in rows]


async def of_contact(
    connection: Executor, organization_id: str, env: str, contact_id: str, now: datetime
) -> list[Moved]:
    """Archive whatever is queued for a contact by its id; run it as `opted_out`."""
    rows = await connection.fetch(
        SQL.of_contact,
        organization_id,
        env,
        contact_id,
        now,
        _DELETED,
        _sources(MessageEvent.WITHDRAWN),
        _sources(MessageEvent.REPEAT),
    )
    return [_moved(row, MessageStatus.ARCHIVED) for row in rows]


def _moved(row: Any, status: MessageStatus) -> Moved:
    return left(row, row["env"], row["channel"], MessageStatus.QUEUED.value, status.value)


def _sources(event: MessageEvent) -> list[str]:
    return sorted(MESSAGE_MACHINE.sources(event))
