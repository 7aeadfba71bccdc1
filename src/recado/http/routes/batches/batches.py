"""Batches: list and read, pause, resume and cancel (C15.1, C15.5)."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from recado.domain.core.errors import conflict, not_found
from recado.domain.core.ids import BATCH
from recado.http.api.call import Call
from recado.http.api.route import Idempotency, Route
from recado.http.routes.core.lists import listed
from recado.http.routes.messages.batch_view import batch_view
from recado.http.routes.messages.bulk_models import BatchOut, BatchPage, BatchQuery
from recado.http.wire.reply import Reply
from recado.storage.batches import batches
from recado.storage.batches.batches import Batch
from recado.storage.core.connections.postgres import Database

CANCEL: Final = (
    "What was claimed already, at most 50 ms of the number's rate, still leaves; nothing else does. Of a large batch "
    "some messages are `queued` after the answer: they are archived, and their prices released, soon after."
)

Move = Callable[[Batch], Awaitable[bool]]


class Movers(Protocol):
    """Moves batches; False when the state does not allow it (`batches.py`)."""

    async def pause(self, batch: Batch) -> bool: ...

    async def resume(self, batch: Batch) -> bool: ...

    async def cancel(self, batch: Batch) -> bool: ...


class BatchOperations:
    """The handlers."""

    def __init__(self, database: Database, movers: Movers) -> None:
        self._database = database
        self._movers = movers

    async def list(self, call: Call) -> Reply:
        query: BatchQuery = call.query
        first, before = query.ids(BATCH)
        page = await batches.list_page(
            self._database.page(query.skip),
            call.principal.organization_id,
            call.principal.env,
            status=query.status,
            campaign_id=query.campaign_id,
            first_id=first,
            before_id=before,
            limit=query.limit,
            skip=query.skip,
        )
        return await listed(page, batch_view)

    async def read(self, call: Call) -> Reply:
        return Reply(200, batch_view(call.resource))

    async def pause(self, call: Call) -> Reply:
        return await self._move(call, self._movers.pause, "Only a batch that is building or running is paused.")

    async def resume(self, call: Call) -> Reply:
        return await self._move(call, self._movers.resume, "Only a paused batch is resumed.")

    async def cancel(self, call: Call) -> Reply:
        return await self._move(call, self._movers.cancel, "The batch is over already.")

    async def find(self, call: Call) -> Batch:
        """The batch of the path; 404."""
        principal = call.principal
        batch = await batches.get(self._database, (principal.organization_id, principal.env, call.path["id"]))
        if batch is None:
            raise not_found()
        return batch

    async def _move(self, call: Call, move: Move, refusal: str) -> Reply:
        moved = await move(call.resource)
        batch = await self.find(call)
        if not moved:
            raise conflict("INVALID_STATE", refusal, status=batch.status)
        return Reply(200, batch_view(batch))


def batch_routes(*, database: Database, movers: Movers) -> tuple[Route, ...]:
    """The operations on batches; the one that makes them is in `bulk.py`."""
    operations = BatchOperations(database, movers)
    one: dict[str, Any] = {"path_ids": {"id": BATCH}, "load": operations.find, "tag": "Batches"}
    moves = (
        ("pause", operations.pause, "Hold the queued messages of a batch back", ""),
        ("resume", operations.resume, "Let a paused batch go on", ""),
        ("cancel", operations.cancel, "Withdraw the queued messages of a batch, and make no more", CANCEL),
    )
    return (
        Route(
            method="GET",
            path="/v2/batches",
            handler=operations.list,
            operation_id="listBatches",
            summary="List batches, newest first",
            tag="Batches",
            scope="messages:read",
            rate_class="read",
            query=BatchQuery,
            responses={200: BatchPage},
        ),
        Route(
            method="GET",
            path="/v2/batches/{id}",
            handler=operations.read,
            operation_id="getBatch",
            summary="Read a batch with its totals",
            scope="messages:read",
            rate_class="read",
            responses={200: BatchOut},
            **one,
        ),
        *(
            Route(
                method="POST",
                path=f"/v2/batches/{{id}}/{name}",
                handler=handler,
                operation_id=f"{name}Batch",
                summary=summary,
                description=description,
                scope="messages:send",
                rate_class="write",
                responses={200: BatchOut},
                errors=("INVALID_STATE",),
                idempotency=Idempotency.ACCEPTED,
                **one,
            )
            for name, handler, summary, description in moves
        ),
    )
