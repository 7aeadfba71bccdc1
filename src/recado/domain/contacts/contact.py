"""A contact: the record, the table of its fields, and how its values compare (C12.2).

A new field of plain text is an attribute of `Contact`, a line of `FIELDS` and a column of a migration: bodies, answers,
imports, SQL and the catalogue are made of those.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum, auto
from hashlib import sha256
from typing import Any, Final

from recado.domain.contacts.consent import CONSENT_FIELDS, Consent, ConsentStatus
from recado.domain.core.ids import Identified
from recado.domain.core.mail_domains import ascii_domain
from recado.domain.core.phones import recipient_hash

MOST_ATTRIBUTES: Final = 100
MOST_TAGS: Final = 100
MOST_TAG: Final = 64
MOST_GROUPS: Final = 20
MOST_GROUP_PHONES: Final = 20
MOST_NAME: Final = 200
MOST_EMAIL: Final = 254
MOST_EXTERNAL_ID: Final = 255
MOST_AVATAR: Final = 65_536
MOST_ID: Final = 64
MOST_QUERY: Final = 100

INTEGRATIONS: Final = ("integration_a", "integration_b", "integration_c", "integration_d")


class ContactSource(StrEnum):
    """How a contact was born. `webhook`, by an inbound message, cannot be sent by a caller."""

    MANUAL = "manual"
    IMPORT = "import"
    API = "api"
    WEBHOOK = "webhook"


GIVEN_SOURCES: Final = (ContactSource.MANUAL, ContactSource.IMPORT, ContactSource.API)


class CompanyRole(StrEnum):
    """A contact's part in its company (`papelNaEmpresa`)."""

    DECISOR = "decisor"
    FINANCEIRO = "financeiro"
    OPERACAO = "operacao"
    OUTRO = "outro"


class DebtStatus(StrEnum):
    """How a debt stands."""

    VENCIDA = "vencida"
    EM_ATRASO = "em_atraso"
    EM_DIA = "em_dia"


@dataclass(slots=True, kw_only=True)
class Contact(Identified):
    """One contact. `phone` is canonical; `external_ids` by integration; `opt_in_*`: see `consent`.

    Each attribute is a column. Not frozen only because a frozen one takes 4 µs more to make; nothing changes one.
    """

    organization_id: str
    env: str
    id: str
    phone: str = field(repr=False)
    phone_hash: bytes = field(repr=False)
    name: str | None = field(default=None, repr=False)
    chatapp_profile_name: str | None = field(default=None, repr=False)
    chatapp_user_id: str | None = field(default=None, repr=False)  # as the provider names its phone (C28.6)
    email: str | None = field(default=None, repr=False)
    avatar_url: str | None = field(default=None, repr=False)
    cpf_cipher: str | None = field(default=None, repr=False)
    cnpj_cipher: str | None = field(default=None, repr=False)
    birth_date_cipher: str | None = field(default=None, repr=False)
    cpf_index: bytes | None = field(default=None, repr=False)
    cnpj_index: bytes | None = field(default=None, repr=False)
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tags: tuple[str, ...] = ()
    source: str = ContactSource.MANUAL.value
    external_id: str | None = None
    external_ids: Mapping[str, str] = field(default_factory=dict)
    social_identities: tuple[str, ...] = field(default=(), repr=False)  # as `SocialIdentity.stored`
    company_id: str | None = None
    company_role: str | None = None
    opt_in_status: ConsentStatus = ConsentStatus.UNKNOWN
    opt_in_source: str | None = None
    opt_in_at: datetime | None = None
    opt_in_ip: str | None = field(default=None, repr=False)
    opt_in_user_agent: str | None = field(default=None, repr=False)
    opt_in_revoked_at: datetime | None = None
    opt_in_revoked_reason: str | None = field(default=None, repr=False)
    last_interaction_at: datetime | None = None
    revision: int = 1
    updated_at: datetime

    @property
    def consent(self) -> Consent:
        """What it consented to (C12.5)."""
        return Consent(
            self.opt_in_status,
            source=self.opt_in_source,
            at=self.opt_in_at,
            ip=self.opt_in_ip,
            user_agent=self.opt_in_user_agent,
            revoked_at=self.opt_in_revoked_at,
            revoked_reason=self.opt_in_revoked_reason,
        )

    @property
    def recipient_hash(self) -> int:
        """What `messages.recipient_hash` holds for messages to its phone."""
        return recipient_hash(self.organization_id, self.phone)


def consent_columns(consent: Consent) -> dict[str, Any]:
    """The attributes of a contact that hold `consent`, for `dataclasses.replace`."""
    return {f"opt_in_{name}": getattr(consent, name) for name in CONSENT_FIELDS.values()}


# The fields ---------------------------------------------------------------------------------------------------------


class Kind(Enum):
    """What a field holds: how it is read, described and shown."""

    TEXT = auto()
    ID = auto()  # of another record
    PHONE = auto()
    EMAIL = auto()
    PICTURE = auto()  # an address, or a data URI
    DOCUMENT = auto()  # stored encrypted, shown as a cipher
    ROLE = auto()
    SOURCE = auto()
    MOMENT = auto()
    TAGS = auto()
    ATTRIBUTES = auto()
    CONSENT = auto()
    INTEGRATIONS = auto()
    GROUPS = auto()
    IDENTITIES = auto()


