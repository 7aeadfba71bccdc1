"""Bodies and views of segments (C13.1). Filters are described here and read by `domain/segment_reading.py`."""

from typing import Annotated, Any

from pydantic import Field

from recado.domain.segment import (
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
from recado.http.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.paging import CursorPage, CursorQuery, Page, PageQuery
from recado.http.routes.contact_answers import ContactOut
from recado.storage.segment_evaluation import Matches
from recado.storage.segments import Segment

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
_CHILDREN = {"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": MAX_CHILDREN}


def _node(kinds: list[str], member: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["kind", member],
        "properties": {"kind": {"type": "string", "enum": kinds}, member: schema},
    }


_NODES = [
    _node(["leaf"], "filter", _CONDITION),
    _node(["and", "or"], "children", _CHILDREN),
    _node(["not"], "child", {"type": "object"}),
]
_TREE = {
    "oneOf": _NODES,
    "description": (
        f"`leaf` holds a `filter`, `and` and `or` hold `children`, `not` a `child`. At most {MAX_DEPTH} levels and "
        f"{MAX_LEAVES} conditions."
    ),
}
_FILTERS = {"type": "array", "items": _CONDITION, "minItems": 1, "maxItems": MAX_CHILDREN}

Name = Annotated[
    str, Field(min_length=1, max_length=120, description="Unique, without regard to case and repeated spaces.")
]
Description = Annotated[str, Field(max_length=500)]
_GivenFilters = Annotated[
    Any, Field(json_schema_extra={**_FILTERS, "type": ["array", "null"]}, description="Conditions that must all hold.")
]
_GivenTree = Annotated[Any, Field(json_schema_extra={**_TREE, "oneOf": [*_NODES, {"type": "null"}]})]


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
        Any, Field(json_schema_extra=_FILTERS, description="Alone, they take the place of the stored tree.")
    ] = unset()
    filter_tree: _GivenTree = None


class SegmentOut(ApiModel):
    """A segment. `size`: how many contacts matched at `sizeAt`."""

    id: str
    organization_id: str
    name: str
    description: str | None = None
    filters: list[Annotated[dict[str, Any], Field(json_schema_extra=_CONDITION)]]
    filter_tree: Annotated[dict[str, Any], Field(json_schema_extra=_TREE)]
    size: int | None = None
    size_at: Timestamp | None = None
    created_by_id: str | None = None
    created_at: Timestamp
    updated_at: Timestamp


class SegmentPage(Page[SegmentOut]):
    """Segments, newest first."""


class PreviewOut(ApiModel):
    """What a filter finds now."""

    count: int
    sample_contact_ids: list[str]
    evaluated_at: Timestamp


class SegmentContactsQuery(CursorQuery):
    """A page of the contacts of a segment."""


class SegmentContacts(CursorPage[ContactOut]):
    """Contacts that match now, newest first."""


def segment_view(segment: Segment) -> dict[str, Any]:
    """The segment as callers see it: always with a tree (C13.1)."""
    view: dict[str, Any] = {
        "id": segment.id,
        "organizationId": segment.organization_id,
        "name": segment.name,
        "filters": list(segment.filters),
        "filterTree": segment.filter_tree or document(segment.tree),
        "createdAt": segment.created_at,
        "updatedAt": segment.updated_at,
    }
    optional = {
        "description": segment.description,
        "size": segment.size,
        "sizeAt": segment.size_at,
        "createdById": segment.created_by_id,
    }
    view.update((name, value) for name, value in optional.items() if value is not None)
    return view


def preview_view(matches: Matches, at: Any) -> dict[str, Any]:
    """The matches as callers see them."""
    return {"count": matches.count, "sampleContactIds": matches.sample, "evaluatedAt": at}
