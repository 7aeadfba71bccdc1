"""SMS: send one, see what a text would take, list and read (C16.1)."""

from functools import partial
from typing import Any, Final

from recado.domain.access.scopes import PII
from recado.domain.billing.prices import BR, region_of
from recado.domain.channels.sms import POLICY, SMS, priority_of
from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import MESSAGE
from recado.domain.core.metadata import metadata_errors
from recado.domain.core.retention import MESSAGES_MONTHS, months_before
from recado.domain.links.text_links import short_link
from recado.domain.links.tracked import LONGEST_URL
from recado.domain.messages.gsm_alphabet import outside
from recado.http.api.call import Call
from recado.http.api.route import Idempotency, Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.phones import phone_at, searched_phone
from recado.http.routes.messages.message_models import NO_RECIPIENT
from recado.http.routes.messages.message_pages import MessagePages
from recado.http.routes.sms.sms_models import (
    CreatedSms,
    CreateSms,
    PreviewSms,
    SmsList,
    SmsModel,
    SmsPreview,
    SmsQuery,
)
from recado.http.routes.sms.sms_view import accepted_sms_view, created_sms_view, sms_view
from recado.http.wire.reply import REPLAYED, Reply
from recado.services.messages.acceptance import Acceptance, AcceptedMessage
from recado.services.messages.draft import MessageDraft
from recado.services.messages.sms_rules import check_route
from recado.storage.messages import message_reads
from recado.storage.messages.message_reads import Message, MessageFilter

LIST: Final = "listSms"
OF_SMS: Final = (SMS,)
OUTBOUND: Final = "outbound"


