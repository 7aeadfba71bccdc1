"""Pages of lists (C5): the parameters, the cursor of a call, and the envelope of an answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, model_validator

from recado.domain.core.errors import FieldError, Problem
from recado.domain.core.ids import lowest_id
from recado.domain.core.page import CursorSigner, cursor_scope
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, QueryInt, QueryModel, Timestamp
from recado.http.api.page_items import PAGE_BYTES, PageItems, each
from recado.storage.core.connections.postgres import FAR
from recado.storage.core.statements.rows import Page as Found

MOST_SKIPPED = 100_000
MOST_SKIPPED_MESSAGES = 10_000

Item = TypeVar("Item")
Record = TypeVar("Record")


class ListedQuery(QueryModel):
    """The parameters of any page."""

    @property
    def searches(self) -> bool:
        """Whether thousands of records may be looked at for the page: by a text, or to pass over them (C31)."""
        return getattr(self, "q", None) is not None or getattr(self, "skip", 0) > FAR


class PageQuery(ListedQuery):
    """`limit` and `skip` (C5.1): refused when out of range, never clamped."""

    limit: Annotated[QueryInt, Field(ge=1, le=200, description="How many items to answer.")] = 50
    skip: Annotated[QueryInt, Field(ge=0, le=MOST_SKIPPED, description="How many items to leave out first.")] = 0


class CursorQuery(ListedQuery):
    """`limit` and `cursor` (C5.2)."""

    limit: Annotated[QueryInt, Field(ge=1, le=200, description="How many items to answer.")] = 50
    cursor: Annotated[str | None, Field(description="`nextCursor` of the page before.", min_length=1)] = None


class MessagePageQuery(CursorQuery):
    """Of message lists: `skip` up to 10,000, and `cursor` for what lies deeper (C5.1). A cursor makes `skip` void."""

    skip: Annotated[QueryInt, Field(ge=0, le=MOST_SKIPPED_MESSAGES, description="How many items to leave out.")] = 0


class PeriodQuery(QueryModel):
    """`from` and `to`: a list of what lies in [from, to). One that ends before it begins: `misordered`."""

    misordered: ClassVar[str] = "INVALID_PERIOD"
    """The code: 422 of an operation that answers both 400 and 422 to parameters (C4.3.2)."""

    from_: Annotated[Timestamp | None, Field(alias="from", description="Nothing from before this moment.")] = None
    to: Annotated[Timestamp | None, Field(description="Nothing from this moment on.")] = None

    @model_validator(mode="after")
    def _begins_before_it_ends(self) -> Self:
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            detail = "The period is not valid: `from` must not be later than `to`."
            raise Problem(self.misordered, detail, errors=[FieldError("from", "INVALID_PERIOD", detail)])
        return self

    def ids(self, prefix: str) -> tuple[str, str]:
        """The ids of records made in the period: from the first one on, before the second (C2.1)."""
        first = prefix if self.from_ is None else lowest_id(prefix, self.from_)
        return first, f"{prefix}~" if self.to is None else lowest_id(prefix, self.to)


class Cursors:
    """Reads and writes the cursors of calls: each is good for its operation, filters, organization and environment."""

    def __init__(self, signer: CursorSigner) -> None:
        self._signer = signer

    def read(self, call: Call, operation: str) -> list[Any] | None:
        """Return the order key that the page of `call` begins after, None for the first; INVALID_CURSOR (400)."""
        text = call.query.cursor
        return None if text is None else self._signer.decode(text, _scope(call, operation))

    def write(self, call: Call, operation: str, key: list[Any]) -> str:
        """Return the cursor of the page after the row with the order key `key`."""
        return self._signer.encode(key, _scope(call, operation))

    async def page(
        self,
        call: Call,
        operation: str,
        items: PageItems[Record],
        key: Callable[[Record], list[Any]],
    ) -> dict[str, Any]:
        """Return `{items, nextCursor?}`: the page ends early where its items come to `PAGE_BYTES` (C5.7)."""
        body: dict[str, Any] = {"items": await items.up_to(PAGE_BYTES)}
        if items.more and items.last is not None:
            body["nextCursor"] = self.write(call, operation, key(items.last))
        return body


def items_of(call: Call, records: Sequence[Record], view: Callable[[Record], Any]) -> PageItems[Record]:
    """The items of a page by cursor, of up to `limit` + 1 records: the one too many tells that others follow."""
    limit: int = call.query.limit
    found = Found(list(records[:limit]), 0, estimated=False, more=len(records) > limit)
    return PageItems(found, each(view), None, limit)


def envelope(items: Any, total: int, *, estimated: bool = False, next_cursor: str | None = None) -> dict[str, Any]:
    """Return the body of a list with a total; the optional members only where they say something."""
    body: dict[str, Any] = {"items": items, "total": total}
    if estimated:
        body["totalEstimated"] = True
    if next_cursor is not None:
        body["nextCursor"] = next_cursor
    return body


class CountedPage(ApiModel, Generic[Item]):
    """The body of a list with a total, for the OpenAPI document: `class NumberPage(Page[NumberOut])` names it."""

    items: list[Item]
    total: Annotated[int, Field(description="Exact up to 10,000; counting ends at 10,001.")]
    total_estimated: Annotated[bool, Field(description="Present and true when there are at least `total`.")] = False
    next_cursor: Annotated[str, Field(description="Where the next page begins. Absent on the last one.")] = ""


class CursorPage(ApiModel, Generic[Item]):
    """The body of a list without a total."""

    items: list[Item]
    next_cursor: Annotated[str, Field(description="Where the next page begins. Absent on the last one.")] = ""


def _scope(call: Call, operation: str) -> bytes:
    filters: Mapping[str, Any] = call.query.model_dump(mode="json", exclude={"limit", "cursor", "skip"})
    return cursor_scope(call.principal.organization_id, call.principal.env, operation, filters)
