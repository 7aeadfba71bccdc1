"""Bodies and views of templates of e-mails (C10.4). What a text uses is found with the rest, where the body is read."""

from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from recado.domain.email.rendering import LONGEST_VALUE, MIB, MOST_VARIABLES, NAME, EmailPart, names_in
from recado.domain.email.template import EmailTemplateStatus
from recado.http.api.models import BLANK_IS_NONE, ApiModel, PatchModel, Timestamp, most_members, unset
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.routes.core.views import view_of
from recado.http.routes.email.part_texts import Html, PlainText, Subject
from recado.storage.email.templates import EmailTemplate

Name = Annotated[
    str, Field(min_length=1, max_length=120, description="Unique, without regard to case and repeated spaces.")
]
VariableName = Annotated[str, Field(pattern=f"^{NAME}$", examples=["order"])]
Mjml = Annotated[
    str,
    Field(min_length=1, max_length=MIB, description="The source of `html`, made of it where that is not given."),
]


class EmailVariable(ApiModel):
    """A variable. `example` stands for it where no value is given."""

    name: VariableName
    example: Annotated[str, Field(max_length=LONGEST_VALUE)] | None = None


Variables = Annotated[list[EmailVariable], Field(max_length=MOST_VARIABLES, fail_fast=True)]
Values = Annotated[
    dict[VariableName, Annotated[str, Field(max_length=LONGEST_VALUE)] | int | float | bool],
    most_members(MOST_VARIABLES),
]


class EmailTemplateQuery(PageQuery):
    """Filters of GET /v2/email/templates."""

    q: Annotated[str | None, Field(min_length=1, max_length=120, description="A part of the name.")] = None
    status: EmailTemplateStatus | None = None


class EmailTemplateCreate(ApiModel):
    """A new template, with `html` or the `mjml` that it is made of."""

    name: Name
    subject: Subject
    html: Html | None = None
    text: Annotated[PlainText, BLANK_IS_NONE] | None = None
    mjml: Mjml | None = None
    variables: Variables = Field(default_factory=list)
    _names: dict[EmailPart, list[str]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.html is None and self.mjml is None:
            raise PydanticCustomError("invalid", "needs html or mjml")
        self._names = _used(self)
        _check_variables(self.variables)
        return self

    @property
    def names(self) -> dict[EmailPart, list[str]]:
        """What each given part uses."""
        return self._names


class EmailTemplatePatch(PatchModel):
    """Changes of a template; those of its content raise `version`. `html` alone takes the place of what `mjml` made."""

    name: Name = unset()
    subject: Subject = unset()
    html: Html = unset()
    text: Annotated[PlainText, BLANK_IS_NONE] | None = None
    mjml: Mjml | None = None
    variables: Variables = unset()
    _names: dict[EmailPart, list[str]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _find_names(self) -> Self:
        self._names = _used(self)
        if "variables" in self.model_fields_set:
            _check_variables(self.variables)
        return self

    @property
    def names(self) -> dict[EmailPart, list[str]]:
        """What each given part uses."""
        return self._names


class EmailTemplateItem(ApiModel):
    """A template as lists show it."""

    id: str
    organization_id: str
    env: str
    name: str
    subject: str
    variables: list[EmailVariable]
    status: EmailTemplateStatus
    version: int
    created_by_id: str
    created_at: Timestamp
    updated_at: Timestamp


class EmailTemplateOut(EmailTemplateItem):
    """A template."""

    html: str
    text: str | None = None
    mjml: str | None = None


class EmailTemplatePage(CountedPage[EmailTemplateItem]):
    """Templates of e-mails, newest first."""


class EmailPreview(ApiModel):
    """Values to see a template with."""

    variables: Values = Field(default_factory=dict)


class EmailPreviewOut(ApiModel):
    """What an e-mail would hold. `missing`: variables that it uses and that were not given."""

    subject: str
    html: str
    text: str | None = None
    missing: list[str]


template_view = view_of(EmailTemplate, EmailTemplateOut)
template_item_view = view_of(EmailTemplate, EmailTemplateItem)


def stored_variables(variables: list[EmailVariable]) -> tuple[dict[str, Any], ...]:
    """As they are kept: without an example where there is none."""
    return tuple(each.model_dump(exclude_none=True) for each in variables)


def _used(body: EmailTemplateCreate | EmailTemplatePatch) -> dict[EmailPart, list[str]]:
    given = {part: getattr(body, part.value) for part in EmailPart if part.value in body.model_fields_set}
    return {part: [] if text is None else list(names_in(text)) for part, text in given.items()}


def _check_variables(variables: list[EmailVariable]) -> None:
    if len({each.name for each in variables}) < len(variables):
        raise PydanticCustomError("duplicate", "variables names one of them twice")
