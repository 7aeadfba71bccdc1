"""The body of POST /messages/bulk for e-mail (C15.5)."""

from typing import Annotated, Final, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypedDict

from recado.domain.batches.batch import MAX_RECIPIENTS
from recado.domain.contacts.contact import MOST_EMAIL
from recado.domain.core.json_size import stored_size
from recado.domain.email.rendering import MOST_VARIABLES, Value
from recado.http.api.models import most_members
from recado.http.routes.email.message_models import From
from recado.http.routes.email.part_texts import Subject
from recado.http.routes.email.template_models import Values, VariableName
from recado.http.routes.messages.bulk_models import MOST_SHARED, BatchBody, BatchContent, check_shared
from recado.http.routes.messages.message_models import Id, Metadata

LONGEST_OWN: Final = 1_024


def _few(values: dict[str, Value]) -> dict[str, Value]:
    check_shared(sum(len(name) + _length(value) for name, value in values.items()))
    return values


def _length(value: Value) -> int:
    return len(value) if isinstance(value, str) else stored_size(value)


OwnValues = Annotated[
    dict[VariableName, Annotated[str, Field(max_length=LONGEST_OWN)] | int | float | bool],
    most_members(MOST_VARIABLES),
]


class EmailRecipient(TypedDict):
    """One recipient. `variables`: of the template, in the place of the values that all have."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        strict=True, str_strip_whitespace=True, extra="ignore", hide_input_in_errors=True
    )

    to: NotRequired[Annotated[str | None, Field(max_length=MOST_EMAIL, examples=["ana@example.com"])]]
    contactId: NotRequired[Id | None]
    variables: NotRequired[OwnValues | None]
    metadata: NotRequired[Metadata]


class CreateEmailBatch(BatchBody):
    """The body of POST /messages/bulk for e-mail: one template, with values of its variables, to one audience."""

    channel: Literal["email"]
    template_id: Id
    subject: Annotated[Subject | None, Field(description="In the place of the template's.")] = None
    variables: Annotated[
        Values,
        AfterValidator(_few),
        Field(description=f"Values that all have, besides their own; at most {MOST_SHARED:,} characters in all."),
    ] = Field(default_factory=dict)
    from_: Annotated[From | None, Field(alias="from", description="Without it the default sender.")] = None
    recipients: (
        Annotated[list[EmailRecipient], Field(min_length=1, max_length=MAX_RECIPIENTS, fail_fast=True)] | None
    ) = None
    campaign_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")] | None = None
    transactional: Annotated[
        bool,
        Field(description="It answers what people did: not subject to consent, and nothing to unsubscribe from."),
    ] = False
    tracking: Annotated[
        bool | None, Field(description="Whether links and opens are tracked: by default unless `transactional`.")
    ] = None

    def shared(self) -> BatchContent:
        given = {"subject": self.subject, "variables": self.variables, "from": self.from_, "tracking": self.tracking}
        asked = {name: value for name, value in given.items() if value is not None}
        if self.transactional:
            asked["transactional"] = True
        return BatchContent(sender_id="", type="template", template_id=self.template_id, details=asked)
