"""E-mail messages: send one and hear what its provider says, list and read (C10.1)."""

import asyncio
import sys
from dataclasses import replace
from functools import partial
from typing import Final

from recado.domain.access.scopes import PII
from recado.domain.channels.email import EMAIL, POLICY
from recado.domain.core.errors import Unavailable, not_found
from recado.domain.core.ids import MESSAGE
from recado.domain.core.retention import MESSAGES_MONTHS, months_before
from recado.domain.messages.message import Priority
from recado.http.api.call import Call
from recado.http.api.route import MIB, Idempotency, Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.email.message_models import CreatedEmail, CreateEmail, EmailList, EmailModel, EmailQuery
from recado.http.routes.email.message_view import (
    created_email_view,
    email_view,
    refusal_of,
    sent_email_view,
)
from recado.http.routes.messages.message_models import refuse_metadata
from recado.http.routes.messages.message_pages import MessagePages
from recado.http.wire.reply import REPLAYED, Reply
from recado.services.messages.acceptance import Acceptance, AcceptedMessage
from recado.services.messages.draft import MessageDraft
from recado.services.messages.email_rules import AskedEmail
from recado.storage.core.shares.fair_memory import FairMemory, Held
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.messages import message_reads
from recado.storage.messages.message_reads import Message, MessageFilter

LIST: Final = "listEmails"
OF_EMAIL: Final = (EMAIL,)
OUTBOUND: Final = "outbound"
BODY_LIMIT: Final = 8 * MIB
AT_ONCE, AT_ONCE_EACH, MOST_WAITING = 400, 100, 1_000
"""Sends under way, each with its content in memory: in all and of an organization, and how many of one wait besides."""
TURN_WITHIN = 10.0
"""Seconds that a send waits to be under way: with the 15 of its provider it is answered within the 30 of a request."""
MEMORY, MEMORY_EACH = 256 * MIB, 64 * MIB
"""Bytes that the contents of sends take, under way and waiting: in all and of an organization."""


