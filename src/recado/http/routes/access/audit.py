"""The audit log, newest first (C24.5)."""

from typing import Annotated, Any

from pydantic import Field

from recado.domain.core.ids import AUDIT, lowest_id
from recado.domain.core.retention import AUDIT_MONTHS, months_before
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CursorPage, CursorQuery, PeriodQuery, items_of
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.views import view_of
from recado.http.wire.reply import Reply
from recado.storage.core import audit
from recado.storage.core.audit import AuditEntry

OPERATION = "listAudit"

Text = Annotated[str, Field(min_length=1, max_length=128)]


class AuditQuery(CursorQuery, PeriodQuery):
    """Filters of the audit; `from` is included, `to` is not."""

    action: Text | None = None
    actor_id: Text | None = None
    target_id: Text | None = None


class AuditActor(ApiModel):
    """Who did it."""

    type: str
    id: str


class AuditEntryOut(ApiModel):
    """One deed."""

    id: str
    at: Timestamp
    actor: AuditActor
    action: str
    target_id: str | None = None
    ip: str | None = None
    request_id: str | None = None
    details: dict[str, Any]


class AuditPage(CursorPage[AuditEntryOut]):
    """Entries, newest first."""


entry_view = view_of(AuditEntry, AuditEntryOut, actor=lambda entry: {"type": entry.actor_type, "id": entry.actor_id})


def audit_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """Entries of the caller's environment, and those of the organization itself."""

    cursors = dependencies.cursors

    async def list_entries(call: Call) -> Reply:
        query: AuditQuery = call.query
        first, before = query.ids(AUDIT)
        first = max(first, lowest_id(AUDIT, months_before(call.now, AUDIT_MONTHS)))
        after_page = cursors.read(call, OPERATION)
        if after_page is not None:
            before = min(before, after_page[0])
        entries = await audit.list_page(
            dependencies.database,
            call.principal.organization_id,
            call.principal.env,
            first_id=first,
            before_id=before,
            action=query.action,
            actor_id=query.actor_id,
            target_id=query.target_id,
            limit=query.limit + 1,
        )
        items = items_of(call, entries, entry_view)
        return Reply(200, await cursors.page(call, OPERATION, items, lambda entry: [entry.id]))

    return (
        Route(
            method="GET",
            path="/v2/audit",
            handler=list_entries,
            operation_id=OPERATION,
            summary="List what was done, by whom",
            tag="Audit",
            scope="audit:read",
            rate_class="read",
            query=AuditQuery,
            responses={200: AuditPage},
        ),
    )
