"""What is under way of a number."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from recado.actors.dispatch.call_room import CallRoom
from recado.actors.dispatch.departures import Departures
from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.ready_rows import ReadyRows
from recado.domain.dispatch.day_usage import DayUsage
from recado.engine.clock import VirtualClock
from recado.storage.dispatch.dispatch import CLAIMED

START = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


async def test_a_row_that_is_read_again_while_it_is_being_claimed_is_claimed_once() -> None:
    """As when the database was away: the row is in the table still, and the answer to its claim is on its way."""
    answers: list[asyncio.Future[str]] = []

    def claim(_row: Any, *, in_window: bool, counts: bool) -> asyncio.Future[str]:
        answers.append(asyncio.get_running_loop().create_future())
        return answers[-1]

    context: Any = SimpleNamespace(
        records=SimpleNamespace(clock=VirtualClock(START)), sending=SimpleNamespace(claim=claim)
    )
    tasks: Any = None
    departures = Departures(context, day=DayUsage(START), tasks=tasks, rows=ReadyRows())
    gateway = Gateway(context.records.clock, CallRoom(), channel="chatapp")
    row: Any = SimpleNamespace(id="msg_1", force=False, needs_window=True, subject_to_consent=False, recipient_hash=7)
    taken_back: list[int] = []
    view: Any = SimpleNamespace(take_back=taken_back.append)

    assert departures.claim(row, None, view, gateway)
    assert not taken_back
    assert departures.claim(row, None, view, gateway)
    answers[0].set_result(CLAIMED)
    await answers[0]

    assert len(answers) == 1
    assert departures.under_way == {"msg_1"}
    assert taken_back == [7]  # its gates counted it twice
