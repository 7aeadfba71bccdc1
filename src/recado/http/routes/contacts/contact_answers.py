"""Contacts as callers see them (C12.1): what the operations answer, and how it is rendered.

What has no value is absent, phones are masked without `pii:full` (C2.3.2, C2.5).
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from recado.domain.contacts.consent import CONSENT_FIELDS, ConsentStatus
from recado.domain.contacts.contact import FIELDS, CompanyRole, Contact, DebtStatus, Kind
from recado.domain.contacts.debts import DebtGroup
from recado.domain.contacts.social_identities import SocialIdentity
from recado.domain.core.masking import mask_phone, mask_social_id
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CountedPage, CursorPage
from recado.http.routes.contacts.contact_models import Source, with_fields
from recado.http.routes.core.views import view_of, view_with
from recado.storage.contacts.contact_consents import ConsentEntry


class DebtGroupOut(ApiModel):
    """A debt group of a contact; its phones are masked without `pii:full`."""

    id: str
    company: str
    phones: list[str]
    amount_cents: int | None = None
    status: DebtStatus | None = None
    reference: str | None = None


class SocialIdentityOut(ApiModel):
    """Whom the contact is at a social account; `userId` is masked without `pii:full`."""

    social_account_id: str
    user_id: str


class OwnedGroupOut(DebtGroupOut):
    """A debt group, and whose it is."""

    contact_id: str


class DebtorGroupPage(CountedPage[OwnedGroupOut]):
    """Debt groups, newest first."""


class OptInOut(ApiModel):
    """What the contact consented to."""

    status: ConsentStatus
    source: str | None = None
    at: Timestamp | None = None
    ip: str | None = None
    user_agent: str | None = None
    revoked_at: Timestamp | None = None
    revoked_reason: str | None = None


class _Documents(ApiModel):
    """Documents, masked."""

    cpf: str | None = None
    cnpj: str | None = None
    nascimento: str | None = None


_CIPHER = Field(
    description="That there is one: opaque, encrypted with a key of the installation, which no answer gives."
)
_TYPES: Final = {
    Kind.DOCUMENT: Annotated[str | None, _CIPHER],
    Kind.ROLE: CompanyRole | None,
    Kind.MOMENT: Timestamp | None,
}
_SHOWN: Final = [
    each for each in FIELDS if not each.always and each.kind not in (Kind.INTEGRATIONS, Kind.GROUPS, Kind.IDENTITIES)
]
"""What is shown only where there is something."""


@with_fields({each.shown_as: _TYPES.get(each.kind, str | None) for each in _SHOWN})
class ContactOut(ApiModel):
    """A contact; its phone is masked without `pii:full`."""

    id: str
    organization_id: str
    phone: str
    phone_hash: Annotated[
        str | None, Field(description="SHA-256. Absent without `pii:full` where the organization hides it.")
    ] = None
    attributes: dict[str, Any]
    debtor_groups: list[DebtGroupOut] | None = None
    tags: list[str]
    opt_in: OptInOut
    source: Source
    external_ids: dict[str, str] | None = None
    social_identities: list[SocialIdentityOut] | None = None
    chatapp_user_id: Annotated[
        str | None,
        Field(description="How the chat app names the contact to the business; masked without `pii:full`."),
    ] = None
    created_at: Timestamp
    updated_at: Timestamp


class ContactDetail(ContactOut):
    """One contact."""

    documentos: _Documents | None = None


class Warning(ApiModel):  # noqa: A001 - the name that it has in the answer
    """A parameter that was not obeyed."""

    code: Literal["FILTER_DROPPED"]
    parameter: str
    detail: str


class ContactPage(CountedPage[ContactOut]):
    """Contacts, newest first."""

    warnings: Annotated[list[Warning], Field(description="Absent when every filter was obeyed.")] = Field(
        default_factory=list
    )


class ConsentOut(ApiModel):
    """One change of consent. `from` is absent of the one that the contact was created with."""

    from_: Annotated[ConsentStatus | None, Field(alias="from")] = None
    to: ConsentStatus
    at: Timestamp
    data_informada: bool
    source: str | None = None
    ip: str | None = None
    user_agent: str | None = None
    revoked_reason: str | None = None
    recorded_at: Timestamp


class ConsentHistory(CursorPage[ConsentOut]):
    """Newest first."""


class ContactField(ApiModel):
    """A field of contacts. `operators`: of segments; `journeyVariable`: how journeys name it."""

    key: str
    label: str
    type: Literal["text", "number", "boolean", "list", "date", "mixed"]
    origin: Literal["standard", "attribute"]
    operators: list[str]
    journey_variable: str


class ContactFields(ApiModel):
    """The standard fields, then the attributes in use, most used first."""

    items: list[ContactField]


class OptedOutResult(ApiModel):
    """What the opt-out did."""

    contact_id: str | None
    already_opted_out: bool
    executions_cancelled: int
    messages_withdrawn: int


# How they are rendered ----------------------------------------------------------------------------------------------

_COLUMNS: Final = [(each.shown_as, each.column) for each in _SHOWN]
_CONSENT: Final = [(key, f"opt_in_{name}") for key, name in CONSENT_FIELDS.items() if name != "status"]


def _phones(group: DebtGroup, unmasked: bool) -> list[str]:
    return list(group.phones) if unmasked else [mask_phone(phone) for phone in group.phones]


def contact_view(
    contact: Contact, groups: Sequence[DebtGroup] = (), *, unmasked: bool, hashed: bool = True
) -> dict[str, Any]:
    """One contact. `hashed`: with `phoneHash`."""
    view: dict[str, Any] = {
        "id": contact.id,
        "organizationId": contact.organization_id,
        "phone": contact.phone if unmasked else mask_phone(contact.phone),
        **({"phoneHash": contact.phone_hash.hex()} if hashed else {}),
        "attributes": contact.attributes,
        "tags": contact.tags,
        "optIn": _fill({"status": contact.opt_in_status.value}, contact, _CONSENT),
        "source": contact.source,
        "createdAt": contact.created_at,
        "updatedAt": contact.updated_at,
    }
    if groups:
        view["debtorGroups"] = [group_view(group, unmasked) for group in groups]
    if contact.external_ids:
        view["externalIds"] = contact.external_ids
    if contact.social_identities:
        view["socialIdentities"] = [_identity_view(each, unmasked) for each in contact.social_identities]
    if (user_id := contact.chatapp_user_id) is not None:
        view["chatappUserId"] = user_id if unmasked else mask_social_id(user_id)
    return _fill(view, contact, _COLUMNS)


def _identity_view(stored: str, unmasked: bool) -> dict[str, str]:
    account_id, user_id = SocialIdentity.of(stored)
    return {"socialAccountId": account_id, "userId": user_id if unmasked else mask_social_id(user_id)}


group_view = view_with(DebtGroup, DebtGroupOut, phones=_phones)
"""One debt group, for a caller who may see phones or not."""


def masked(view: dict[str, Any], *, hashed: bool) -> dict[str, Any]:
    """A view that was made unmasked, for a caller without `pii:full`."""
    view = view | {"phone": mask_phone(view["phone"])}
    if not hashed:
        del view["phoneHash"]
    if "debtorGroups" in view:
        view["debtorGroups"] = [
            group | {"phones": [mask_phone(phone) for phone in group["phones"]]} for group in view["debtorGroups"]
        ]
    if "socialIdentities" in view:
        view["socialIdentities"] = [
            each | {"userId": mask_social_id(each["userId"])} for each in view["socialIdentities"]
        ]
    if "chatappUserId" in view:
        view["chatappUserId"] = mask_social_id(view["chatappUserId"])
    return view


consent_view = view_of(
    ConsentEntry,
    ConsentOut,
    from_=attrgetter("from_status"),
    to=attrgetter("to_status"),
    data_informada=attrgetter("date_given"),
    revoked_reason=attrgetter("reason"),
)


def _fill(view: dict[str, Any], contact: Contact, fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`view`, with those of the fields that the contact has."""
    for name, attribute in fields:
        value = getattr(contact, attribute)
        if value is not None:
            view[name] = value
    return view
