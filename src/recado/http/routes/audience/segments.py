"""Segments: made, read, changed, deleted, previewed, and who matches them (C13.1)."""

from collections.abc import Awaitable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from recado.domain.audience.segment import condition, document
from recado.domain.audience.segment_reading import read_conditions, read_tree, tree_of
from recado.domain.core.errors import FieldError, Unavailable, not_found, validation_error
from recado.domain.core.ids import SEGMENT, IdSource, created_at
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems, each
from recado.http.api.paging import Cursors
from recado.http.routes.audience.segment_models import preview_view, segment_view
from recado.http.routes.contacts.contact_lists import contact_views
from recado.http.routes.core.lists import shown
from recado.http.wire.reply import Reply
from recado.storage.audience import segments
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.audience.segments import REFRESH_EVERY, Segment
from recado.storage.core import audit
from recado.storage.core.postgres import Connection, Database
from recado.storage.core.rows import Page

CONTACTS = "listSegmentContacts"

Filters = tuple[dict[str, Any], ...]
Tree = dict[str, Any]


class SegmentOperations:
    """The handlers. Filters are evaluated outside of transactions: no row is held while a million are looked at."""

    def __init__(self, database: Database, ids: IdSource, evaluation: Evaluation, cursors: Cursors) -> None:
        self._database = database
        self._ids = ids
        self._evaluation = evaluation
        self._cursors = cursors

    async def find(self, call: Call) -> Segment:
        principal = call.principal
        found = await segments.get(self._database, principal.organization_id, principal.env, call.path["segmentId"])
        if found is None:
            raise not_found()
        return found

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        read = partial(segments.list_page, self._database, principal.organization_id, principal.env, q=query.q)

        def rest(last: Segment, left: int) -> Awaitable[Page[Segment]]:
            return read(limit=left, before_id=last.id)

        first = await read(limit=query.limit, skip=query.skip)
        return await shown(PageItems(first, each(segment_view), rest, query.limit))

    async def read(self, call: Call) -> Reply:
        return _reply(call.resource)

    async def create(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        segment_id = self._ids.new(SEGMENT)
        filters, tree = _given(body.filters, body.filter_tree)
        new = Segment(
            organization_id=principal.organization_id,
            env=principal.env,
            id=segment_id,
            name=body.name,
            description=body.description or None,
            filters=filters,
            filter_tree=tree,
            due_at=call.now,
            created_by_id=principal.actor_id,
            updated_at=created_at(segment_id),
        )
        # Counted before, not after: nothing is waited for once it is committed, or an answer that comes too late would
        # hide from a repeat under the same key that the segment is there.
        size = await self._count(new, new.updated_at)
        if size is not None:
            new = _of_size(new, size, new.updated_at)
        async with self._database.transaction() as connection:
            made = await segments.insert(connection, new)
        return _reply(made)

    async def patch(self, call: Call) -> Reply:
        changes = _read(call.body.changes())
        async with self._database.transaction() as connection:
            before = await self._locked(connection, call)
            after = _changed(before, changes)
            if (after.filters, after.filter_tree) != (before.filters, before.filter_tree):
                after = replace(after, size=None, size_at=None, due_at=call.now)
            saved = await segments.save(connection, before, after, call.now)
        return _reply(saved if saved.size_at is not None else await self._measured(call, saved))

    async def delete(self, call: Call) -> Reply:
        async with self._database.transaction() as connection:
            segment = await self._locked(connection, call)
            await segments.delete(connection, segment)
            await audit.write(
                connection,
                self._ids,
                actor_of(call),
                "segment.delete",
                organization_id=segment.organization_id,
                env=segment.env,
                target_id=segment.id,
            )
        return Reply(204)

    async def preview(self, call: Call) -> Reply:
        filters, tree = _given(call.body.filters, call.body.filter_tree)
        principal = call.principal
        found = await self._evaluation.preview(
            principal.organization_id, principal.env, tree_of(list(filters), tree), call.now
        )
        return Reply(200, preview_view(found, call.now))

    async def contacts(self, call: Call) -> Reply:
        segment: Segment = call.resource
        operation = f"{CONTACTS} {segment.id}"  # a cursor is good for its segment
        key = self._cursors.read(call, operation)
        page = await self._evaluation.contacts(
            segment.organization_id,
            segment.env,
            segment.tree,
            call.now,
            before_id=None if key is None else key[0],
            limit=call.query.limit,
        )
        items = PageItems(page, contact_views(self._database, call), None, call.query.limit)
        return Reply(200, await self._cursors.page(call, operation, items, lambda contact: [contact.id]))

    async def _measured(self, call: Call, segment: Segment) -> Segment:
        """The segment with its size, which is noted."""
        size = await self._count(segment, call.now)
        if size is None:
            return segment
        await segments.note_size(self._database, segment, size, call.now)
        return _of_size(segment, size, call.now)

    async def _count(self, segment: Segment, now: datetime) -> int | None:
        """How many match; None when that takes too long, and the hourly look is its next chance."""
        try:
            return await self._evaluation.count(segment.organization_id, segment.env, segment.tree, now)
        except Unavailable:
            return None

    async def _locked(self, connection: Connection, call: Call) -> Segment:
        found: Segment = call.resource
        segment = await segments.get_locked(connection, found.organization_id, found.env, found.id)
        if segment is None:
            raise not_found()
        call.check_revision(segment.revision)
        return segment


def _of_size(segment: Segment, size: int, at: datetime) -> Segment:
    return replace(segment, size=size, size_at=at, due_at=at + REFRESH_EVERY)


def _reply(segment: Segment) -> Reply:
    return Reply(200, segment_view(segment), revision=segment.revision)


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
    if "description" in read:
        read["description"] = read["description"] or None
    if "filter_tree" in read:
        tree = read["filter_tree"]
        read["filter_tree"] = None if tree is None else document(read_tree(tree))
    elif "filters" in read:
        read["filter_tree"] = None
    if "filters" in read:
        beside_a_tree = read["filters"] == [] and read["filter_tree"] is not None
        read["filters"] = () if beside_a_tree else _conditions(read["filters"])
    return read


def _changed(before: Segment, changes: dict[str, Any]) -> Segment:
    after = replace(before, **changes)
    if after.filter_tree is None and not after.filters:
        raise _needed()
    return after


def _conditions(filters: object) -> Filters:
    return tuple(condition(leaf) for leaf in read_conditions(filters))


def _needed() -> Exception:
    fault = FieldError("/filters", "FILTER_INVALID", "`filters` or `filterTree` is required.")
    return validation_error([fault], code="FILTER_INVALID")
