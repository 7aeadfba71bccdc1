"""Bodies and views of segments (C13.1). Filters are described here and read by `segment_reading.py`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, PlainValidator, RootModel

from recado.domain.audience.segment import (
    CHANNELS,
    MAX_CHILDREN,
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_VALUES,
    OPERATORS,
    OPT_IN,
    Operator,
    document,
)
from recado.http.api.models import BLANK_IS_NONE, ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage, CursorPage, CursorQuery, PageQuery
from recado.http.routes.contacts.contact_answers import ContactOut
from recado.http.routes.core.views import view_of
from recado.storage.audience.segment_evaluation import Matches
from recado.storage.audience.segments import Segment

_SCALAR = {"type": ["string", "number", "boolean"]}
_VALUE = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1, "maxItems": MAX_VALUES}]}
_CONDITION = {
    "type": "object",
    "required": ["field", "operator"],
    "properties": {
        "field": {"type": "string", "enum": [field.value for field in OPERATORS]},
        "operator": {"type": "string", "enum": [operator.value for operator in Operator]},
        "key": {
            "description": "Of the attribute, when `field` is `attribute`: a letter, then up to 63 of A-Za-z0-9_.-"
        },
        "value": _VALUE,
    },
    "description": (
        "Operators of "
        + "; of ".join(f"`{field.value}`: {', '.join(operators)}" for field, operators in OPERATORS.items())
        + f". Values of `optIn`: {', '.join(OPT_IN)}; of `channel`: {', '.join(CHANNELS)}."
    ),
}


class Filter(BaseModel):
    """One condition; `segment_reading.py` reads it."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> Any:
        reference = handler(schema)
        handler.resolve_ref_schema(reference).update(_CONDITION)
        return reference


class FilterLeaf(BaseModel):
    """One condition of a tree."""

    kind: Literal["leaf"]
    filter: Filter


class FilterGroup(BaseModel):
    """All conditions, or one of them."""

    kind: Literal["and", "or"]
    children: Annotated[list["FilterTree"], Field(min_length=1, max_length=MAX_CHILDREN)]


class FilterNot(BaseModel):
    """The contrary."""

    kind: Literal["not"]
    child: "FilterTree"


class FilterTree(RootModel[FilterLeaf | FilterGroup | FilterNot]):
    """`leaf` holds a `filter`, `and` and `or` hold `children`, `not` a `child`; levels and conditions are limited."""

    model_config = ConfigDict(
        json_schema_extra={"description": f"A tree of at most {MAX_DEPTH} levels and {MAX_LEAVES} conditions."}
    )


def _as_it_came(value: Any) -> Any:
    return value


_Filters = Annotated[list[Filter], Field(min_length=1, max_length=MAX_CHILDREN)]

Name = Annotated[
    str, Field(min_length=1, max_length=120, description="Unique, without regard to case and repeated spaces.")
]
Description = Annotated[str, Field(max_length=500), BLANK_IS_NONE]
_GivenFilters = Annotated[
    Any,
    PlainValidator(_as_it_came, json_schema_input_type=_Filters | None),
    Field(description="Conditions that must all hold."),
]
_GivenTree = Annotated[Any, PlainValidator(_as_it_came, json_schema_input_type=FilterTree | None)]


class SegmentQuery(PageQuery):
    """Filters of GET /v2/segments."""

    q: Annotated[str | None, Field(min_length=1, max_length=120, description="A part of the name.")] = None


class Filtered(ApiModel):
    """Conditions, as a list or as a tree; one of the two is needed."""

    filters: _GivenFilters = None
    filter_tree: _GivenTree = None


class SegmentCreate(Filtered):
    """A new segment."""

    name: Name
    description: Description | None = None


class SegmentPatch(PatchModel):
    """Changes of a segment; `filters` alone drops the stored tree."""

    name: Name = unset()
    description: Description | None = None
    filters: Annotated[
        Any,
        PlainValidator(_as_it_came, json_schema_input_type=_Filters),
        Field(description="Alone, they take the place of the stored tree."),
    ] = unset()
    filter_tree: _GivenTree = None


class SegmentOut(ApiModel):
    """A segment. `size`: how many contacts matched at `sizeAt`."""

    id: str
    organization_id: str
    name: str
    description: str | None = None
    filters: list[Filter]
    filter_tree: FilterTree
    size: int | None = None
    size_at: Timestamp | None = None
    created_by_id: str | None = None
    created_at: Timestamp
    updated_at: Timestamp


class SegmentPage(CountedPage[SegmentOut]):
    """Segments, newest first."""


class PreviewOut(ApiModel):
    """What a filter finds now."""

    count: int
    sample_contact_ids: list[str]
    evaluated_at: Timestamp


class SegmentContactsQuery(CursorQuery):
    """A page of the contacts of a segment."""

    @property
    def searches(self) -> bool:
        """Its filter may look at every contact."""
        return True


class SegmentContacts(CursorPage[ContactOut]):
    """Contacts that match now, newest first."""


# Always with a tree (C13.1).
segment_view = view_of(Segment, SegmentOut, filter_tree=lambda segment: segment.filter_tree or document(segment.tree))


def preview_view(matches: Matches, at: Any) -> dict[str, Any]:
    """The matches as callers see them."""
    return {"count": matches.count, "sampleContactIds": matches.sample, "evaluatedAt": at}
