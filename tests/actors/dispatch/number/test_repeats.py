"""An idempotent adapter is given again what it did not answer: one message, which may have left (C29.2)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from recado.actors.dispatch.lane_messages import Look
from recado.channels.core.provider import Accepted, Down, Outcome, Refused, Retry, SlowDown, Unknown
from recado.domain.core.errors import Problem
from recado.domain.core.ids import BATCH
from recado.domain.dispatch.retry import REPEAT_WITHIN
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch
from recado.storage.senders import numbers

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line


def answers(*outcomes: Outcome) -> Callable[[Any], Outcome]:
    """These in their order, and from then on every message is accepted."""
    left: Iterator[Outcome] = iter(outcomes)
    return lambda message: next(left, Accepted(f"provider-{message.id}"))


async def goes_on(line: "Line", seconds: float) -> None:
    """With the look that the poller takes every second."""
    for _ in range(round(seconds)):
        await dispatch.release_due(line.db, line.clock.now())
        line.tell(Look())
        await line.goes_on(1.0, step=0.1)


async def facts(db: Database, message_id: str) -> tuple[Any, ...]:
    row = await db.fetchrow(
        "select m.status, m.last_error, d.reason from messages m left join dispatch d using (organization_id, id)"
        " where id = $1",
        message_id,
    )
    assert row is not None
    return tuple(row)


async def test_it_stays_sending_until_a_repeat_is_answered_and_nothing_is_said_to_have_refused_it(
    line: "Line",
) -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown(), Unknown())
    [message_id] = await line.queue(1)
    await goes_on(line, 3)
    assert await facts(line.db, message_id) == ("sending", None, "retry")
    await goes_on(line, 6)
    assert [attempt for _, _, attempt in line.provider.calls] == [1, 2]
    assert await facts(line.db, message_id) == ("sending", None, "retry")
    await goes_on(line, 32)
    assert [attempt for _, _, attempt in line.provider.calls] == [1, 2, 3]
    assert await facts(line.db, message_id) == ("sent", None, None)


@pytest.mark.parametrize(
    ("outcomes", "seconds"),
    [([Unknown(), Unknown()], 45), ([Unknown(), SlowDown(1.0)], 15), ([Unknown(), Down("connect_failed")], 15)],
    ids=["unknown", "slow down", "down"],
)
async def test_however_often_it_is_called_for_it_counts_once_in_the_day(
    line: "Line", outcomes: list[Outcome], seconds: int
) -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(*outcomes)
    await line.set_number(per_day=2)
    await line.queue(1)
    await goes_on(line, seconds)
    assert len(line.provider.calls) == 3
    assert await line.counts() == {"sent": 1}
    await line.queue(2)
    await goes_on(line, 3)
    assert await line.counts() == {"sent": 2, "queued": 1}  # the day is full, neither before nor after


async def test_while_it_waits_it_keeps_its_place_in_the_day(line: "Line") -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown(), SlowDown(2.0))
    await line.set_number(per_day=1)
    await line.queue(1)
    await goes_on(line, 3)
    await line.queue(1)
    await goes_on(line, 2)
    assert await line.counts() == {"sending": 1, "queued": 1}
    assert len(line.provider.calls) == 1


async def test_a_refusal_of_its_repeat_is_the_provider_s_word_and_frees_its_place(line: "Line") -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown(), Refused("policy_blocked", "no"))
    await line.set_number(per_day=2)
    [message_id] = await line.queue(1)
    await goes_on(line, 9)
    assert await facts(line.db, message_id) == ("failed", "policy_blocked: no", None)
    await line.queue(2)
    await goes_on(line, 3)
    assert await line.counts() == {"failed": 1, "sent": 2}


async def test_the_fifth_refusal_for_now_says_nothing_of_a_call_before_that_had_no_answer(line: "Line") -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown(), Retry())
    [message_id] = await line.queue(1)
    await goes_on(line, 3)
    await line.db.execute("update dispatch set attempts = 4 where id = $1", message_id)
    await goes_on(line, 6)
    assert [attempt for _, _, attempt in line.provider.calls] == [1, 5]
    status, _, reason = await facts(line.db, message_id)
    assert (status, reason) == ("sending", "uncertain")


async def test_its_time_to_live_ends_its_repeats_and_not_the_message(line: "Line") -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown())
    [message_id] = await line.queue(1)
    await goes_on(line, 3)
    await line.db.execute("update dispatch set ttl_ms = 1, expires_at = due_at where id = $1", message_id)
    await goes_on(line, 6)
    assert await facts(line.db, message_id) == ("sending", None, "uncertain")
    assert len(line.provider.calls) == 1


async def test_a_cancel_of_its_batch_ends_its_repeats_and_not_the_message(line: "Line") -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown())
    [message_id] = await line.queue(1)
    await goes_on(line, 3)
    owner = line.ids.new(BATCH)
    await line.db.execute("update dispatch set owner = $2 where id = $1", message_id, owner)
    line.context.records.owners.canceled(owner, line.clock.now())
    await goes_on(line, 6)
    assert await facts(line.db, message_id) == ("sending", None, "owner_paused")
    assert len(line.provider.calls) == 1


async def test_an_adapter_that_bears_no_repeat_is_given_none_though_the_one_before_did(line: "Line") -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown())
    [message_id] = await line.queue(1)
    await goes_on(line, 3)
    line.provider.idempotent = False
    await goes_on(line, 6)
    assert await facts(line.db, message_id) == ("sending", None, "uncertain")
    assert len(line.provider.calls) == 1


@pytest.mark.parametrize(("seconds", "calls"), [(REPEAT_WITHIN - 10, 2), (REPEAT_WITHIN + 1, 1)])
async def test_a_repeat_whose_turn_comes_too_late_is_not_made(line: "Line", seconds: float, calls: int) -> None:
    """An adapter forgets its keys after a day, and there are four repeats."""
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown())
    [message_id] = await line.queue(1)
    await goes_on(line, 3)
    await line.db.execute(
        "update dispatch set repeat_of = repeat_of - $2 * interval '1 second' where id = $1", message_id, seconds
    )
    await goes_on(line, 6)
    assert len(line.provider.calls) == calls
    assert (await facts(line.db, message_id))[0] == ("sent" if calls == 2 else "sending")


async def test_its_number_cannot_be_deleted_under_it(line: "Line") -> None:
    line.provider.idempotent = True
    line.provider.answer = answers(Unknown())
    [message_id] = await line.queue(1)
    await goes_on(line, 3)
    async with line.db.transaction() as connection:
        with pytest.raises(Problem) as refused:
            await numbers.delete(connection, line.number, line.clock.now())
    assert refused.value.code == "RESOURCE_IN_USE"
    assert (await facts(line.db, message_id))[0] == "sending"
