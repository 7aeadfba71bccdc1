"""Senders of e-mail: made, listed, changed, verified, deleted (C10.4)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from recado.domain.core.errors import conflict
from recado.domain.core.ids import EMAIL_SENDER
from recado.domain.email.sender import EmailSenderStatus
from recado.http.api.call import Call
from recado.http.api.paging import PageQuery
from recado.http.api.route import Route, as_modelled
from recado.http.problems.provider_failures import answered_with_502
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.routes.email.sender_models import (
    EmailSenderCreate,
    EmailSenderOut,
    EmailSenderPage,
    EmailSenderPatch,
    sender_view,
)
from recado.http.wire.reply import Reply
from recado.services.email.sender_verification import SenderVerification
from recado.storage.core.statements.tables import lock_organization
from recado.storage.email import senders
from recado.storage.email.senders import SENDERS, EmailSender, stored_records

TOKEN_BYTES = 16


@dataclass(frozen=True, slots=True)
class EmailSenderOperations:
    """What is particular to senders: what they prove themselves by, and which one is the default."""

    senders: Resource[EmailSender]
    verification: SenderVerification
    random_bytes: Callable[[int], bytes]

    async def create(self, call: Call) -> Reply:
        body, verifier = call.body, self.verification.required(call.principal.env)
        new = EmailSender(
            **self.senders.born(call),
            domain=body.domain,
            address=body.address,
            display_name=body.display_name,
            token=self.random_bytes(TOKEN_BYTES).hex(),
        )
        new = replace(new, dns_records=stored_records(verifier.proofs(new.mail_domain, new.token)))
        if verifier.at_once:
            new = replace(new, status=EmailSenderStatus.VERIFIED, verified_at=new.updated_at)
        async with self.senders.database.transaction() as connection:
            made = await senders.insert(connection, new)
            await self.senders.note(connection, call, "email_sender.create", made)
        self.verification.changed()
        return await self.senders.reply(call, made, 201)

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        async with self.senders.database.transaction() as connection:
            await lock_organization(connection, call.principal.organization_id)
            before = await self.senders.hold(connection, call, call.resource)
            after = await senders.save(connection, before, _changed(before, changes), call.now)
            if after is not before:
                details = {"fields": call.body.named()}
                await self.senders.note(connection, call, "email_sender.update", after, details)
        self.verification.changed()
        return await self.senders.reply(call, after)

    async def delete(self, call: Call) -> Reply:
        async with self.senders.database.transaction() as connection:
            await lock_organization(connection, call.principal.organization_id)
            sender = await self.senders.hold(connection, call, call.resource)
            await senders.delete(connection, sender, call.now)
            await self.senders.note(connection, call, "email_sender.delete", sender)
        self.verification.changed()
        return Reply(204)

    async def verify(self, call: Call) -> Reply:
        with answered_with_502():
            verified = await self.verification.verify(call.resource, call.now)
        return await self.senders.reply(call, verified)


def _changed(sender: EmailSender, changes: dict[str, Any]) -> EmailSender:
    after = replace(sender, **changes)
    if after.is_default and sender.status is not EmailSenderStatus.VERIFIED:
        raise conflict("INVALID_STATE", "Only a verified sender can be the default.", status=sender.status.value)
    if sender.is_default and not after.is_default:
        raise conflict(
            "INVALID_STATE", "It is the default until another one is: make that one it.", status=sender.status.value
        )
    return after


def email_sender_routes(dependencies: Dependencies, *, verification: SenderVerification) -> tuple[Route, ...]:
    """`verification`: asks the adapter of an environment, which live may lack."""
    resource = Resource(
        dependencies=dependencies,
        table=SENDERS,
        path="/v2/email/senders/{id}",
        prefix=EMAIL_SENDER,
        name="email_sender",
        group=Group("E-mail", "email:read", "email:write"),
        out=EmailSenderOut,
        page=EmailSenderPage,
        views=each(sender_view),
    )
    operations = EmailSenderOperations(resource, verification, dependencies.random_bytes)
    return (
        resource.route(
            "GET /v2/email/senders", "listEmailSenders", "List what e-mail leaves from, newest first",
            resource.listing(), query=PageQuery,
        ),
        resource.route(
            "POST /v2/email/senders", "createEmailSender", "Make a domain or an address a sender", operations.create,
            body=EmailSenderCreate, errors=("SENDER_TAKEN", "LIMIT_REACHED", "DEPENDENCY_FAILED"),
            examine=as_modelled,
            description="In live enter what `dnsRecords` says at the name server of the domain, then have it verified.",
        ),
        resource.route(
            "PATCH /v2/email/senders/{id}", "updateEmailSender", "Name a sender, or make it the default",
            operations.patch, body=EmailSenderPatch, errors=("INVALID_STATE",),
        ),
        resource.route(
            "DELETE /v2/email/senders/{id}", "deleteEmailSender", "Delete a sender", operations.delete,
        ),
        resource.route(
            "POST /v2/email/senders/{id}/verify", "verifyEmailSender", "Look now whether a sender is yours",
            operations.verify, errors=("DEPENDENCY_FAILED",),
            description="Once in 10 seconds at most. What is missing has `found` false in `dnsRecords`.",
        ),
    )  # fmt: skip
