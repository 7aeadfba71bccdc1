"""The pace of a number towards one recipient, where its provider bounds it (C14.5, pair)."""

from typing import TYPE_CHECKING

from recado.actors.dispatch.lane_messages import Changed, Look
from recado.channels.core.provider import Accepted, Down, OutboundMessage, Outcome, SlowPair
from recado.domain.dispatch.pair_pacing import BURST
from recado.storage.dispatch import dispatch

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line


async def to_one_recipient(line: "Line", count: int) -> list[str]:
    """Queue so many messages for the same person."""
    line.provider.paces_pairs = True
    ids = await line.queue(count, tell=False)
    await line.db.execute("update messages set recipient_hash = 7 where id = any($1::text[])", ids)
    return ids


async def go_on_with_what_is_due(line: "Line") -> None:
    await dispatch.release_due(line.db, line.clock.now())
    line.tell(Look())


async def test_after_a_burst_a_recipient_waits_for_the_pace_and_nobody_else_does(line: "Line") -> None:
    ids = await to_one_recipient(line, BURST + 1)
    [other] = await line.queue(1)
    await line.goes_on(3.0)
    assert sorted(line.provider.sent) == sorted([*ids[:BURST], other])
    assert await line.reasons() == {"pair_limit"}
    await line.goes_on(6.0, step=0.1)
    await go_on_with_what_is_due(line)
    await line.goes_on(1.0)
    assert line.provider.sent[-1] == ids[-1]


async def test_a_recipient_whom_the_provider_finds_written_to_too_fast_is_not_tried_again_meanwhile(
    line: "Line",
) -> None:
    def answer(message: OutboundMessage) -> Outcome:
        return SlowPair(30.0) if len(line.provider.calls) == 1 else Accepted(f"provider-{message.id}")

    line.provider.answer = answer
    await line.set_number(per_second=1)  # one is answered before the next is claimed
    ids = await to_one_recipient(line, 3)
    line.tell(Look())
    await line.goes_on(10.0)
    assert line.provider.sent == ids[:1]
    assert await line.reasons() == {"pair_limit"}
    for left in (2, 3):  # at 31 s and at 37 s: its allowance is one message, and then one every six seconds
        await line.goes_on(22.0 if left == 2 else 4.0, step=0.1)
        await go_on_with_what_is_due(line)
        await line.goes_on(2.0)
        assert len(line.provider.sent) == left
    assert set(line.provider.sent[1:]) < set(ids)


async def test_what_the_provider_was_never_given_does_not_count_towards_its_recipient(line: "Line") -> None:
    def answer(message: OutboundMessage) -> Outcome:
        return Down("connect_failed") if len(line.provider.calls) <= 3 else Accepted(f"provider-{message.id}")

    line.provider.answer = answer
    await line.set_number(per_second=1)
    first = await to_one_recipient(line, 1)
    line.tell(Look())
    await line.goes_on(10.0)
    assert line.provider.sent == first * 4
    rest = await to_one_recipient(line, BURST - 1)
    await line.set_number(per_second=200)
    line.tell(Changed())
    line.tell(Look())
    await line.goes_on(3.0)
    assert len(line.provider.sent) == 4 + len(rest)
    assert await line.counts() == {"sent": BURST}


async def test_a_number_that_left_memory_meanwhile_remembers_to_whom_it_wrote(line: "Line") -> None:
    await to_one_recipient(line, BURST)
    line.tell(Look())
    await line.goes_on(3.0)
    assert len(line.provider.sent) == BURST
    await line.goes_on(130.0, step=5.0)
    assert not line.in_memory
    await to_one_recipient(line, BURST)
    line.tell(Look())
    await line.goes_on(3.0)
    assert BURST + 20 <= len(line.provider.sent) <= BURST + 24  # one for each six seconds since
    assert await line.reasons() == {"pair_limit"}
