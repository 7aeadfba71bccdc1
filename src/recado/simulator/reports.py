"""The receipts of what was processed: on their way at their time, and again after a restart until they are taken."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from recado.channels.core.event_json import event_to_json
from recado.channels.core.events import ReportStatus, Status
from recado.simulator import cloud_webhooks
from recado.simulator.outbox import CallbackOutbox
from recado.simulator.record import Request

EARLY_SECONDS = 1.0  # how long an answer waits for its early receipt to be taken

MetadataOf = Callable[[str], tuple[str, dict[str, Any]]]
"""The business account of a number, and what its webhooks say of the number."""


class Reports:
    """Schedules receipts. What is still to come at a stop is in the record, and `resume` takes it up again."""

    def __init__(self, outbox: CallbackOutbox, metadata_of: MetadataOf) -> None:
        self._outbox = outbox
        self._metadata_of = metadata_of

    async def begin(self, request: Request, *, early: bool, to: str | None) -> None:
        """Set the receipts in motion; returns when the early one has been taken, or nearly so."""
        for place in range(len(request.delays)):
            if place == 0 and early and request.callback is not None:
                taken = asyncio.get_running_loop().create_future()
                self._send(request, place, to, taken)
                await asyncio.wait([taken], timeout=EARLY_SECONDS)
            else:
                self._later(request, place, request.delays[place], to)

    def resume(self, left: Iterable[tuple[Request, int]]) -> None:
        """Receipts of an earlier life: those that are due leave at once."""
        now = datetime.now(UTC)
        for request, place in left:
            passed = (now - request.at).total_seconds()
            self._later(request, place, max(0.0, request.delays[place] - passed), None)

    def _later(self, request: Request, place: int, delay: float, to: str | None) -> None:
        if request.callback is not None:
            asyncio.get_running_loop().call_later(delay, self._send, request, place, to)

    def _send(self, request: Request, place: int, to: str | None, taken: asyncio.Future[None] | None = None) -> None:
        provider_id = request.provider_message_id
        if provider_id is None or request.callback is None:
            return
        event = self._cloud(request, place, to) if request.protocol == "cloud" else _bridge(request, place)
        self._outbox.put(
            request.callback, orjson.dumps(event), taken, protocol=request.protocol, mark=(provider_id, place)
        )

    def _cloud(self, request: Request, place: int, to: str | None) -> dict[str, Any]:
        business_account, metadata = self._metadata_of(request.number)
        return cloud_webhooks.status(request, place, business_account, metadata, to)


def due(request: Request, place: int) -> datetime:
    """The moment that a receipt tells."""
    return request.at + timedelta(seconds=request.delays[place])


def _bridge(request: Request, place: int) -> dict[str, Any]:
    status: ReportStatus = request.receipts[place]  # type: ignore[assignment]  # as the record has it
    reference = request.id if request.referenced else None
    code = request.code if status == "failed" else None
    return event_to_json(
        Status(status, due(request, place), request.provider_message_id, reference, code, request.number)
    )
