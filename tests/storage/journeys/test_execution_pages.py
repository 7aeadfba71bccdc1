"""Lists of executions go by the index of their filter, and look at so many rows at most for a page (C9.10)."""

import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.plans import indexes, plan_of, whole_tables
from tests.storage.conftest import opened, read_only
from tests.storage.journeys.rows import ENV, NOW, ORGANIZATION, begun, insert_journey, save_locked

from recado.domain.core.ids import EXECUTION
from recado.domain.journeys.execution import EndReason, ExecutionStatus
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys.execution_pages import ExecutionFilter, list_page, page_query, reach, reach_query
from recado.storage.journeys.journeys import Journey


def every(journey: Journey) -> ExecutionFilter:
    return ExecutionFilter(
        organization_id=ORGANIZATION, env=ENV, journey_id=journey.id, first_id=EXECUTION, before_id=EXECUTION + "~",
        kept_from=NOW - timedelta(days=730),
    )  # fmt: skip


async def test_a_list_shows_the_newest_first_by_each_filter(database: Database) -> None:
    journey, other = await insert_journey(database), await insert_journey(database)
    first, second, third = await begun(database, journey, 3)
    await begun(database, other)
    await save_locked(database, second.moved_to("b", NOW), third.ended(EndReason.FINISHED, NOW))

    async def shown(limit: int = 10, **changes: Any) -> list[str]:
        wanted = replace(every(journey), **changes)
        assert await reach(database, wanted) is None
        return [each.id for each in (await list_page(database, wanted, limit=limit)).items]

    assert await shown() == [third.id, second.id, first.id]
    assert await shown(2) == [third.id, second.id]
    assert await shown(before_id=third.id) == [second.id, first.id]
    assert await shown(first_id=second.id) == [third.id, second.id]
    assert await shown(status=ExecutionStatus.CONCLUIDA) == [third.id]
    assert await shown(status=ExecutionStatus.ERRO) == []
    assert await shown(contact_id=first.contact_id) == [first.id]
    assert await shown(contact_id=first.contact_id, status=ExecutionStatus.CONCLUIDA) == []
    assert await shown(contact_id=second.contact_id, step_id="b") == [second.id]
    assert await shown(step_id="b") == [second.id]
    assert await shown(step_id="b", status=ExecutionStatus.ATIVA) == [second.id]
    assert await shown(step_id=third.step_id, status=ExecutionStatus.CONCLUIDA) == []  # who is over stands nowhere
    assert await shown(test=True) == []
    assert await shown(test=False, status=ExecutionStatus.ATIVA) == [second.id, first.id]


async def test_a_page_that_has_looked_at_enough_says_where_the_list_goes_on(database: Database) -> None:
    journey = await insert_journey(database)
    ways = await begun(database, journey, 7)
    await save_locked(database, ways[0].moved_to("b", NOW), ways[4].moved_to("b", NOW))
    wanted = replace(every(journey), step_id="b")
    seen: list[tuple[list[str], str | None]] = []
    looked_to: str | None = wanted.before_id
    while looked_to is not None:
        rest = replace(wanted, before_id=looked_to)
        looked_to = await reach(database, rest, most=2)
        found = await list_page(database, replace(rest, first_id=looked_to or EXECUTION), limit=5)
        seen.append(([each.id for each in found.items], looked_to))
    assert seen == [([], ways[5].id), ([ways[4].id], ways[3].id), ([], ways[1].id), ([ways[0].id], None)]


async def test_executions_that_entered_with_much_are_read_in_parts(database: Database) -> None:
    journey = await insert_journey(database)
    ways = await begun(database, journey, 4)
    await database.execute("update executions set entrada = $1::text::json", '{"a": "' + random_text(400_000) + '"}')
    first = await list_page(database, every(journey), limit=3)
    assert (0 < len(first.items) < 3, first.more) == (True, True)
    seen = list(first.items)
    while len(seen) < 4:
        part = await list_page(database, replace(every(journey), before_id=seen[-1].id), limit=3)
        seen += part.items
    assert [each.id for each in seen] == [each.id for each in reversed(ways)]
    assert not part.more


def random_text(length: int) -> str:
    """One that is not packed to nothing."""
    return random.Random(5).randbytes(length // 2).hex()


ROWS = """
insert into executions (organization_id, env, journey_id, id, chain_id, versao, contact_id, status, origem, teste,
        hurried, entrada, step_id, arrived_at, wake_at, started_at)
    select 'org_7', 'test', 'jrn_' || i % 3, 'exe_' || lpad(i::text, 21, '0'), 'jrn_7', 1,
        'cnt_' || lpad((i / 4)::text, 21, '0'),
        case when i % 1000 = 0 then 'erro' when i % 10 = 1 then 'ativa' else 'concluida' end, 'api', false, false, '{}',
        'step_' || i % 40, now(), null, now()
    from generate_series(1, 30000) i;
analyze executions;
"""


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """For all of them: statements are planned and not run."""
    with read_only(postgres, lambda db: db.execute(ROWS)) as arguments:
        yield arguments


@pytest.fixture
async def filled(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(prepared) as db:
        yield db


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"executions_pkey"}),
        ({"test": False}, {"executions_pkey"}),
        ({"contact_id": "cnt_" + "0" * 20 + "7"}, {"executions_of_contact"}),
        ({"contact_id": "cnt_" + "0" * 20 + "7", "status": ExecutionStatus.CONCLUIDA}, {"executions_of_contact"}),
        ({"contact_id": "cnt_" + "0" * 20 + "7", "step_id": "step_1"}, {"executions_of_contact"}),
        ({"status": ExecutionStatus.ATIVA}, {"executions_active"}),
        ({"step_id": "step_1"}, {"executions_active"}),
        ({"status": ExecutionStatus.ERRO}, {"executions_ended"}),
        ({"status": ExecutionStatus.CANCELADA, "test": False}, {"executions_ended"}),
        ({"status": ExecutionStatus.CONCLUIDA, "test": True}, {"executions_tests"}),
    ],
)
async def test_each_filter_goes_by_its_index(filled: Database, changes: Any, expected: set[str]) -> None:
    wanted = ExecutionFilter(
        organization_id="org_7", env="test", journey_id="jrn_1", first_id=EXECUTION, before_id=EXECUTION + "~",
        kept_from=NOW - timedelta(days=730),
    )  # fmt: skip
    wanted = replace(wanted, **changes)
    for sql, arguments in (page_query(wanted, 51), reach_query(wanted, 5_000)):
        found = await plan_of(filled, sql, arguments)
        assert (whole_tables(found), indexes(found)) == (set(), expected), sql
