"""Audit entries of what calls do (C24.5)."""

from collections.abc import Mapping
from typing import Any

from recado.domain.core.ids import IdSource
from recado.http.api.call import Call
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.statements.rows import Executor

# Anyone who may let phones out in the clear is found in the audit by this one action.
PII_GRANT = "pii_full.grant"


def actor_of(call: Call) -> AuditPrincipal:
    """Who called, from where, in which request."""
    principal = call.principal
    return AuditPrincipal(principal.actor_type, principal.actor_id, ip=call.client_ip, request_id=call.request_id)


async def record(
    connection: Executor,
    ids: IdSource,
    call: Call,
    action: str,
    target_id: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Note what `call` does to a record of its organization and environment, in the transaction that does it."""
    await audit.write(
        connection,
        ids,
        actor_of(call),
        action,
        organization_id=call.principal.organization_id,
        env=call.principal.env,
        target_id=target_id,
        details=details,
    )
