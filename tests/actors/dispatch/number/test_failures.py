"""A number whose actor fails: what it had in hand, and what it had claimed (C14.5)."""

import math
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from recado.actors.dispatch import lane
from recado.actors.dispatch.lane_messages import AskSituation, Look
from recado.channels.core.provider import Accepted, Outcome, SlowPair
from recado.domain.core.errors import Unavailable
from recado.storage.dispatch import dispatch

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line


async def test_what_was_claimed_goes_back_though_the_failure_cannot_be_counted(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    await line.set_number(per_second=200)
    ids = await line.queue(5)
    judge, judged = lane.check_gates, []

    def fail_at_the_third(row: Any, *rest: Any) -> Any:
        judged.append(row.id)
        if row.id == ids[2]:
            raise RuntimeError("a fault of ours")
        return judge(row, *rest)

    async def away(*_: Any) -> None:
        raise Unavailable

    monkeypatch.setattr(lane, "check_gates", fail_at_the_third)
    monkeypatch.setattr(dispatch, "crashed", away)
    await line.goes_on(0.98)  # they are claimed 50 ms before their first token, which comes after a second
    assert judged == ids[:3]
    assert await line.counts() == {"queued": 5}
    monkeypatch.undo()
    await line.goes_on(60.0, step=0.1)
    assert await line.counts() == {"sent": 5}
    assert sorted(line.provider.sent) == sorted(ids)


@pytest.mark.parametrize("unheard_of", [Accepted("no text\x00"), SlowPair(math.inf)])
async def test_an_outcome_that_cannot_be_recorded_takes_no_place_for_good(line: "Line", unheard_of: Outcome) -> None:
    [bad, *others] = await line.queue(4)
    line.provider.answer = lambda message: unheard_of if message.id == bad else Accepted(f"provider-{message.id}")
    await line.goes_on(2.0)
    assert await line.counts() == {"sending": 1, "sent": len(others)}
    situation = await line.registry.get_or_spawn(line.key, line.make).ask(AskSituation())
    assert situation.in_flight == 0
    assert line.provider.sent.count(bad) == 1


async def test_messages_of_a_deleted_template_fail_by_a_read_a_second(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    await line.queue(500, tell=False)
    await line.db.execute("update templates set deleted_at = now() where id = $1", line.template.id)
    templates = line.directories.templates
    templates.clear()
    load, read = templates._load, AsyncMock(return_value=None)

    async def loads(key: Any) -> Any:
        await read(key)
        return await load(key)

    monkeypatch.setattr(templates, "_load", loads)
    line.tell(Look())
    await line.goes_on(3.0)
    assert await line.counts() == {"failed": 500}
    assert 1 <= read.await_count <= 4
