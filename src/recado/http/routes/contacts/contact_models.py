"""Bodies and parameters of the operations on contacts (C12.1, C12.2).

What callers send is described here and read by `contact_input.py`, which an import uses as well: the models pass
the document on as it came.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, create_model, model_validator
from pydantic.alias_generators import to_snake

from recado.domain.channels.address import LONGEST_USER_ID
from recado.domain.contacts.consent import MOST_REASON, MOST_SOURCE, MOST_USER_AGENT, ConsentStatus
from recado.domain.contacts.contact import (
    FIELDS,
    INTEGRATIONS,
    MOST_ATTRIBUTES,
    MOST_EXTERNAL_ID,
    MOST_GROUP_PHONES,
    MOST_GROUPS,
    MOST_QUERY,
    MOST_TAG,
    MOST_TAGS,
    CompanyRole,
    ContactFieldSpec,
    DebtStatus,
    Kind,
)
from recado.domain.contacts.debts import MOST_CENTS, MOST_COMPANY, MOST_REFERENCE
from recado.domain.contacts.social_identities import MOST_IDENTITIES, MOST_USER_ID
from recado.http.api.models import ApiModel, QueryInt, Timestamp, unset
from recado.http.api.paging import MOST_SKIPPED, CursorQuery, PageQuery
from recado.http.routes.core.emails import KnownEmail

_VALUE = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 50},
    ]
}
_ATTRIBUTES = {
    "type": "object",
    "maxProperties": MOST_ATTRIBUTES,
    "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,63}$"},
    "additionalProperties": _VALUE,
}
_INTEGRATION_IDS = {
    "type": ["object", "null"],
    "properties": {name: {"type": ["string", "null"], "maxLength": MOST_EXTERNAL_ID} for name in INTEGRATIONS},
}

Id = Annotated[str, Field(min_length=1, max_length=64)]
Phone = Annotated[str, Field(min_length=1, examples=["+5511987654321"])]
Tag = Annotated[str, Field(min_length=1, max_length=MOST_TAG)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS)]
Attributes = Annotated[Any, Field(json_schema_extra=_ATTRIBUTES)]
AnyAttributes = Annotated[Any, Field(json_schema_extra=_ATTRIBUTES | {"type": ["object", "null"]})]
IntegrationIds = Annotated[Any, Field(json_schema_extra=_INTEGRATION_IDS)]
Source = Literal["manual", "import", "api", "webhook"]
GivenSource = Literal["manual", "import", "api"]


M = TypeVar("M", bound=BaseModel)


def with_fields(types: Mapping[str, Any]) -> Callable[[type[M]], type[M]]:
    """Give a model these fields as well, each by the name that callers use, and none of them required."""

    def extend(model: type[M]) -> type[M]:
        fields: dict[str, Any] = {to_snake(name): (type_, None) for name, type_ in types.items()}
        return create_model(
            model.__name__, __base__=model, __doc__=model.__doc__, __module__=model.__module__, **fields
        )

    return extend


class DebtGroupIn(ApiModel):
    """A debt group; its `id` is kept when it is sent."""

    id: Id | None = None
    company: Annotated[str, Field(min_length=1, max_length=MOST_COMPANY)]
    phones: Annotated[list[Phone], Field(min_length=1, max_length=MOST_GROUP_PHONES)]
    amount_cents: Annotated[int, Field(ge=0, le=MOST_CENTS)] | None = None
    status: DebtStatus | None = None
    reference: Annotated[str, Field(min_length=1, max_length=MOST_REFERENCE)] | None = None


class SocialIdentityIn(ApiModel):
    """Whom the contact is at a social account."""

    social_account_id: Id
    user_id: Annotated[str, Field(min_length=1, max_length=MOST_USER_ID)]


class OptInChange(ApiModel):
    """A change of consent. The dates count for API keys; of a session, address and user agent are the request's."""

    status: ConsentStatus
    source: Annotated[str, Field(max_length=MOST_SOURCE)] | None = None
    at: Timestamp | None = None
    ip: Annotated[str, Field(max_length=45)] | None = None
    user_agent: Annotated[str, Field(max_length=MOST_USER_AGENT)] | None = None
    revoked_at: Timestamp | None = None
    revoked_reason: Annotated[str, Field(max_length=MOST_REASON)] | None = None


