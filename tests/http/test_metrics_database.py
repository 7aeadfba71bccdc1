"""What Prometheus gets while the database is away (C34.1)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.waiting import PATIENCE

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.kept import Kept
from recado.actors.ops.process_figures import BatchFigures
from recado.domain.core.errors import Unavailable
from recado.domain.core.moments import Moments
from recado.engine.process.loop_watch import LoopWatch
from recado.http.api.request_figures import RequestFigures
from recado.http.routes.ops import metrics as module
from recado.http.routes.ops.metrics import Measured, Metrics
from recado.storage.ops import ops

NEEDS_IT = {
    "recado_queue_messages", "recado_queue_oldest_seconds", "recado_webhook_backlog", "recado_callbacks_waiting",
    "recado_callbacks_large_waiting",
}  # fmt: skip


@pytest.fixture(params=["away", "silent"])
async def reads(request: pytest.FixtureRequest) -> AsyncIterator[Callable[[Any], Coroutine[Any, Any, Any]]]:
    """A read of a database that is away, or silent until the test is over."""
    over = asyncio.Event()

    async def read(_: Any) -> Any:
        if request.param == "silent":
            await over.wait()
        raise Unavailable("away")

    yield read
    over.set()


async def known(answer: Any) -> Any:
    return answer


async def scraped(api: Any, queues: Any, backlogs: Any) -> dict[str, Any]:
    nothing: Any = None
    metrics = Metrics(
        Measured(
            clock=api.clock, requests=RequestFigures(), activity=api.activity,
            context=LaneContext(api.states._live._context.records, nothing, nothing, Moments(api.clock), 0.0),
            push=list, root=api.lanes, batches=BatchFigures(), restarts=Counter(),
            webhooks=api.webhooks.dispatcher, refused=lambda: 0,
            postponed=lambda: 0, database=api.database, loop=LoopWatch(api.clock),
            queues=Kept(queues, clock=api.clock), backlogs=Kept(backlogs, clock=api.clock),
        )
    )  # fmt: skip
    text = (await metrics.text()).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


async def test_what_the_database_does_not_answer_is_left_out_and_the_rest_is_told(
    api: Any, monkeypatch: pytest.MonkeyPatch, reads: Callable[[Any], Coroutine[Any, Any, Any]]
) -> None:
    monkeypatch.setattr(module, "PATIENCE", PATIENCE)
    whole = await scraped(api, lambda _: ops.queue_totals(api.database), lambda _: ops.backlogs(api.database))
    assert whole["recado_database_answers"].samples[0].value == 1
    totals = await ops.queue_totals(api.database)
    monkeypatch.setattr(module, "PATIENCE", 1.0)  # for what is known already, and for what is never answered
    partly = await scraped(api, reads, reads)
    assert set(whole) - set(partly) == NEEDS_IT
    assert partly["recado_database_answers"].samples[0].value == 0
    half = await scraped(api, lambda _: known(totals), reads)
    assert set(whole) - set(half) == NEEDS_IT - {"recado_queue_messages", "recado_queue_oldest_seconds"}
    assert half["recado_database_answers"].samples[0].value == 0
