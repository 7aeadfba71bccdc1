"""The operations on segments (C13.1)."""

from typing import Any

from recado.domain.core.ids import SEGMENT, IdSource
from recado.http.api.paging import Cursors
from recado.http.api.route import Idempotency, Route
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
)
from recado.http.routes.audience.segments import CONTACTS, SegmentOperations
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.core.postgres import Database


def segment_routes(*, database: Database, ids: IdSource, evaluation: Evaluation, cursors: Cursors) -> tuple[Route, ...]:
    """`evaluation`: shared by all who evaluate filters, so that few do at a time."""
    operations = SegmentOperations(database, ids, evaluation, cursors)
    read: dict[str, Any] = {"tag": "Segments", "scope": "contacts:read", "rate_class": "read"}
    write: dict[str, Any] = {"tag": "Segments", "scope": "contacts:write", "rate_class": "write"}
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"segmentId": SEGMENT}}
    return (
        Route(
            method="GET",
            path="/v2/segments",
            handler=operations.list,
            operation_id="listSegments",
            summary="List segments, newest first",
            query=SegmentQuery,
            responses={200: SegmentPage},
            **read,
        ),
        Route(
            method="POST",
            path="/v2/segments",
            handler=operations.create,
            operation_id="createSegment",
            summary="Keep a filter as a segment",
            description="`size` is absent while the contacts could not be counted in time.",
            body=SegmentCreate,
            responses={200: SegmentOut},
            errors=("SEGMENT_NAME_TAKEN", "LIMIT_REACHED", "FILTER_INVALID"),
            idempotency=Idempotency.ACCEPTED,
            versioned=True,
            creates=True,
            **write,
        ),
        Route(
            method="POST",
            path="/v2/segments/preview",
            handler=operations.preview,
            operation_id="previewSegment",
            summary="Evaluate a filter without keeping it",
            body=Filtered,
            responses={200: PreviewOut},
            errors=("FILTER_INVALID",),
            idempotency=Idempotency.ACCEPTED,
            **{**read, "rate_class": "bulk"},
        ),
        Route(
            method="GET",
            path="/v2/segments/{segmentId}",
            handler=operations.read,
            operation_id="getSegment",
            summary="Read a segment",
            responses={200: SegmentOut},
            versioned=True,
            **one,
            **read,
        ),
        Route(
            method="PATCH",
            path="/v2/segments/{segmentId}",
            handler=operations.patch,
            operation_id="updateSegment",
            summary="Change a segment",
            description="`filters` without `filterTree` drops the stored tree; with both, the tree says what matches.",
            body=SegmentPatch,
            responses={200: SegmentOut},
            errors=("SEGMENT_NAME_TAKEN", "FILTER_INVALID"),
            versioned=True,
            **one,
            **write,
        ),
        Route(
            method="DELETE",
            path="/v2/segments/{segmentId}",
            handler=operations.delete,
            operation_id="deleteSegment",
            summary="Delete a segment; its contacts stay",
            responses={204: None},
            versioned=True,
            **one,
            **write,
        ),
        Route(
            method="GET",
            path="/v2/segments/{segmentId}/contacts",
            handler=operations.contacts,
            operation_id=CONTACTS,
            summary="List who matches a segment now, newest first",
            query=SegmentContactsQuery,
            responses={200: SegmentContacts},
            **one,
            **read,
        ),
    )