def _given(field: ContactFieldSpec) -> Any:
    """What a body may say of a field that it can clear."""
    match field.kind:
        case Kind.INTEGRATIONS:
            return IntegrationIds
        case Kind.ROLE:
            return CompanyRole | None
        case Kind.GROUPS:
            return Annotated[list[DebtGroupIn], Field(max_length=MOST_GROUPS)] | None
    told = Field(
        min_length=1 if field.kind in (Kind.TEXT, Kind.ID) else None,
        max_length=field.most or None,
        description=field.about,
        json_schema_extra=None if field.format is None else {"format": field.format},
    )
    return Annotated[str, told] | None


@with_fields({each.key: _given(each) for each in FIELDS if each.given and not each.always})
class ContactInput(ApiModel):
    """What a contact may be given, at birth and later."""

    @model_validator(mode="wrap")
    @classmethod
    def _as_it_came(cls, document: Any, _: Callable[[Any], Any]) -> Any:
        return document


class ContactCreate(ContactInput):
    """A new contact."""

    phone: Phone
    attributes: AnyAttributes = None
    tags: Tags | None = None
    opt_in: OptInChange | None = None
    source: GivenSource | None = None


class ContactPatch(ContactInput):
    """A change: an absent field stays, `null` clears it. `attributes` and `externalIds` merge key by key."""

    phone: Annotated[str, Field(description="Only the one that the contact has.")] = unset()
    attributes: Attributes = unset()
    remove_attributes: (
        Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=MOST_ATTRIBUTES)] | None
    ) = None
    tags: Annotated[list[Tag], Field(max_length=MOST_TAGS, description="In place of all.")] = unset()
    add_tags: Tags | None = None
    remove_tags: Tags | None = None
    opt_in: OptInChange = unset()
    social_identities: (
        Annotated[
            list[SocialIdentityIn],
            Field(
                max_length=MOST_IDENTITIES, description="In place of all. What they wrote before becomes the contact's."
            ),
        ]
        | None
    ) = None
    source: Annotated[Source, Field(description="Only the one that the contact has.")] = unset()


class OptOut(ApiModel):
    """Who wants nothing more: exactly one of the five."""

    contact_id: Id | None = None
    external_id: Annotated[str, Field(min_length=1, max_length=MOST_EXTERNAL_ID)] | None = None
    phone: Phone | None = None
    email: KnownEmail | None = None
    chatapp_user_id: (
        Annotated[str, Field(min_length=1, max_length=LONGEST_USER_ID, examples=["BR.1502576394655843"])] | None
    ) = None
    at: Timestamp | None = None
    reason: Annotated[str, Field(min_length=1, max_length=MOST_REASON)] | None = None
    source: Annotated[str, Field(min_length=1, max_length=MOST_SOURCE)] | None = None


class ContactQuery(CursorQuery):
    """Filters of the list of contacts."""

    skip: Annotated[QueryInt, Field(ge=0, le=MOST_SKIPPED, description="A cursor makes it void.")] = 0
    tag: Annotated[str | None, Field(min_length=1, max_length=MOST_TAG)] = None
    opt_in_status: ConsentStatus | None = None
    source: Source | None = None
    external_id: Annotated[str | None, Field(min_length=1, max_length=MOST_EXTERNAL_ID)] = None
    list_id: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    q: Annotated[
        str | None,
        Field(min_length=1, max_length=MOST_QUERY, description="Dropped, with a warning, without `pii:full`."),
    ] = None
    updated_since: Annotated[
        Timestamp | None,
        Field(
            description="Inclusive; the list is then in the order of changes. To synchronize, begin each round a "
            "minute before the last `updatedAt` of the one before: it is when a change began, and a change that takes "
            "longer to be stored is seen after younger ones."
        ),
    ] = None
    documento: Annotated[
        str | None, Field(min_length=1, max_length=32, description="A CPF or CNPJ; sessions with `contacts:pii` only.")
    ] = None

    @property
    def searches(self) -> bool:
        """No list is in the order of these filters; a static list is in that of its members only."""
        narrowed = self.list_id and (self.external_id or self.updated_since or self.documento)
        return super().searches or any((self.tag, self.opt_in_status, self.source, narrowed))


class DebtorGroupQuery(PageQuery):
    """Filters of the list of debt groups."""

    status: DebtStatus | None = None
    company: Annotated[str | None, Field(min_length=1, max_length=MOST_COMPANY, description="A part of it.")] = None
    contact_id: Annotated[str | None, Field(min_length=1, max_length=64)] = None
