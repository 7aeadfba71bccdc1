"""What makes a message acceptable, as pure rules of C15.2 over the records that it names.

Everything here decides without waiting; the one rule that asks the database, the open window, is in `acceptance.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from recado.domain.billing.prices import Price
from recado.domain.channels.chatapp import TEMPLATE
from recado.domain.channels.policies import POLICIES
from recado.domain.contacts.consent import CONSENT_REQUIRED, OPTED_OUT, refusal_to_send
from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import CONTACT, FLOW, NUMBER
from recado.domain.core.ids import TEMPLATE as TEMPLATE_ID
from recado.domain.core.phones import recipient_hash
from recado.domain.core.references import reference_not_found, wrong_reference
from recado.domain.messages.message import CLASS_OF, Priority
from recado.domain.senders.number import NumberStatus, what_to_do
from recado.domain.templates.template import TemplateCategory, TemplateStatus
from recado.domain.templates.template_content import header_takes_text, variable_count
from recado.storage.access.organizations import Organization
from recado.storage.core.audit import Actor
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import ConsentCheck, NewMessage
from recado.storage.messages.recipients import Recipient
from recado.storage.senders.numbers import Number
from recado.storage.templates.templates import Template

LONGEST_SCHEDULE: Final = timedelta(days=90)

REFUSED: Final = {
    OPTED_OUT: "The contact opted out.",
    CONSENT_REQUIRED: "The contact has not granted consent, which the organization requires for marketing.",
}
_REASONS: Final = {OPTED_OUT: "opt_out", CONSENT_REQUIRED: "sem_consentimento"}

_SENDING_STATES: Final = frozenset({NumberStatus.CONNECTED, NumberStatus.FLAGGED})
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(slots=True, kw_only=True)
class MessageDraft:
    """A well-formed message as a caller gave it; `to` is canonical, and empty where only the contact is named.

    `forced_by`: who, when it is to jump the queue.
    """

    organization_id: str
    env: str
    channel: str
    sender_id: str
    to: str
    type: str
    priority: Priority
    template_id: str | None = None
    template_vars: Sequence[str] | None = None
    payload: Mapping[str, Any] | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    scheduled_at: datetime | None = None
    ttl_seconds: int | None = None
    forced_by: Actor | None = None
    key_hash: bytes | None = None
    fingerprint: bytes | None = None
    again: "Again | None" = None
    sent_by: tuple[str, str] | None = None  # the person who sends it: account and name


@dataclass(frozen=True, slots=True)
class Again:
    """The message is sent in the place of `old`, by whom, and also when `old` may have left (C15.4)."""

    old: Message
    by: Actor
    include_uncertain: bool


class TemplateShapes:
    """What templates ask of a message, worked out once for each version in memory."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._known: dict[str, tuple[int, int, bool]] = {}

    def of(self, template: Template) -> tuple[int, bool]:
        """The number of body variables, and whether the header takes a text."""
        known = self._known.get(template.id)
        if known is not None and known[0] == template.revision:
            return known[1], known[2]
        if len(self._known) >= self._capacity:
            self._known.clear()
        count, header = variable_count(template.components), header_takes_text(template.components)
        self._known[template.id] = (template.revision, count, header)
        return count, header


def check_existing(draft: MessageDraft) -> None:
    """Refuse what names records of kinds that this release does not hold: media, flows, social accounts."""
    if draft.channel not in POLICIES:
        detail = f"Sending on channel {draft.channel} is not available yet: use {' or '.join(POLICIES)}."
        raise field_refused("ROUTE_NOT_AVAILABLE", "/channel", detail)
    payload = draft.payload
    if payload is None or draft.type == "text":
        return
    if draft.type == "media":
        raise _media_not_found("payload.media.id")
    content = payload if draft.type == TEMPLATE else payload["interactive"]
    if "media" in content.get("header", ()):
        within = "payload" if content is payload else "payload.interactive"
        raise _media_not_found(f"{within}.header.media.id")
    if draft.type == "interactive" and content["type"] == "flow":
        raise reference_not_found("payload.interactive.action.flowId", FLOW, content["action"]["flowId"], draft.env)


def check_contact(draft: MessageDraft, known: Recipient) -> None:
    """The contact exists here, and the recipient is its phone, which is taken where none was given (C15.2)."""
    if known.contact_id is None or known.phone is None:
        raise reference_not_found("contactId", CONTACT, draft.contact_id or "", draft.env)
    if draft.to and draft.to != known.phone:
        message = "`to` is not the phone of the contact `contactId`: leave one of them out."
        raise field_refused("RECIPIENT_MISMATCH", "/to", message)
    draft.to = known.phone


def check_consent(known: Recipient, *, granted_only: bool, field: str) -> None:
    """The person whom the field names may be sent what is subject to consent; Problem 422 (C12.5.5, C12.5.6)."""
    code = refusal_to_send(known.status, registered=known.registered, granted_only=granted_only)
    if code is not None:
        raise no_consent(code, field)


def no_provider() -> Problem:
    """502: nothing is sent in this environment (C33)."""
    return Problem(
        "DEPENDENCY_FAILED", "This installation has no chat-app provider for live: ask its operator, or use a test key."
    )


def no_consent(code: str, field: str = "to") -> Problem:
    """422, by the code of the refusal (C12.5.5). `field`: what named the person."""
    return field_refused(code, f"/{field}", REFUSED[code], motivo=_REASONS[code])


def _consent_check(draft: MessageDraft, organization: Organization) -> ConsentCheck:
    """What is asked in the commit that stores a message which is subject to consent (C12.5.5).

    It was asked before for a contact that is looked up anyway, for what the audit tells of before the commit, and for
    what takes the place of another.
    """
    if draft.contact_id is not None or draft.forced_by is not None or draft.again is not None:
        return ConsentCheck.DONE
    return ConsentCheck.GRANTED if organization.require_granted_for_marketing else ConsentCheck.NOT_REFUSED


