"""Suppressions: listed, added, removed (C10.5). Bounces and complaints will add them, too."""

from dataclasses import dataclass

from recado.domain.contacts.contact import email_hash
from recado.domain.core.ids import EMAIL_SUPPRESSION
from recado.domain.email.suppression import SuppressionReason
from recado.http.api.call import Call
from recado.http.api.route import Route, as_modelled
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.routes.email.suppression_models import (
    SuppressionCreate,
    SuppressionOut,
    SuppressionPage,
    SuppressionQuery,
    suppression_view,
)
from recado.http.wire.reply import Reply
from recado.storage.email import suppressions
from recado.storage.email.suppressions import SUPPRESSIONS, EmailSuppression


@dataclass(frozen=True, slots=True)
class SuppressionOperations:
    """What is particular to suppressions: they are found by hash, and adding one twice is adding it once."""

    suppressed: Resource[EmailSuppression]

    async def list_page(self, call: Call) -> Reply:
        organization_id, email = call.principal.organization_id, call.query.email
        hashed = None if email is None else email_hash(organization_id, email)
        return await self.suppressed.listing(lambda _: (hashed,))(call)

    async def add(self, call: Call) -> Reply:
        new = EmailSuppression(**self.suppressed.born(call), email=call.body.email, reason=SuppressionReason.MANUAL)
        async with self.suppressed.database.transaction() as connection:
            stored, made = await suppressions.add(connection, new)
            if made:
                await self.suppressed.note(connection, call, "email_suppression.create", stored)
        return await self.suppressed.reply(call, stored, 201 if made else 200)


def suppression_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """The operations on suppressions."""
    suppressed = Resource(
        dependencies=dependencies,
        table=SUPPRESSIONS,
        path="/v2/email/suppressions/{id}",
        prefix=EMAIL_SUPPRESSION,
        name="email_suppression",
        group=Group("E-mail", "email:read", "email:write"),
        out=SuppressionOut,
        page=SuppressionPage,
        views=each(suppression_view),
    )
    operations = SuppressionOperations(suppressed)
    return (
        suppressed.route(
            "GET /v2/email/suppressions", "listEmailSuppressions", "List addresses that get no e-mail, newest first",
            operations.list_page, query=SuppressionQuery,
        ),
        suppressed.route(
            "POST /v2/email/suppressions", "createEmailSuppression", "Suppress an address", operations.add,
            body=SuppressionCreate, responses={201: SuppressionOut, 200: SuppressionOut}, examine=as_modelled,
            description="Of an address that is suppressed already its entry is answered, with 200.",
        ),
        suppressed.route(
            "DELETE /v2/email/suppressions/{id}", "deleteEmailSuppression", "Let an address get e-mail again",
            suppressed.delete, description="It takes back no opt-out.",
        ),
    )  # fmt: skip
