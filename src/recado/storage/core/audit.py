"""The audit: who did what to what, written in the transaction that does it (C24.5). Append only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.core.ids import AUDIT, IdSource, created_at
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import load

SQL = load("audit")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One deed. `env` None: it concerns the organization itself. `details` never holds personal data or secrets."""

    organization_id: str
    id: str
    env: str | None
    actor_type: str
    actor_id: str
    action: str
    target_id: str | None
    ip: str | None
    request_id: str | None
    details: Mapping[str, Any]

    @property
    def at(self) -> datetime:
        return created_at(self.id)


@dataclass(frozen=True, slots=True)
class AuditPrincipal:
    """Who does it: `type` is account, key, admin or system."""

    type: str
    id: str
    ip: str | None = None
    request_id: str | None = None


SYSTEM = AuditPrincipal("system", "system")

read = reader(AuditEntry)


async def write(
    connection: Executor,
    ids: IdSource,
    actor: AuditPrincipal,
    action: str,
    *,
    organization_id: str,
    env: str | None,
    target_id: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add one entry; `action` is `<resource>.<verb>`, such as `api_key.revoke`."""
    entry = entry_of(ids, actor, action, organization_id=organization_id, env=env, target_id=target_id, details=details)
    await append(connection, entry)


def entry_of(
    ids: IdSource,
    actor: AuditPrincipal,
    action: str,
    *,
    organization_id: str,
    env: str | None,
    target_id: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """One entry to `append`: made before its transaction, it is the same when that runs again."""
    return AuditEntry(
        organization_id,
        ids.new(AUDIT),
        env,
        actor.type,
        actor.id,
        action,
        target_id,
        actor.ip,
        actor.request_id,
        dict(details or {}),
    )


async def append(connection: Executor, entry: AuditEntry) -> None:
    """Add an entry, once."""
    await connection.execute(
        SQL.insert,
        entry.organization_id,
        entry.id,
        entry.env,
        entry.actor_type,
        entry.actor_id,
        entry.action,
        entry.target_id,
        entry.ip,
        entry.request_id,
        entry.details,
    )


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    first_id: str,
    before_id: str,
    action: str | None = None,
    actor_id: str | None = None,
    target_id: str | None = None,
    limit: int,
) -> list[AuditEntry]:
    """Newest first, ids in [first_id, before_id)."""
    rows = await executor.fetch(SQL.page, organization_id, env, first_id, before_id, action, actor_id, target_id, limit)
    return [read(row) for row in rows]
