"""What a caller may do to a message that exists: force, archive (each with its entry in the audit) or open it.

Guards stand in the statements: a message that moved on meanwhile is left alone, which is a normal outcome.
"""

from datetime import datetime

from recado.domain.channels.policies import (
    GENERIC_CHANNELS,
    PASSED_BY_FORCE,
    POLICIES,
    channels_that_know,
    states_before,
    withdrawn_as,
)
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import Cause, FailureCode, MessageEvent, MessageStatus
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.moves import Effects, Moved, withdrawn
from recado.storage.messages.messages import SQL

_PASSED_BY_FORCE = [reason.value for reason in PASSED_BY_FORCE]
_WITHDRAWN = Cause(FailureCode.WITHDRAWN, "archived before it was sent")


async def force(
    db: Database,
    ids: IdSource,
    actor: audit.AuditPrincipal,
    organization_id: str,
    env: str,
    message_id: str,
    now: datetime,
) -> bool:
    """Let a queued message pass its schedule, quiet hours and the token bucket (C14.5); False unless it was queued."""
    async with db.transaction() as connection:
        message = (organization_id, env, message_id)
        moved = await connection.fetchval(SQL.force, *message, now, MessageStatus.QUEUED, _PASSED_BY_FORCE)
        if moved is not None:
            await _record(connection, ids, actor, "message.force", organization_id, env, message_id, "queued")
    return moved is not None


async def open_inbound(
    db: Database, organization_id: str, env: str, channel: str, message_id: str, now: datetime
) -> bool:
    """Record that a person reads a message that came in (C15.4); False when it was read before, or went out."""
    sources = sorted(POLICIES[channel].machine.sources(MessageEvent.OPENED))
    opened = await db.fetchval(SQL.open_inbound, organization_id, env, channel, message_id, now, sources)
    return opened is not None


async def archive(
    db: Database,
    ids: IdSource,
    actor: audit.AuditPrincipal,
    organization_id: str,
    env: str,
    message_id: str,
    now: datetime,
    effects: Effects,
) -> bool:
    """Withdraw a queued message, or put a failed one away (C15.4); False when it is in neither state."""
    async with db.transaction() as connection:
        moved = await _withdraw(connection, organization_id, env, message_id, now)
        if moved is None:
            moved = await _put_away(connection, organization_id, env, message_id, now)
        if moved is None:
            return False
        committed = await effects.write(connection, [moved])
        await _record(
            connection, ids, actor, "message.archive", organization_id, env, message_id, str(moved.from_status)
        )
    committed()
    return True


async def _withdraw(
    connection: Connection, organization_id: str, env: str, message_id: str, now: datetime
) -> Moved | None:
    # `dispatch` is touched first: it is what a claim in progress locks.
    message, sources = (organization_id, env, message_id), states_before(MessageEvent.WITHDRAWN)
    cause = (_WITHDRAWN.last_error, sources, _WITHDRAWN.code)
    row = await connection.fetchrow(SQL.archive_queued, *message, now, *cause, withdrawn_as())
    return None if row is None else withdrawn(row, env)


async def _put_away(
    connection: Connection, organization_id: str, env: str, message_id: str, now: datetime
) -> Moved | None:
    row = await connection.fetchrow(
        SQL.archive_failed,
        organization_id,
        env,
        [channel for channel in channels_that_know(MessageEvent.ARCHIVE) if channel in GENERIC_CHANNELS],
        message_id,
        now,
        states_before(MessageEvent.ARCHIVE),
    )
    if row is None:
        return None
    return Moved(
        organization_id,
        env,
        row["channel"],
        message_id,
        MessageStatus.FAILED.value,
        MessageStatus.ARCHIVED.value,
        batch_id=row["batch_id"],
        campaign_id=row["campaign_id"],
    )


async def _record(
    connection: Connection,
    ids: IdSource,
    actor: audit.AuditPrincipal,
    action: str,
    organization_id: str,
    env: str,
    message_id: str,
    before: str,
) -> None:
    await audit.write(
        connection,
        ids,
        actor,
        action,
        organization_id=organization_id,
        env=env,
        target_id=message_id,
        details={"status": before},
    )
