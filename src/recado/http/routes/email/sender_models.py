"""Bodies and views of senders of e-mail (C10.4)."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from recado.domain.email.sender import LONGEST_DOMAIN, EmailSenderStatus, domain_of, domain_of_address
from recado.http.api.models import BLANK_IS_NONE, ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage
from recado.http.routes.core.emails import Email
from recado.http.routes.core.views import view_of
from recado.http.routes.email.part_texts import ON_ONE_LINE
from recado.storage.email.senders import EmailSender


def _domain(text: str) -> str:
    found = domain_of(text)
    if found is None:
        raise PydanticCustomError("invalid", "must be a domain such as example.com")
    return found


def _of_a_domain(address: str) -> str:
    if domain_of_address(address) is None:
        raise PydanticCustomError("invalid", "must end with a domain such as example.com")
    return address


Domain = Annotated[str, Field(min_length=1, max_length=LONGEST_DOMAIN), AfterValidator(_domain)]
# What other programs show as the name of who writes: nothing that ends a line of a header.
DisplayName = Annotated[str, Field(max_length=120, pattern=ON_ONE_LINE), BLANK_IS_NONE]


class EmailSenderCreate(ApiModel):
    """A domain, which covers each of its addresses, or a single address."""

    domain: Domain | None = None
    address: Annotated[Email, AfterValidator(_of_a_domain)] | None = None
    display_name: DisplayName | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.domain is None) == (self.address is None):
            raise PydanticCustomError("invalid", "needs exactly one of domain and address")
        return self


class EmailSenderPatch(PatchModel):
    """Changes of a sender. It stops being the default when another one becomes it."""

    display_name: DisplayName | None = None
    is_default: bool = unset()


class DnsRecordOut(ApiModel):
    """What has to stand at the name server of the domain. `found`: whether it did at the last look."""

    type: str
    name: str
    value: str
    found: bool


class EmailSenderOut(ApiModel):
    """A sender."""

    id: str
    domain: str | None = None
    address: str | None = None
    display_name: str | None = None
    status: EmailSenderStatus
    is_default: bool
    dns_records: list[DnsRecordOut]
    verified_at: Timestamp | None = None
    created_at: Timestamp


class EmailSenderPage(CountedPage[EmailSenderOut]):
    """Senders, newest first."""


sender_view = view_of(EmailSender, EmailSenderOut)