NESTED: Final = frozenset({Kind.ATTRIBUTES, Kind.CONSENT, Kind.INTEGRATIONS, Kind.GROUPS, Kind.IDENTITIES})
"""Objects, and lists of them: a cell of a table holds none as a whole."""


@dataclass(frozen=True, slots=True)
class ContactFieldSpec:
    """A field of contacts. `name`: among given values, and of the attribute of `Contact`; `key`: as callers name it.

    `most`: characters. `always`: every contact has it, so that nothing clears it. `given`: by callers, at birth and
    later. `label`: in the catalogue (C12.8). `about`, `format`: in the API's description.
    """

    name: str
    key: str
    kind: Kind
    most: int = 0
    always: bool = False
    given: bool = True
    label: str | None = None
    about: str | None = None
    format: str | None = None

    @property
    def column(self) -> str:
        """The attribute that holds what is shown of it."""
        return f"{self.name}_cipher" if self.kind is Kind.DOCUMENT else self.name

    @property
    def shown_as(self) -> str:
        """Its name in answers."""
        return f"{self.key}Cipher" if self.kind is Kind.DOCUMENT else self.key


FIELDS: Final = (
    ContactFieldSpec("name", "name", Kind.TEXT, MOST_NAME, label="Name"),
    ContactFieldSpec("phone", "phone", Kind.PHONE, always=True, label="Phone"),
    ContactFieldSpec("email", "email", Kind.EMAIL, MOST_EMAIL, label="E-mail", format="email"),
    ContactFieldSpec(
        "chatapp_profile_name", "chatappProfileName", Kind.TEXT, given=False, label="Chat-app profile name"
    ),
    ContactFieldSpec(
        "avatar_url", "avatarUrl", Kind.PICTURE, MOST_AVATAR,
        about="http(s) without user info, or a picture as a data URI.",
    ),
    ContactFieldSpec("cpf", "cpf", Kind.DOCUMENT, about="With or without mask. Stored encrypted, never given back."),
    ContactFieldSpec("cnpj", "cnpj", Kind.DOCUMENT, about="With or without mask; letters allowed."),
    ContactFieldSpec("birth_date", "birthDate", Kind.DOCUMENT, format="date"),
    ContactFieldSpec("attributes", "attributes", Kind.ATTRIBUTES, always=True),
    ContactFieldSpec("tags", "tags", Kind.TAGS, always=True, label="Tags"),
    ContactFieldSpec("opt_in", "optIn", Kind.CONSENT, always=True, label="Consent"),
    ContactFieldSpec("source", "source", Kind.SOURCE, always=True, label="Source"),
    ContactFieldSpec("external_id", "externalId", Kind.TEXT, MOST_EXTERNAL_ID, label="External id"),
    ContactFieldSpec("external_ids", "externalIds", Kind.INTEGRATIONS),
    ContactFieldSpec("company_id", "companyId", Kind.ID, MOST_ID, label="Company", about="Prefix emp_"),
    ContactFieldSpec("company_role", "papelNaEmpresa", Kind.ROLE, label="Role in the company"),
    ContactFieldSpec("debtor_groups", "debtorGroups", Kind.GROUPS),
    ContactFieldSpec("social_identities", "socialIdentities", Kind.IDENTITIES, given=False),
    ContactFieldSpec("created_at", "createdAt", Kind.MOMENT, always=True, given=False, label="Created at"),
    ContactFieldSpec("last_interaction_at", "lastInteractionAt", Kind.MOMENT, given=False, label="Last interaction at"),
)  # fmt: skip

TEXTS: Final = tuple(each for each in FIELDS if each.kind is Kind.TEXT and each.given)
"""Fields of plain text."""


# How values compare -------------------------------------------------------------------------------------------------


def email_key(address: str) -> str:
    """How addresses compare (C2.4): in lower case, and the domain as mail servers are told it."""
    if address.isascii():
        return address.lower()
    local, at, domain = address.rpartition("@")
    with suppress(ValueError):  # nothing is sent to what is no domain
        domain = ascii_domain(domain)
    return f"{local}{at}{domain}".lower()


def email_hash(organization_id: str, address: str) -> bytes:
    """SHA-256 (32 bytes) of organization id, a colon, and the key of the address: as in the registry (C30.2)."""
    return sha256(f"{organization_id}:{email_key(address)}".encode()).digest()


def tag_key(tag: str) -> str:
    """How tags compare: without case."""
    return tag.casefold()


def tags_united(*each: Iterable[str]) -> tuple[str, ...]:
    """The tags of all, in order; of those that differ in case only the first spelling stays."""
    found: dict[str, str] = {}
    for tags in each:
        for tag in tags:
            found.setdefault(tag_key(tag), tag)
    return tuple(found.values())


def tags_without(tags: Iterable[str], removed: Iterable[str]) -> tuple[str, ...]:
    """The tags that are not among those removed, whatever their case."""
    keys = {tag_key(tag) for tag in removed}
    if not keys:
        return tuple(tags)
    return tuple(tag for tag in tags if tag_key(tag) not in keys)
