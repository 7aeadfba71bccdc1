"""Exports: all messages of a channel and a period, with what they belong to (C18)."""

from collections.abc import Awaitable
from functools import partial
from typing import Any

from recado.domain.access.scopes import PII
from recado.domain.channels.exported import EXPORTED, Exported, period
from recado.domain.core.retention import MESSAGES_MONTHS, months_before
from recado.engine.turns import turns
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems, each
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.messages.export_models import ExportPage, ExportQuery
from recado.http.routes.messages.export_view import export_view
from recado.http.wire.rendering import JSON
from recado.http.wire.reply import Reply, StreamReply
from recado.storage.core.statements.rows import Page
from recado.storage.messages import message_exports
from recado.storage.messages.message_exports import ExportedMessage, ExportedPeriod


class ExportOperations:
    """The handler of each channel's."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._database = dependencies.database
        self._cursors = dependencies.cursors

    async def page(self, export: Exported, call: Call) -> Reply:
        """The rows that the query asks for. What cannot be read at once is sent while it is read (C5.7)."""
        query: ExportQuery = call.query
        name = operation_of(export)
        after = self._cursors.read(call, name)  # first: of a cursor with other filters, that alone is told
        start, end = period(query.from_, query.to)
        principal = call.principal
        wanted = ExportedPeriod(
            organization_id=principal.organization_id,
            env=principal.env,
            channel=export.channel,
            start=max(start, months_before(call.now, MESSAGES_MONTHS)),
            end=end,
        )
        read = partial(message_exports.list_page, self._database, wanted)

        def rest(last: ExportedMessage, left: int) -> Awaitable[Page[ExportedMessage]]:
            return read(limit=left, before_id=last.id)

        first = await read(limit=query.limit, before_id=None if after is None else after[0])
        await turns.next()  # a thousand rows take the loop for milliseconds
        items = PageItems(first, each(export_view(export, unmasked=call.can(PII))), rest, query.limit)

        def members() -> dict[str, Any]:
            last = items.last if items.more else None
            return {"nextCursor": None if last is None else self._cursors.write(call, name, [last.id])}

        if items.at_hand:
            return Reply(200, {"items": await items.up_to(), **members()})
        return StreamReply(200, items.sent(members), content_type=JSON)


def operation_of(export: Exported) -> str:
    """The name of a channel's operation: `exportSms`."""
    return f"export{export.channel.capitalize()}"


def export_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """One operation of each channel."""
    operations = ExportOperations(dependencies)
    return tuple(
        Group("Exports", export.scope).route(
            f"GET /v2/exports/{export.channel}", operation_of(export), f"Export {export.what}, newest first",
            partial(operations.page, export),
            query=ExportQuery, responses={200: ExportPage}, rate_class="bulk",
            errors=("VALIDATION_ERROR", "PERIOD_TOO_LONG"),
            description=(
                "All of the period that the environment of the credential has. Pass `nextCursor` back, with the same "
                "period, until it is null: each page costs the same, and nothing comes twice. What is made after the "
                "first page comes on none."
            ),
        )
        for export in EXPORTED
    )  # fmt: skip
