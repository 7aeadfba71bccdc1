"""What makes the recipients of a batch acceptable, one pass over all of them (C15.5).

What concerns the whole batch is refused as for a single message (`acceptance_rules.py`); what concerns one recipient
leaves that one out, with its reason.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from recado.domain.batches.batch import DUPLICATE, MAX_ERRORS
from recado.domain.billing.prices import region_of
from recado.domain.channels.address import AddressKind, canonical
from recado.domain.channels.policies import address_kind, given_recipient
from recado.domain.contacts.consent import refusal_to_send
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import CONTACT
from recado.domain.core.json_text import json_or_none, json_text
from recado.domain.core.metadata import metadata_errors
from recado.domain.core.phones import recipient_hash
from recado.domain.core.references import no_such
from recado.domain.core.steps import Steps
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import BatchTerms, Misfit, RenderedContent
from recado.services.messages.acceptance_rules import REFUSED
from recado.storage.batches.batch_rows import Recipients
from recado.storage.messages.recipients import Recipient

ELSEWHERE: Final = "ROUTE_NOT_AVAILABLE"
"""Why a phone of a region is left out to which its messages do not go."""
SUPPRESSED: Final = "RECIPIENT_SUPPRESSED"
"""Why an address is left out that gets nothing, whatever its person consented to."""


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
            "skipped_reasons": json_text(self.reasons),
            "errors": json_text(self.errors),
        }


@dataclass(slots=True)
class AcceptedRecipients:
    """The recipients that get a message. `places`: where each stood in the request."""

    recipients: Recipients
    places: list[int]
    left_out: LeftOut


def accept_recipients(
    draft: BatchDraft, terms: BatchTerms, contacts: Mapping[str, str | None]
) -> Steps[AcceptedRecipients]:
    """Take the recipients, each address once. `contacts`: addresses by id, None: it has none."""
    organization_id, kind = draft.organization_id, address_kind(draft.channel)
    read = partial(given_recipient, draft.channel)
    usual, member, content_of = terms.usual, terms.member, terms.content
    folds, region = kind is AddressKind.EMAIL, terms.region
    common_metadata = json_or_none(draft.metadata)
    addresses: dict[str, str] = {}
    hashes: list[int] = []
    texts: list[str | None] = []
    rendered: list[RenderedContent] = []
    metadata: list[str | None] = []
    places: list[int] = []
    contact_ids: list[str | None] = []
    left_out = LeftOut()
    for place, given in enumerate(draft.recipients):
        if place and not place % terms.in_a_turn:
            yield
        try:
            address, contact_id = _address_of(given, contacts, kind, read)
        except Problem as problem:
            left_out.add(_path(place, problem.errors[0].path), problem.code, problem.detail)
            continue
        if region is not None and region_of(address) != region:
            left_out.add(_path(place), ELSEWHERE, f"The route is for phones of {region}.")
            continue
        key = canonical(kind, address) if folds else address
        if key in addresses:
            left_out.add(_path(place), DUPLICATE, "The recipient is in the list before.")
            continue
        own = None if member is None else given.get(member)
        content = usual if own is None else content_of(own)
        if isinstance(content, Misfit):
            left_out.add(_path(place, f"/{member}"), content.code, content.message)
            continue
        attached = given.get("metadata")
        if attached is not None and (wrong := metadata_errors(attached, "")):
            left_out.add(_path(place, f"/metadata{wrong[0].path}"), "METADATA_INVALID", wrong[0].message)
            continue
        addresses[key] = address
        hashes.append(recipient_hash(organization_id, key))
        if isinstance(content, RenderedContent):
            rendered.append(content)
            content = None
        texts.append(content)
        metadata.append(common_metadata if attached is None else json_or_none(attached))
        places.append(place)
        contact_ids.append(contact_id)
    recipients = Recipients(
        list(addresses.values()),
        hashes,
        texts,
        metadata,
        contact_ids=contact_ids if contacts else None,
    )
    if rendered:
        recipients.payloads = [content.payload for content in rendered]
        recipients.units = [content.units for content in rendered]
        recipients.details = [content.details for content in rendered]
    return AcceptedRecipients(recipients, places, left_out)


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


def without_suppressed(accepted: AcceptedRecipients, addresses: Collection[str]) -> None:
    """Leave out these addresses: they are suppressed (C10.5)."""
    _leave_out(accepted, [SUPPRESSED if each in addresses else None for each in accepted.recipients.phones])


_TEXTS = {
    **REFUSED,
    SUPPRESSED: "The address is suppressed.",
    "WINDOW_CLOSED": "The recipient has not written to this number in the last 24 hours.",
}


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


def _address_of(
    given: Mapping[str, Any], contacts: Mapping[str, str | None], kind: AddressKind, read: Callable[[str], str]
) -> tuple[str, str | None]:
    """Address and contact of a recipient; Problem, with its place in the recipient, when it has none (C15.2)."""
    to, contact_id = given.get("to"), given.get("contactId")
    if to is None and contact_id is None:
        raise field_refused("RECIPIENT_MISSING", "", "The recipient is empty: give `to` or `contactId`.")
    address = None if contact_id is None else contacts.get(contact_id)
    if contact_id is not None and contact_id not in contacts:
        raise field_refused("REFERENCE_NOT_FOUND", "/contactId", no_such(CONTACT, contact_id, ""))
    if contact_id is not None and address is None:
        raise field_refused("RECIPIENT_MISSING", "/contactId", f"The contact has no {kind}.")
    if to is None:
        assert address is not None  # noqa: S101 - one of the two is there
        return address, contact_id
    try:
        stored = read(to)
    except Problem as problem:
        raise field_refused(problem.code, "/to", problem.detail) from None
    if address is not None and stored != address:
        message = f"`to` is not the {kind} of the contact `contactId`: leave one of them out."
        raise field_refused("RECIPIENT_MISMATCH", "/to", message)
    return stored, contact_id
