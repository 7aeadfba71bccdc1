"""Segments: made, read, changed, deleted, previewed, and who matches them (C13.1)."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from recado.domain.audience.segment import condition, document
from recado.domain.audience.segment_reading import read_conditions, read_tree, tree_of
from recado.domain.core.errors import FieldError, Unavailable, validation_error
from recado.domain.core.ids import SEGMENT
from recado.domain.core.names import name_key
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems
from recado.http.api.route import Route
from recado.http.routes.audience.segment_models import (
    Filtered,
    PreviewOut,
    SegmentContacts,
    SegmentContactsQuery,
    SegmentCreate,
    SegmentOut,
    SegmentPage,
    SegmentPatch,
    SegmentQuery,
    preview_view,
    segment_view,
)
from recado.http.routes.contacts.contact_lists import contact_views
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.wire.reply import Reply
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.audience.segments import REFRESH_EVERY, SEGMENTS, Segment, note_size
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys.uses import refuse_while_used

CONTACTS = "listSegmentContacts"

Filters = tuple[dict[str, Any], ...]
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SegmentOperations:
    """What is evaluated. That is done outside of transactions: no row is held while a million are looked at."""

    segments: Resource[Segment]
    evaluation: Evaluation

    def examine(self, call: Call) -> tuple[Filters, Tree | None]:
        """What the body says, in the form that is stored. Raises `Problem` 422."""
        return _given(call.body.filters, call.body.filter_tree)

    async def create(self, call: Call) -> Reply:
        body = call.body
        filters, tree = self.examine(call)
        new = Segment(
            **self.segments.born(call),
            name=body.name,
            description=body.description,
            filters=filters,
            filter_tree=tree,
            due_at=call.now,
            created_by_id=call.principal.actor_id,
        )
        # Counted before, not after: nothing is waited for once it is committed, or an answer that comes too late would
        # hide from a repeat under the same key that the segment is there.
        size = await self._count(new, new.updated_at)
        if size is not None:
            new = _of_size(new, size, new.updated_at)
        return await self.segments.reply(call, await self.segments.add(new))

    async def patch(self, call: Call) -> Reply:
        changes = _read(call.body.changes())
        saved = await self.segments.change(call, lambda before: _changed(before, changes, call.now))
        measured = saved if saved.size_at is not None else await self._measured(call, saved)
        return await self.segments.reply(call, measured)

    async def preview(self, call: Call) -> Reply:
        filters, tree = _given(call.body.filters, call.body.filter_tree)
        principal = call.principal
        found = await self.evaluation.preview(
            principal.organization_id, principal.env, tree_of(list(filters), tree), call.now
        )
        return Reply(200, preview_view(found, call.now))

    async def contacts(self, call: Call) -> Reply:
        segment: Segment = call.resource
        cursors = self.segments.dependencies.cursors
        operation = f"{CONTACTS} {segment.id}"  # a cursor is good for its segment
        key = cursors.read(call, operation)
        page = await self.evaluation.contacts(
            segment.organization_id,
            segment.env,
            segment.tree,
            call.now,
            before_id=None if key is None else key[0],
            limit=call.query.limit,
        )
        items = PageItems(page, contact_views(self.segments.database, call), None, call.query.limit)
        return Reply(200, await cursors.page(call, operation, items, lambda contact: [contact.id]))

    async def _measured(self, call: Call, segment: Segment) -> Segment:
        """The segment with its size, which is noted."""
        size = await self._count(segment, call.now)
        if size is None:
            return segment
        await note_size(self.segments.database, segment, size, call.now)
        return _of_size(segment, size, call.now)

    async def _count(self, segment: Segment, now: datetime) -> int | None:
        """How many match; None when that takes too long, and the hourly look is its next chance."""
        try:
            return await self.evaluation.count(segment.organization_id, segment.env, segment.tree, now)
        except Unavailable:
            return None


def _of_size(segment: Segment, size: int, at: datetime) -> Segment:
    return replace(segment, size=size, size_at=at, due_at=at + REFRESH_EVERY)


def _given(filters: object, tree: object) -> tuple[Filters, Tree | None]:
    """What a body says, in the form that is stored; 422 `FILTER_INVALID`. Beside a tree the list may be empty."""
    found = None if tree is None else document(read_tree(tree))
    if filters is None or (filters == [] and found is not None):
        if found is None:
            raise _needed()
        return (), found
    return _conditions(filters), found


def _read(changes: dict[str, Any]) -> dict[str, Any]:
    """What a caller wants changed, in the form that is stored; `filters` alone drop the tree (C13.1)."""
    read = dict(changes)
    if "filter_tree" in read:
        tree = read["filter_tree"]
        read["filter_tree"] = None if tree is None else document(read_tree(tree))
    elif "filters" in read:
        read["filter_tree"] = None
    if "filters" in read:
        beside_a_tree = read["filters"] == [] and read["filter_tree"] is not None
        read["filters"] = () if beside_a_tree else _conditions(read["filters"])
    return read


def _changed(before: Segment, changes: dict[str, Any], now: datetime) -> Segment:
    after = replace(before, **changes)
    if after.filter_tree is None and not after.filters:
        raise _needed()
    if (after.filters, after.filter_tree) == (before.filters, before.filter_tree):
        return after
    return replace(after, size=None, size_at=None, due_at=now)


def _conditions(filters: object) -> Filters:
    return tuple(condition(leaf) for leaf in read_conditions(filters))


def _needed() -> Exception:
    fault = FieldError("/filters", "FILTER_INVALID", "`filters` or `filterTree` is required.")
    return validation_error([fault], code="FILTER_INVALID")


async def _delete(connection: Executor, segment: Segment, _: datetime) -> None:
    await refuse_while_used(connection, segment.organization_id, segment.env, segment.id)
    await SEGMENTS.delete(connection, segment)


def segment_routes(dependencies: Dependencies, *, evaluation: Evaluation) -> tuple[Route, ...]:
    """`evaluation`: shared by all who evaluate filters, so that few do at a time."""
    segments = Resource(
        dependencies=dependencies,
        table=SEGMENTS,
        path="/v2/segments/{segmentId}",
        prefix=SEGMENT,
        name="segment",
        group=Group("Segments", "contacts:read", "contacts:write"),
        out=SegmentOut,
        page=SegmentPage,
        views=each(segment_view),
    )
    operations = SegmentOperations(segments, evaluation)
    return (
        segments.route(
            "GET /v2/segments", "listSegments", "List segments, newest first",
            segments.listing(lambda query: (query.q and name_key(query.q),)), query=SegmentQuery,
        ),
        segments.route(
            "POST /v2/segments", "createSegment", "Keep a filter as a segment", operations.create,
            body=SegmentCreate, responses={200: SegmentOut},
            errors=("SEGMENT_NAME_TAKEN", "LIMIT_REACHED", "FILTER_INVALID"), examine=operations.examine,
            description="`size` is absent while the contacts could not be counted in time.",
        ),
        segments.route(
            "POST /v2/segments/preview", "previewSegment", "Evaluate a filter without keeping it", operations.preview,
            scope=segments.group.reads, rate_class="bulk",
            body=Filtered, responses={200: PreviewOut}, errors=("FILTER_INVALID",),
        ),
        segments.route("GET /v2/segments/{segmentId}", "getSegment", "Read a segment", segments.read),
        segments.route(
            "PATCH /v2/segments/{segmentId}", "updateSegment", "Change a segment", operations.patch,
            body=SegmentPatch, errors=("SEGMENT_NAME_TAKEN", "FILTER_INVALID"),
            description="`filters` without `filterTree` drops the stored tree; with both, the tree says what matches.",
        ),
        segments.route(
            "DELETE /v2/segments/{segmentId}", "deleteSegment", "Delete a segment; its contacts stay",
            partial(segments.delete, remove=_delete), errors=("RESOURCE_IN_USE",),
        ),
        segments.route(
            "GET /v2/segments/{segmentId}/contacts", CONTACTS, "List who matches a segment now, newest first",
            operations.contacts, query=SegmentContactsQuery, responses={200: SegmentContacts},
        ),
    )  # fmt: skip
