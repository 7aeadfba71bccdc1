"""What a front tells the owner of messages that it accepted."""

import asyncio
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from recado.domain.messages.changes import ConsentRefused, DeliveriesQueued, WithdrawalsLeft
from recado.domain.messages.withdrawal import Withdrawal, WithdrawalKind
from recado.domain.senders.sender import SenderKey
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.clock import VirtualClock
from recado.engine.link import LONGEST_FRAME, Link
from recado.fronts import frames
from recado.fronts.front import TheirActors
from recado.services.dispatch.crossing import unpacked_rows
from recado.services.dispatch.hints import Arrived
from recado.services.dispatch.row import Row

SENDER = SenderKey("org_1", "test", "chatapp", "num_1")
NOW = datetime(2026, 3, 10, tzinfo=UTC)
ROW = Row(
    *SENDER[:3], "msg_1", "num_1", 1, "org_1", NOW, 3_600_000, NOW + timedelta(hours=1), 0, 0, False, "+5511987650001",
    1, "template", "tpl_1", None, '["a"]',
)  # fmt: skip


async def test_rows_cross_and_those_too_long_together_are_only_told_to_be_there() -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    ends = socket.socketpair()
    link = await Link.over(ends[0], {}, lost=lambda: None)
    other = await Link.over(ends[1], {frames.ROWS: heard.put_nowait}, lost=lambda: heard.put_nowait("lost"))
    long = replace(ROW, template_vars='["' + "a" * 61_440 + '"]')
    actors = TheirActors(link, VirtualClock(NOW))
    try:
        actors.tell(SENDER, Arrived((ROW,)))
        actors.tell(SENDER, Arrived((long,) * (LONGEST_FRAME // 61_440 + 1)))
        async with asyncio.timeout(60):
            *sender, rows = await heard.get()  # type: ignore[misc]
            only_told = await heard.get()
    finally:
        link.close()
        other.close()
    (row,) = unpacked_rows(rows)
    assert (SenderKey(*sender), row.id, row.due_at, row.template_vars) == (SENDER, "msg_1", NOW, '["a"]')
    assert only_told == [*SENDER, []]


async def test_subscriptions_of_which_deliveries_were_queued_cross() -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    ends = socket.socketpair()
    link = await Link.over(ends[0], {}, lost=lambda: None)
    other = await Link.over(ends[1], {frames.QUEUED: heard.put_nowait}, lost=lambda: heard.put_nowait("lost"))
    try:
        TheirActors(link, VirtualClock(NOW)).queued({SubscriptionKey("org_1", "whk_1")})
        async with asyncio.timeout(60):
            assert await heard.get() == [["org_1", "whk_1"]]
    finally:
        link.close()
        other.close()


async def test_what_calls_of_a_front_find_out_of_people_who_told_the_provider_to_stop_crosses() -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    ends = socket.socketpair()
    link = await Link.over(ends[0], {}, lost=lambda: None)
    takes = {kind: partial(_put, heard, kind) for kind in (frames.CHANGED, frames.LEFT, frames.QUEUED)}
    other = await Link.over(ends[1], takes, lost=lambda: heard.put_nowait("lost"))
    refused = ConsentRefused((("org_1", "live", -(2**62)),))
    left = Withdrawal("org_1", "live", WithdrawalKind.OPTED_OUT, "1", "msg_2")
    try:
        actors = TheirActors(link, VirtualClock(NOW))
        for change in (refused, WithdrawalsLeft((left,)), DeliveriesQueued((SubscriptionKey("org_1", "whk_1"),))):
            actors.changed(change)
        async with asyncio.timeout(60):
            found = [await heard.get() for _ in range(3)]
    finally:
        link.close()
        other.close()
    said = dict(found)  # type: ignore[arg-type]
    assert frames.change_of(said.pop(frames.CHANGED)) == refused
    assert said == {frames.LEFT: None, frames.QUEUED: [["org_1", "whk_1"]]}


def _put(heard: "asyncio.Queue[object]", kind: str, said: object) -> None:
    heard.put_nowait((kind, said))


async def test_reports_that_are_due_cross_the_next_one_at_once_and_later_ones_when_it_is_over() -> None:
    heard: asyncio.Queue[object] = asyncio.Queue()
    ends, clock = socket.socketpair(), VirtualClock(NOW)
    link = await Link.over(ends[0], {}, lost=lambda: None)
    other = await Link.over(ends[1], {frames.EXPECTED: heard.put_nowait}, lost=lambda: heard.put_nowait("lost"))
    try:
        actors = TheirActors(link, clock)
        for seconds in (3.0, 5.0, 2.0, 2.0):
            actors.expected(NOW + timedelta(seconds=seconds))
        await clock.advance(2.5)
        for seconds in (4.0, 6.0):
            actors.expected(NOW + timedelta(seconds=seconds))
        link.give(frames.EXPECTED, "end")
        async with asyncio.timeout(60):
            said = [await heard.get() for _ in range(4)]
    finally:
        link.close()
        other.close()
    assert said == [*((NOW + timedelta(seconds=seconds)).isoformat() for seconds in (3.0, 2.0, 4.0)), "end"]
