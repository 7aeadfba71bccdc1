"""Bodies and views of static lists and of calls on their members (C7)."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from recado.domain.audience.members import MAX_IDENTIFIERS
from recado.http.api.models import BLANK_IS_NONE, ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.routes.core.views import view_of
from recado.storage.audience.lists import Membership, StaticList

Name = Annotated[
    str, Field(min_length=1, max_length=120, description="Unique, without regard to case and repeated spaces.")
]
Description = Annotated[str, Field(max_length=500), BLANK_IS_NONE]
_Named = Annotated[
    list[str],
    Field(fail_fast=True, description=f"All three lists together name at most {MAX_IDENTIFIERS:,}."),
]


class ListQuery(PageQuery):
    """Filters of GET /v2/lists."""

    q: Annotated[str | None, Field(min_length=1, max_length=120, description="A part of the name.")] = None


class ListCreate(ApiModel):
    """A new list, without members."""

    name: Name
    description: Description | None = None


class ListPatch(PatchModel):
    """Changes of a list; its members are changed by operations of their own."""

    name: Name = unset()
    description: Description | None = None


class ListOut(ApiModel):
    """A list. `size`: how many members it has now."""

    id: str
    name: str
    description: str | None = None
    size: int
    created_at: Timestamp
    updated_at: Timestamp


class ListPage(CountedPage[ListOut]):
    """Lists, newest first."""


class Members(ApiModel):
    """Who is meant, in any combination; the same contact may be named in several ways."""

    external_ids: _Named = Field(default_factory=list)
    contact_ids: _Named = Field(default_factory=list)
    phones: _Named = Field(default_factory=list)

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if len(self.external_ids) + len(self.contact_ids) + len(self.phones) > MAX_IDENTIFIERS:
            raise PydanticCustomError(
                "too_many_identifiers", "A call names at most {most} identifiers.", {"most": f"{MAX_IDENTIFIERS:,}"}
            )
        return self


class NotFoundOut(ApiModel):
    """Identifiers that no contact has: a sample of at most 100 of each kind."""

    external_ids: list[str]
    contact_ids: list[str]
    phones: list[str]


class MembershipOut(ApiModel):
    """What became of a call: distinct contacts found, memberships that changed, and the size afterwards."""

    list_id: str
    matched: int
    added: int
    removed: int
    total: int
    not_found_count: int
    not_found: NotFoundOut


list_view = view_of(StaticList, ListOut)


def membership_view(list_id: str, outcome: Membership) -> dict[str, Any]:
    """The outcome as callers see it."""
    return {
        "listId": list_id,
        "matched": outcome.matched,
        "added": outcome.added,
        "removed": outcome.removed,
        "total": outcome.total,
        "notFoundCount": outcome.not_found,
        "notFound": {
            "externalIds": outcome.external_ids.sample,
            "contactIds": outcome.contact_ids.sample,
            "phones": outcome.phones.sample,
        },
    }