class EmailOperations:
    """The handlers."""

    def __init__(self, dependencies: Dependencies, acceptance: Acceptance) -> None:
        self._database = dependencies.database
        self._pages = MessagePages(
            dependencies.database,
            dependencies.cursors,
            name=LIST,
            view=lambda call: partial(email_view, unmasked=call.can(PII)),
        )
        self._acceptance = acceptance
        self._places = FairPlaces(AT_ONCE, each=AT_ONCE_EACH, most_waiting=MOST_WAITING)
        self._memory = FairMemory(MEMORY, each=MEMORY_EACH)

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what no e-mail can be."""
        with self._memory.holding(call.principal.organization_id) as held:
            await self._acceptance.examine(email_draft(call, held))

    async def create(self, call: Call) -> Reply:
        with self._memory.holding(call.principal.organization_id) as held:
            return await self._create(call, held)

    async def _create(self, call: Call, held: Held) -> Reply:
        draft = email_draft(call, held)
        owner = draft.organization_id
        if not self._places.take(owner):
            try:
                async with asyncio.timeout(TURN_WITHIN):
                    await self._places.turn(owner)
            except TimeoutError:
                raise Unavailable("Too many e-mails are under way: try again shortly.") from None
        try:
            done = await self._acceptance.accept(draft)
        finally:
            self._places.leave(owner)
        unmasked = call.can(PII)
        if not isinstance(done, AcceptedMessage):
            answered = done.message.failure_code in POLICY.answered
            if answered and (refusal := refusal_of(done.message, REPLAYED)) is not None:
                raise refusal
            return Reply(201, created_email_view(done.message, replayed=True, unmasked=unmasked), headers=REPLAYED)
        new = done.message
        if new.sent_at is not None:  # what is committed needs no look
            return Reply(201, sent_email_view(new, new.sent_at, unmasked=unmasked))
        message = await message_reads.get(
            self._database, new.organization_id, new.env, new.id, OF_EMAIL, months=self._database.months
        )
        if message is None:
            raise not_found()  # its partition went meanwhile
        if (refusal := refusal_of(message)) is not None:
            raise refusal
        return Reply(201, created_email_view(message, replayed=False, unmasked=unmasked))

    async def list(self, call: Call) -> Reply:
        return await self._pages.page(call, _filter)

    async def read(self, call: Call) -> Reply:
        return Reply(200, email_view(call.resource, unmasked=call.can(PII)))

    async def find(self, call: Call) -> Message:
        """The e-mail that the path names, if it went out."""
        principal = call.principal
        message = found(
            await message_reads.get(
                self._database,
                principal.organization_id,
                principal.env,
                call.path["id"],
                OF_EMAIL,
                months=self._database.months,
            )
        )
        return found(message if message.direction == OUTBOUND else None)


def email_draft(call: Call, held: Held) -> MessageDraft:
    """The draft in the body of `call`. Raises `Problem` 422, and `Unavailable` where there is no memory for it."""
    body: CreateEmail = call.body
    asked = body.asked
    held.take(_memory_of(asked))
    refuse_metadata(body.metadata)
    principal, key = call.principal, call.idempotency
    return MessageDraft(
        organization_id=principal.organization_id,
        env=principal.env,
        channel=EMAIL,
        sender_id="",
        to=body.to,
        type="text" if body.template_id is None else "template",
        priority=Priority.NORMAL,
        template_id=body.template_id,
        contact_id=body.contact_id,
        campaign_id=body.campaign_id,
        metadata=body.metadata,
        key_hash=None if key is None else key.key_hash,
        fingerprint=None if key is None else key.fingerprint,
        sent_by=principal.person,
        content=replace(asked, held=held),
    )


def _memory_of(asked: AskedEmail) -> int:
    return sum(map(sys.getsizeof, (asked.html, asked.text, *asked.variables.values())))


def _filter(call: Call, query: EmailQuery) -> MessageFilter:
    """What the query asks for of what is still kept (C32)."""
    return MessageFilter(
        organization_id=call.principal.organization_id,
        env=call.principal.env,
        channels=OF_EMAIL,
        status=query.status,
        as_shown=False,
        direction=OUTBOUND,
        email=query.to,
        campaign_id=query.campaign_id,
        start=months_before(call.now, MESSAGES_MONTHS),
    )


def email_routes(dependencies: Dependencies, acceptance: Acceptance) -> tuple[Route, ...]:
    """The operations on e-mail messages."""
    operations = EmailOperations(dependencies, acceptance)
    group = Group("E-mail", reads="email:read", writes="email:send")
    return (
        group.route(
            "POST /v2/email/messages", "createEmail", "Send an e-mail", operations.create,
            description=(
                "Answered when the provider has said what becomes of it, after 15 s at the latest: 201 means that it "
                "has left. Delivery, bounce and complaint come later, as events. The body is never stored."
            ),
            body=CreateEmail, body_limit=BODY_LIMIT, responses={201: CreatedEmail}, rate_class="send",
            idempotency=Idempotency.REQUIRED, creates=True, examine=operations.examine,
            errors=(
                "METADATA_INVALID", "CONTACT_OPTED_OUT", "CONSENT_REQUIRED", "REFERENCE_NOT_FOUND", "TEXT_TOO_LONG",
                "RECIPIENT_SUPPRESSED", "CONTENT_REJECTED", "SENDER_NOT_VERIFIED", "PAYMENT_REQUIRED",
                "DEPENDENCY_FAILED", "PROVIDER_TIMEOUT",
            ),
        ),
        group.route(
            "GET /v2/email/messages", LIST, "List the e-mails that went out, newest first", operations.list,
            query=EmailQuery, responses={200: EmailList},
        ),
        group.route(
            "GET /v2/email/messages/{id}", "getEmail", "Read an e-mail", operations.read,
            responses={200: EmailModel}, path_ids={"id": MESSAGE}, load=operations.find,
        ),
    )  # fmt: skip
