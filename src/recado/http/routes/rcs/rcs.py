"""RCS: send a message, which may leave as an SMS, list and read (C17)."""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from recado.domain.access.scopes import PII
from recado.domain.channels.rcs import RCS, priority_of
from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import MESSAGE
from recado.domain.core.metadata import metadata_errors
from recado.domain.core.retention import MESSAGES_MONTHS, months_before
from recado.domain.messages.message import MessageStatus
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems, each
from recado.http.api.route import Idempotency, Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.phones import phone_at
from recado.http.routes.messages.message_models import NO_RECIPIENT
from recado.http.routes.rcs.rcs_models import CreatedRcs, CreateRcs, RcsDetail, RcsList, RcsQuery
from recado.http.routes.rcs.rcs_view import accepted_rcs_view, created_rcs_view, rcs_view
from recado.http.wire.reply import REPLAYED, Reply
from recado.services.messages.acceptance import Acceptance, AcceptedMessage
from recado.services.messages.draft import MessageDraft
from recado.services.messages.rcs_content import check_content
from recado.storage.messages import message_reads
from recado.storage.messages.message_reads import Message, MessageFilter, MessagePage

LIST: Final = "listRcs"
OF_RCS: Final = (RCS,)


class RcsOperations:
    """The handlers."""

    def __init__(self, dependencies: Dependencies, acceptance: Acceptance) -> None:
        self._database = dependencies.database
        self._cursors = dependencies.cursors
        self._explain = dependencies.explain
        self._acceptance = acceptance

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what no message can be."""
        await self._acceptance.examine(rcs_draft(call))

    async def create(self, call: Call) -> Reply:
        outcome = await self._acceptance.accept(rcs_draft(call))
        unmasked = call.can(PII)
        if isinstance(outcome, AcceptedMessage):
            return Reply(201, accepted_rcs_view(outcome.message, unmasked=unmasked))
        return Reply(201, created_rcs_view(outcome.message, unmasked=unmasked), headers=REPLAYED)

    async def list(self, call: Call) -> Reply:
        query: RcsQuery = call.query
        after = self._cursors.read(call, LIST)
        read = partial(message_reads.list_page, self._database.page(0), _filter(call, query), counted=False)

        def rest(last: Message, left: int) -> Awaitable[MessagePage]:
            return read(limit=left, before_id=last.id)

        first = await read(limit=query.limit, before_id=None if after is None else after[0])
        items = PageItems(first, each(partial(rcs_view, unmasked=call.can(PII))), rest, query.limit)
        return Reply(200, await self._cursors.page(call, LIST, items, lambda message: [message.id]))

    async def read(self, call: Call) -> Reply:
        message: Message = call.resource
        view = rcs_view(message, unmasked=call.can(PII))
        if message.status == MessageStatus.QUEUED:
            waiting = await self._explain(message.organization_id, message.env, message)
            if waiting is not None:
                view["waiting"] = waiting
        return Reply(200, view)

    async def find(self, call: Call) -> Message:
        """The message of the path; 404."""
        principal = call.principal
        return found(
            await message_reads.get(
                self._database,
                principal.organization_id,
                principal.env,
                call.path["id"],
                OF_RCS,
                months=self._database.months,
            )
        )


def rcs_draft(call: Call) -> MessageDraft:
    """The draft in the body of `call`, its recipient canonical. Raises `Problem` 422."""
    body: CreateRcs = call.body
    if body.to is None and body.contact_id is None:
        raise Problem("RECIPIENT_MISSING", NO_RECIPIENT, errors=[FieldError("/to", "RECIPIENT_MISSING", NO_RECIPIENT)])
    if body.metadata is not None and (wrong := metadata_errors(body.metadata)):
        raise validation_error(wrong, code="METADATA_INVALID")
    said = body.said()
    check_content(body.route, said)
    principal, key = call.principal, call.idempotency
    return MessageDraft(
        organization_id=principal.organization_id,
        env=principal.env,
        channel=RCS,
        sender_id="",
        to="" if body.to is None else phone_at("/to", body.to),
        type="text",
        priority=priority_of(body.route),
        payload=said,
        contact_id=body.contact_id,
        campaign_id=body.campaign_id,
        metadata=body.metadata,
        scheduled_at=body.scheduled_at,
        key_hash=None if key is None else key.key_hash,
        fingerprint=None if key is None else key.fingerprint,
        sent_by=principal.person,
        details=body.form(body.transactional).asked,
    )


def _filter(call: Call, query: RcsQuery) -> MessageFilter:
    """What the query asks for of what is still kept (C32)."""
    return MessageFilter(
        organization_id=call.principal.organization_id,
        env=call.principal.env,
        channels=OF_RCS,
        status=query.status,
        as_shown=False,
        stays_sent=True,
        carrier=query.channel,
        campaign_id=query.campaign_id,
        start=months_before(call.now, MESSAGES_MONTHS),
    )


def rcs_routes(dependencies: Dependencies, acceptance: Acceptance) -> tuple[Route, ...]:
    """The operations on RCS messages."""
    operations = RcsOperations(dependencies, acceptance)
    group = Group("RCS", reads="rcs:read", writes="rcs:send")
    return (
        group.route(
            "POST /v2/rcs/messages", "createRcs", "Send an RCS message", operations.create,
            description=(
                "The message is stored before the answer: 201 means that it will leave. With `fallback` it leaves as "
                "an SMS where the phone has no RCS or the provider refuses it, and where it is not delivered within "
                "`afterSeconds`, when the provider took it back. The price of the dearer way is held."
            ),
            body=CreateRcs, responses={201: CreatedRcs}, rate_class="send", idempotency=Idempotency.BOUND, creates=True,
            at_fronts=True, examine=operations.examine,
            errors=(
                "METADATA_INVALID", "PHONE_INVALID", "RECIPIENT_MISSING", "RECIPIENT_MISMATCH", "CONTACT_OPTED_OUT",
                "CONSENT_REQUIRED", "SCHEDULE_TOO_FAR", "REFERENCE_NOT_FOUND", "TEXT_TOO_LONG", "PAYMENT_REQUIRED",
                "DEPENDENCY_FAILED",
            ),
        ),
        group.route(
            "GET /v2/rcs/messages", LIST, "List RCS messages, newest first", operations.list,
            query=RcsQuery, responses={200: RcsList},
        ),
        group.route(
            "GET /v2/rcs/messages/{id}", "getRcs", "Read an RCS message", operations.read,
            responses={200: RcsDetail}, path_ids={"id": MESSAGE}, load=operations.find,
        ),
    )  # fmt: skip