def check_references(draft: MessageDraft, number: Number | None, template: Template | None) -> None:
    """Number and template exist here, and the template is one of this number."""
    if number is None:
        raise reference_not_found("numberId", NUMBER, draft.sender_id, draft.env)
    if draft.template_id is not None and template is None:
        raise reference_not_found("templateId", TEMPLATE_ID, draft.template_id, draft.env)
    if template is not None and template.number_id != number.id:
        raise _other_number(template, number)


def _other_number(template: Template, number: Number) -> Problem:
    detail = f"The template {template.id} belongs to the number {template.number_id}, not to {number.id}."
    return wrong_reference("templateId", detail)


def check_variables(draft: MessageDraft, template: Template, shapes: TemplateShapes) -> None:
    """The variables are exactly those that the template declares, none of them empty (C15.2.1)."""
    given = draft.template_vars or ()
    count, header = shapes.of(template)
    if len(given) != count:
        raise _mismatch(
            "/templateVars",
            f"The template {template.id} takes {counted(count, 'variable')}; `templateVars` has {len(given)}.",
        )
    for position, text in enumerate(given):
        if not text:
            raise _mismatch(
                f"/templateVars/{position}", f"`templateVars` must not hold an empty text (position {position})."
            )
    check_header(draft, header)


def check_header(draft: MessageDraft, header: bool) -> None:
    """The header has a text exactly when the template's takes one."""
    if header != ("text" in ((draft.payload or {}).get("header") or ())):
        declared = "takes" if header else "does not take"
        raise _mismatch("/payload/header/text", f"The header of the template {declared} a text.")


def check_priority(draft: MessageDraft, category: TemplateCategory | None) -> None:
    """`critical` is for authentication, utility and replies in the window (C15.2.4)."""
    if draft.priority is Priority.CRITICAL and category is TemplateCategory.MARKETING:
        raise field_refused(
            "PRIORITY_NOT_ALLOWED",
            "/priority",
            "Priority critical is only for authentication and utility templates and for replies in the window.",
        )


def due_time(draft: MessageDraft, now: datetime) -> datetime:
    """When the message may leave; a schedule in the past means now (C15.2)."""
    scheduled = draft.scheduled_at
    if scheduled is None or scheduled <= now:
        return now
    if scheduled - now > LONGEST_SCHEDULE:
        detail = f"`scheduledAt` must be at most {LONGEST_SCHEDULE.days} days ahead."
        raise field_refused("SCHEDULE_TOO_FAR", "/scheduledAt", detail)
    return scheduled


def unavailable(number: Number) -> str:
    """What is told of a number that does not send (C4.1)."""
    what = what_to_do(number.status, number.env, number.id)
    return f"The number {number.id} is {number.status.value}: {what}, or send from another number."


def check_state(number: Number, template: Template | None) -> None:
    """The number sends and the template is approved, now."""
    if number.status not in _SENDING_STATES:
        raise field_refused(
            "NUMBER_UNAVAILABLE",
            "/numberId",
            unavailable(number),
            status=number.status.value,
        )
    if template is not None and template.status is not TemplateStatus.APPROVED:
        raise field_refused(
            "TEMPLATE_NOT_APPROVED",
            "/templateId",
            f"The template {template.id} is {template.status.value}: only an approved template can be sent.",
            status=template.status.value,
        )


def new_message(
    draft: MessageDraft,
    number: Number,
    organization: Organization,
    category: TemplateCategory | None,
    *,
    message_id: str,
    due_at: datetime,
    now: datetime,
    price: Price | None = None,
) -> NewMessage:
    """The row of an acceptable draft. `price` None: nothing is billed."""
    seconds, policy = draft.ttl_seconds, POLICIES[draft.channel]
    obeys = policy.obeys(draft.type, category, draft.priority)
    return NewMessage(
        draft.organization_id,
        draft.env,
        draft.channel,
        message_id,
        number.id,
        draft.type,
        draft.to,
        recipient_hash(draft.organization_id, draft.to),
        CLASS_OF[draft.priority],
        draft.forced_by is not None,
        draft.template_id,
        _json(draft.payload),
        _json(draft.template_vars),
        _json(draft.metadata),
        draft.campaign_id,
        due_at if draft.scheduled_at is not None else None,
        due_at,
        policy.ttl(category, draft.priority) if seconds is None else timedelta(seconds=seconds),
        held_ms(number, organization, now),
        now,
        draft.key_hash,
        draft.fingerprint,
        None,
        None if price is None else price.coins,
        None if price is None else price.kind,
        draft.sent_by,
        draft.contact_id,
        _consent_check(draft, organization) if obeys.consent else ConsentCheck.EXEMPT,
        needs_window=obeys.window,
        obeys_quiet_hours=obeys.quiet_hours,
    )


def held_ms(number: Number, organization: Organization, now: datetime) -> int:
    """Time that the number's queue stood still until now: what comes on top later does not count towards the TTL."""
    held = number.held_ms + organization.held_ms
    for since in (number.operator_paused_at, organization.held_since):
        if since is not None and since < now:
            held += (now - since) // _MILLISECOND
    return held


def _json(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _mismatch(path: str, message: str) -> Problem:
    return field_refused("TEMPLATE_VARS_MISMATCH", path, message)


def _media_not_found(field: str) -> Problem:
    detail = "Media cannot be sent yet: use type text, template or interactive."
    return field_refused("MEDIA_NOT_FOUND", f"/{field.replace('.', '/')}", detail, field=field)
