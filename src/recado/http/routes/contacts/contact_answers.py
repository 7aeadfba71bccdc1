"""What the operations on contacts answer (C12.1)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import CompanyRole, DebtStatus
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CursorPage, Page
from recado.http.routes.contacts.contact_models import Source


class DebtGroupOut(ApiModel):
    """A debt group of a contact; its phones are masked without `pii:full`."""

    id: str
    company: str
    phones: list[str]
    amount_cents: int | None = None
    status: DebtStatus | None = None
    reference: str | None = None


class OwnedGroupOut(DebtGroupOut):
    """A debt group, and whose it is."""

    contact_id: str


class DebtorGroupPage(Page[OwnedGroupOut]):
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


class Documents(ApiModel):
    """Documents, masked."""

    cpf: str | None = None
    cnpj: str | None = None
    nascimento: str | None = None


Cipher = Annotated[
    str | None,
    Field(description="That there is one: opaque, encrypted with a key of the installation, which no answer gives."),
]


class ContactOut(ApiModel):
    """A contact; its phone is masked without `pii:full`."""

    id: str
    organization_id: str
    phone: str
    phone_hash: Annotated[
        str | None, Field(description="SHA-256. Absent without `pii:full` where the organization hides it.")
    ] = None
    name: str | None = None
    email: str | None = None
    avatar_url: str | None = None
    chatapp_profile_name: str | None = None
    cpf_cipher: Cipher = None
    cnpj_cipher: Cipher = None
    birth_date_cipher: Cipher = None
    attributes: dict[str, Any]
    debtor_groups: list[DebtGroupOut] | None = None
    tags: list[str]
    opt_in: OptInOut
    source: Source
    external_id: str | None = None
    external_ids: dict[str, str] | None = None
    company_id: str | None = None
    papel_na_empresa: CompanyRole | None = None
    last_interaction_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp


class ContactDetail(ContactOut):
    """One contact."""

    documentos: Documents | None = None


class Warning(ApiModel):  # noqa: A001 - the name that it has in the answer
    """A parameter that was not obeyed."""

    code: Literal["FILTER_DROPPED"]
    parameter: str
    detail: str


class ContactPage(Page[ContactOut]):
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