class SmsOperations:
    """The handlers."""

    def __init__(self, dependencies: Dependencies, acceptance: Acceptance) -> None:
        self._database = dependencies.database
        self._organizations = dependencies.directories.organizations
        self._pages = MessagePages(
            dependencies.database,
            dependencies.cursors,
            name=LIST,
            view=lambda call: partial(sms_view, unmasked=call.can(PII)),
        )
        self._acceptance = acceptance
        self._prices = dependencies.prices
        self._short_link = short_link(dependencies.link_base)

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what no message can be."""
        await self._acceptance.examine(sms_draft(call))

    async def create(self, call: Call) -> Reply:
        outcome = await self._acceptance.accept(sms_draft(call))
        unmasked = call.can(PII)
        if isinstance(outcome, AcceptedMessage):
            return Reply(201, accepted_sms_view(outcome.message, unmasked=unmasked))
        return Reply(201, created_sms_view(outcome.message, replayed=True, unmasked=unmasked), headers=REPLAYED)

    async def preview(self, call: Call) -> Reply:
        body: PreviewSms = call.body
        measured = body.form().measured(body.text, self._shortened if body.shorten_links else None)
        organization = await self._organizations.of_caller(call.principal.organization_id)
        region = BR if body.to is None else region_of(phone_at("/to", body.to))
        check_route(body.route, region, organization.dedicated_sender)
        view: dict[str, Any] = {
            "encoding": measured.encoding,
            "length": measured.length,
            "segments": measured.segments,
            "charactersLeft": measured.characters_left,
            "nonGsm": list(outside(body.text)),
            "region": region,
            "route": body.route,
        }
        if body.transliterate:
            view["transliterated"] = measured.text
        if self._prices is not None:
            kind = POLICY.price_kind(body.route, False)
            principal = call.principal
            price = await self._prices.price_of(principal.organization_id, principal.env, kind, region, call.now)
            view |= {"unitCoins": price.coins, "totalCoins": price.coins * measured.segments}
        return Reply(200, view)

    async def list(self, call: Call) -> Reply:
        return await self._pages.page(call, _filter)

    async def read(self, call: Call) -> Reply:
        return Reply(200, sms_view(call.resource, unmasked=call.can(PII)))

    async def find(self, call: Call) -> Message:
        """The message of the path; 404, as for one that came in, which has no such record."""
        principal = call.principal
        message = found(
            await message_reads.get(
                self._database,
                principal.organization_id,
                principal.env,
                call.path["id"],
                OF_SMS,
                months=self._database.months,
            )
        )
        return found(message if message.direction == OUTBOUND else None)

    def _shortened(self, link: str) -> str:
        """As long as the short form of a link: a sample stands for its code."""
        return self._short_link if len(link) <= LONGEST_URL else link


def sms_draft(call: Call) -> MessageDraft:
    """The draft in the body of `call`, its recipient canonical. Raises `Problem` 422."""
    body: CreateSms = call.body
    if body.to is None and body.contact_id is None:
        raise Problem("RECIPIENT_MISSING", NO_RECIPIENT, errors=[FieldError("/to", "RECIPIENT_MISSING", NO_RECIPIENT)])
    if body.metadata is not None and (wrong := metadata_errors(body.metadata)):
        raise validation_error(wrong, code="METADATA_INVALID")
    principal, key = call.principal, call.idempotency
    return MessageDraft(
        organization_id=principal.organization_id,
        env=principal.env,
        channel=SMS,
        sender_id="",
        to="" if body.to is None else phone_at("/to", body.to),
        type="text",
        priority=priority_of(body.route),
        payload={"text": {"body": body.text}},
        contact_id=body.contact_id,
        campaign_id=body.campaign_id,
        metadata=body.metadata,
        scheduled_at=body.scheduled_at,
        key_hash=None if key is None else key.key_hash,
        fingerprint=None if key is None else key.fingerprint,
        sent_by=principal.person,
        details=body.form(body.transactional).asked,
    )


def _filter(call: Call, query: SmsQuery) -> MessageFilter:
    """What the query asks for of what is still kept (C32)."""
    kept_from = months_before(call.now, MESSAGES_MONTHS)
    return MessageFilter(
        organization_id=call.principal.organization_id,
        env=call.principal.env,
        channels=OF_SMS,
        status=query.status,
        as_shown=False,
        direction=OUTBOUND,
        region=query.region,
        recipient=None if query.phone is None else searched_phone(query.phone, bad_status=422),
        contact_id=query.contact_id,
        campaign_id=query.campaign_id,
        start=max(query.from_ or kept_from, kept_from),
        end=query.to,
    )


def sms_routes(dependencies: Dependencies, acceptance: Acceptance) -> tuple[Route, ...]:
    """The operations on SMS messages."""
    operations = SmsOperations(dependencies, acceptance)
    group = Group("SMS", reads="sms:read", writes="sms:send")
    return (
        group.route(
            "POST /v2/sms/messages", "createSms", "Send an SMS", operations.create,
            description=(
                "The message is stored before the answer: 201 means that it will leave. It costs by the segments of "
                "its text; the price is held until it is sent."
            ),
            body=CreateSms, responses={201: CreatedSms}, rate_class="send", idempotency=Idempotency.BOUND, creates=True,
            at_fronts=True, examine=operations.examine,
            errors=(
                "METADATA_INVALID", "PHONE_INVALID", "RECIPIENT_MISSING", "RECIPIENT_MISMATCH", "CONTACT_OPTED_OUT",
                "CONSENT_REQUIRED", "SCHEDULE_TOO_FAR", "ROUTE_NOT_AVAILABLE", "REFERENCE_NOT_FOUND", "TEXT_TOO_LONG",
                "PAYMENT_REQUIRED", "DEPENDENCY_FAILED",
            ),
        ),
        group.route(
            "POST /v2/sms/preview", "previewSms", "See what a text would take and cost", operations.preview,
            description="Nothing is stored.", body=PreviewSms, responses={200: SmsPreview}, rate_class="bulk",
            errors=("PHONE_INVALID", "ROUTE_NOT_AVAILABLE", "TEXT_TOO_LONG"),
        ),
        group.route(
            "GET /v2/sms/messages", LIST, "List the SMS that went out, newest first", operations.list,
            query=SmsQuery, bad_query_status=422, responses={200: SmsList},
        ),
        group.route(
            "GET /v2/sms/messages/{id}", "getSms", "Read an SMS", operations.read,
            responses={200: SmsModel}, path_ids={"id": MESSAGE}, load=operations.find,
        ),
    )  # fmt: skip
