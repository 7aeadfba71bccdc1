"""What callers send to and receive from the operations on e-mail messages (C10.1)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from recado.domain.channels.email import EmailReason
from recado.domain.contacts.contact import MOST_EMAIL
from recado.domain.core.errors import FieldError
from recado.domain.email.mailbox import ADDRESS, mailbox_of
from recado.http.api.models import BLANK_IS_NONE, ApiModel
from recado.http.api.paging import CountedPage, MessagePageQuery
from recado.http.routes.core.emails import KnownEmail
from recado.http.routes.email.part_texts import ON_ONE_LINE, GivenHtml, GivenText, Subject
from recado.http.routes.email.template_models import Values
from recado.http.routes.messages.message_models import Billing, Id, Metadata
from recado.services.messages.email_rules import AskedEmail

EmailStatus = Literal["queued", "sent", "delivered", "bounced", "complained", "failed"]


def _mailbox(text: str) -> str:
    found = mailbox_of(text)
    if found is None or len(found.address) > MOST_EMAIL:
        raise PydanticCustomError("invalid", "must be an address, or a name with an address in angle brackets")
    return text


From = Annotated[
    str,
    Field(max_length=MOST_EMAIL + 123, pattern=ON_ONE_LINE, examples=["Example <hello@example.com>"]),
    AfterValidator(_mailbox),
]


_NO_CONTENT: Final = "needs html or text, or templateId"
_NO_SUBJECT: Final = "is required where there is no template"


class CreateEmail(ApiModel):
    """The body of POST /v2/email/messages: one e-mail to one address, of a template or as it is given."""

    to: Annotated[str, Field(max_length=MOST_EMAIL, pattern=ADDRESS, examples=["ana@example.com"])]
    subject: Annotated[
        Subject | None, Field(description="Needed without a template; with one in the place of its own.")
    ] = None
    template_id: Id | None = None
    variables: Annotated[Values, Field(description="Of the template. Without one they do nothing.")] = Field(
        default_factory=dict
    )
    html: GivenHtml | None = None
    text: Annotated[GivenText, BLANK_IS_NONE] | None = None
    from_: Annotated[From | None, Field(alias="from", description="Without it the default sender.")] = None
    contact_id: Id | None = None
    campaign_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")] | None = None
    metadata: Metadata = None
    transactional: Annotated[
        bool,
        Field(description="It answers what the person did: not subject to consent, and nothing to unsubscribe from."),
    ] = False
    tracking: Annotated[
        bool | None, Field(description="Whether links and opens are tracked: by default unless `transactional`.")
    ] = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        given = self.html is not None or self.text is not None
        if self.template_id is not None and given:
            raise PydanticCustomError("invalid", "has a template or its own html and text, not both")
        if self.template_id is None and not given:
            raise PydanticCustomError("invalid", _NO_CONTENT)
        if self.template_id is None and self.subject is None:
            raise PydanticCustomError("missing", _NO_SUBJECT, {"member": "subject"})
        return self

    @classmethod
    def missing_beside(cls, document: Mapping[str, Any]) -> list[FieldError]:
        if document.get("templateId") is not None:
            return []
        text = document.get("text")
        blank = text is None or (isinstance(text, str) and not text.strip())  # as `BLANK_IS_NONE` has it
        return [
            *([FieldError("", "INVALID", _NO_CONTENT)] if blank and document.get("html") is None else ()),
            *([FieldError("/subject", "REQUIRED", _NO_SUBJECT)] if document.get("subject") is None else ()),
        ]

    @property
    def asked(self) -> AskedEmail:
        """What only the rules of e-mail read."""
        return AskedEmail(
            from_mailbox=None if self.from_ is None else mailbox_of(self.from_),
            subject=self.subject,
            html=self.html,
            text=self.text,
            variables=self.variables,
            transactional=self.transactional,
            tracking=self.tracking,
        )


class EmailQuery(MessagePageQuery):
    """Filters of GET /v2/email/messages."""

    status: EmailStatus | None = None
    to: Annotated[KnownEmail | None, Field(description="Exact, in any case. Needs no `pii:full`.")] = None
    campaign_id: Annotated[str, StringConstraints(strip_whitespace=False)] | None = None

    @property
    def searches(self) -> bool:
        """An address is looked for along the history."""
        return super().searches or self.to is not None


class EmailModel(ApiModel):
    """One e-mail that went out; fields without value are absent. `bodyBytes`: of html and text, which nobody keeps."""

    id: str
    organization_id: str
    env: Literal["live", "test"]
    to: str
    from_: Annotated[str | None, Field(alias="from")] = None
    subject: str | None = None
    body_bytes: int
    status: EmailStatus
    reason: EmailReason | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, str | float | bool] | None = None
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    failed_at: datetime | None = None
    opened_at: Annotated[datetime | None, Field(description="The first time.")] = None
    clicked_at: Annotated[datetime | None, Field(description="The first time, on any of its links.")] = None
    created_at: datetime
    updated_at: datetime


class CreatedEmail(ApiModel):
    """The answer to a send. `replayed`: the Idempotency-Key had made this message before (C6.2)."""

    id: str
    status: EmailStatus
    env: Literal["live", "test"]
    to: str
    from_: Annotated[str | None, Field(alias="from")] = None
    subject: str | None = None
    body_bytes: int
    replayed: bool
    billing: Billing | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, str | float | bool] | None = None
    created_at: datetime
    sent_at: datetime | None = None


class EmailList(CountedPage[EmailModel]):
    """E-mail messages, newest first."""
