"""What makes the recipients of a batch acceptable, one pass over all of them (C15.5).

What concerns the whole batch is refused as for a single message (`acceptance_rules.py`); what concerns one recipient
leaves that one out, with its reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from recado.domain.batches.batch import DUPLICATE, MAX_ERRORS
from recado.domain.contacts.consent import refusal_to_send
from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import CONTACT
from recado.domain.core.metadata import metadata_errors
from recado.domain.core.phones import canonical_phone, recipient_hash
from recado.domain.core.references import no_such
from recado.domain.core.steps import Steps
from recado.domain.messages.message import Priority
from recado.services.messages.acceptance_rules import REFUSED
from recado.services.messages.draft import MessageDraft
from recado.storage.batches.batch_rows import Recipients
from recado.storage.messages.recipients import Recipient

_STEP = 250  # recipients: some milliseconds when each has sixty variables


@dataclass(slots=True, kw_only=True)
class BatchDraft:
    """A well-formed batch as a caller gave it, to recipients, a list or a segment.

    `template_vars`, `metadata`: of recipients without any of their own.
    """

    organization_id: str
    env: str
    channel: str
    sender_id: str
    type: str
    priority: Priority
    recipients: Sequence[Mapping[str, Any]] = ()
    list_id: str | None = None
    segment_id: str | None = None
    name: str | None = None
    template_id: str | None = None
    template_vars: Sequence[str] | None = None
    payload: Mapping[str, Any] | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    scheduled_at: datetime | None = None
    ttl_seconds: int | None = None
    created_by_id: str | None = None
    key_hash: bytes | None = None
    fingerprint: bytes | None = None

    @property
    def has_audience(self) -> bool:
        """Whether its recipients are a list's or a segment's."""
        return self.list_id is not None or self.segment_id is not None

    def message(self) -> MessageDraft:
        """What its messages share, as the rules of one message take it."""
        return MessageDraft(
            organization_id=self.organization_id,
            env=self.env,
            channel=self.channel,
            sender_id=self.sender_id,
            to="",
            type=self.type,
            priority=self.priority,
            template_id=self.template_id,
            payload=self.payload,
            scheduled_at=self.scheduled_at,
        )


@dataclass(slots=True)
class LeftOut:
    """Of what a caller asked for: how much gets no message, for which code, and where the first 100 of it stand."""

    count: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    errors: list[dict[str, str]] = field(default_factory=list)

    def add(self, path: str, code: str, message: str, *, count: int = 1) -> None:
        self.count += count
        self.reasons[code] = self.reasons.get(code, 0) + count
        if len(self.errors) < MAX_ERRORS:
            self.errors.append({"path": path, "code": code, "message": message})

    def columns(self) -> dict[str, Any]:
        """As the row of a batch keeps it."""
        return {
            "skipped": self.count,
            "skipped_reasons": orjson.dumps(self.reasons).decode(),
            "errors": orjson.dumps(self.errors).decode(),
        }


@dataclass(slots=True)
class AcceptedRecipients:
    """The recipients that get a message. `places`: where each stood in the request."""

    recipients: Recipients
    places: list[int]
    left_out: LeftOut


def accept_recipients(draft: BatchDraft, variables: int, contacts: Mapping[str, str]) -> Steps[AcceptedRecipients]:
    """Take the recipients, each phone once. `variables`: how many the template declares; `contacts`: phones by id."""
    organization_id, common = draft.organization_id, draft.template_vars
    with_template = draft.template_id is not None
    common_text, common_error = _variables(common, variables) if with_template else (None, None)
    common_metadata = _text(draft.metadata)
    phones: dict[str, None] = {}
    hashes: list[int] = []
    texts: list[str | None] = []
    metadata: list[str | None] = []
    places: list[int] = []
    contact_ids: list[str | None] = []
    left_out = LeftOut()
    for place, given in enumerate(draft.recipients):
        if place and not place % _STEP:
            yield
        try:
            phone, contact_id = _phone_of(given, contacts)
        except Problem as problem:
            left_out.add(_path(place, problem.errors[0].path), problem.code, problem.detail)
            continue
        if phone in phones:
            left_out.add(_path(place), DUPLICATE, "The recipient is in the list before.")
            continue
        own = given.get("templateVars")
        if not with_template or own is None:
            text, error = common_text, common_error
        else:
            text, error = _variables(own, variables)
        if error is not None:
            left_out.add(_path(place, "/templateVars"), "TEMPLATE_VARS_MISMATCH", error)
            continue
        attached = given.get("metadata")
        if attached is not None and (wrong := metadata_errors(attached, "")):
            left_out.add(_path(place, f"/metadata{wrong[0].path}"), "METADATA_INVALID", wrong[0].message)
            continue
        phones[phone] = None
        hashes.append(recipient_hash(organization_id, phone))
        texts.append(text)
        metadata.append(common_metadata if attached is None else _text(attached))
        places.append(place)
        contact_ids.append(contact_id)
    named = contact_ids if contacts else None
    return AcceptedRecipients(Recipients(list(phones), hashes, texts, metadata, contact_ids=named), places, left_out)


def common_variables(draft: BatchDraft, variables: int) -> str | None:
    """What every message of an audience says, as JSON; Problem 422 `TEMPLATE_VARS_MISMATCH` (C15.2.1)."""
    if draft.template_id is None:
        return None
    text, error = _variables(draft.template_vars, variables)
    if error is not None:
        raise field_refused("TEMPLATE_VARS_MISMATCH", "/templateVars", error)
    return text


def only_in_window(accepted: AcceptedRecipients, hashes: set[int]) -> None:
    """Leave out anyone who has not written to the number: a free-form message does not reach them (C15.2.2)."""
    codes = [None if recipient in hashes else "WINDOW_CLOSED" for recipient in accepted.recipients.hashes]
    _leave_out(accepted, codes)


def only_with_consent(accepted: AcceptedRecipients, known: Sequence[Recipient], *, granted_only: bool) -> None:
    """Leave out anyone who must not be sent what is subject to consent; `known`: one for each recipient (C12.5.6)."""
    _leave_out(
        accepted,
        [refusal_to_send(each.status, registered=each.registered, granted_only=granted_only) for each in known],
    )


_TEXTS = {**REFUSED, "WINDOW_CLOSED": "The recipient has not written to this number in the last 24 hours."}


def _leave_out(accepted: AcceptedRecipients, codes: Sequence[str | None]) -> None:
    """Without the recipients that have a code, which says why."""
    stay = []
    for index, (code, place) in enumerate(zip(codes, accepted.places, strict=True)):
        if code is None:
            stay.append(index)
        else:
            accepted.left_out.add(_path(place), code, _TEXTS[code])
    if len(stay) < len(codes):
        accepted.recipients = accepted.recipients.only(stay)
        accepted.places = [accepted.places[index] for index in stay]


def _path(place: int, member: str = "") -> str:
    return f"/recipients/{place}{member}"


def _phone_of(given: Mapping[str, Any], contacts: Mapping[str, str]) -> tuple[str, str | None]:
    """Phone and contact of a recipient; Problem, with its place in the recipient, when it has none (C15.2)."""
    to, contact_id = given.get("to"), given.get("contactId")
    if to is None and contact_id is None:
        raise field_refused("RECIPIENT_MISSING", "", "The recipient is empty: give `to` or `contactId`.")
    phone = None if contact_id is None else contacts.get(contact_id)
    if contact_id is not None and phone is None:
        raise field_refused("REFERENCE_NOT_FOUND", "/contactId", no_such(CONTACT, contact_id, ""))
    if to is None:
        assert phone is not None  # noqa: S101 - one of the two is there
        return phone, contact_id
    try:
        canonical = canonical_phone(to)
    except Problem as problem:
        raise field_refused(problem.code, "/to", problem.detail) from None
    if phone is not None and canonical != phone:
        raise field_refused(
            "RECIPIENT_MISMATCH", "/to", "`to` is not the phone of the contact `contactId`: leave one of them out."
        )
    return canonical, contact_id


def _variables(given: Sequence[str] | None, count: int) -> tuple[str | None, str | None]:
    """The variables as JSON, and what is wrong with them (C15.2.1)."""
    given = given or ()
    if len(given) != count:
        return None, f"The template takes {counted(count, 'variable')}; `templateVars` has {len(given)}."
    if not all(given):
        return None, "`templateVars` must not hold an empty text."
    return (orjson.dumps(given).decode() if given else None), None


def _text(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
