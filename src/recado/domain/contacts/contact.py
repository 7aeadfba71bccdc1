"""A contact's values: their limits, and how its tags and addresses compare (C12.2)."""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256
from typing import Final

MOST_ATTRIBUTES: Final = 100
MOST_TAGS: Final = 100
MOST_TAG: Final = 64
MOST_GROUPS: Final = 20
MOST_GROUP_PHONES: Final = 20
MOST_NAME: Final = 200
MOST_EMAIL: Final = 254
MOST_EXTERNAL_ID: Final = 255
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


def email_key(address: str) -> str:
    """How addresses compare (C2.4)."""
    return address.lower()


def email_hash(organization_id: str, address: str) -> bytes:
    """SHA-256 (32 bytes) of organization id, a colon, and the address in lower case: as in the registry (C30.2)."""
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
