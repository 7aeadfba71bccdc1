"""What a restart asks of a queue of a million: the claims of the dead process, and no row that nobody claimed."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.plans import Plan, grow, indexes, plan_for_any, plan_of, whole_tables
from tests.storage.conftest import opened, read_only

from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import pack
from recado.storage.dispatch import dispatch, rescue

NOW = datetime.now(UTC)
QUEUE = f"""
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at,
        held_base_ms, force, claimed_epoch, claimed_at)
    select 'org_7', 'msg_' || i, 'live', 'chatapp', 'num_' || i % 40, 1, 'single', now(), 1, now(), 0, false,
        case when i <= 50 then 1 end, case when i <= 50 then now() end
    from generate_series(1, 10000) i;
insert into claims values (1, now(), '{pack(["org_7"] * 50)}', '{pack([f"msg_{i}" for i in range(1, 51)])}');
vacuum (analyze) dispatch;
vacuum (analyze) claims;
"""


async def fill(database: Database) -> None:
    for statement in QUEUE.strip().split(";\n"):
        await database.execute(statement.removesuffix(";"))
    await grow(database, "dispatch", 1_000_000)


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with read_only(postgres, fill) as arguments:
        yield arguments


@pytest.fixture
async def million(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    """A million messages in the queue, fifty of them claimed; statements are planned and not run."""
    async with opened(prepared) as db:
        yield db


ASKED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "send again": (rescue.SQL.send_again, ("live", 2, NOW, NOW, [1.0, 5.0], "chatapp", True)),
    "rescue": (rescue.SQL.rescue, (2, NOW, True)),
    "in hand": (rescue.SQL.in_hand, (1,)),
    "departed": (rescue.SQL.departed, (1, ["org_7"], ["msg_7"], [NOW])),
    "forget settled": (rescue.SQL.forget_settled, (2, NOW)),
}


async def test_the_planner_believes_in_a_million(million: Database) -> None:
    (whole,) = await plan_of(million, "select * from dispatch", ())
    assert whole["Plan Rows"] > 900_000


@pytest.mark.parametrize("name", ASKED)
async def test_the_queue_is_reached_by_its_key_alone(million: Database, name: str) -> None:
    sql, arguments = ASKED[name]
    for found in (await plan_of(million, sql, arguments), await plan_for_any(million, sql)):
        assert "dispatch" not in whole_tables(found)
        reads = [node for node in found if node.get("Relation Name") == "dispatch" and "Scan" in node["Node Type"]]
        assert reads
        assert [node for node in reads if not by_key_or_place(node)] == []
        assert {name for name in indexes(found) if name.startswith("dispatch")} == {"dispatch_pkey"}


async def test_where_the_rows_of_a_number_begin_is_found_along_the_index_of_ready_rows(million: Database) -> None:
    asked = (["org_7"], ["num_1"], NOW, 64)
    for found in (await plan_of(million, dispatch.SQL.heads, asked), await plan_for_any(million, dispatch.SQL.heads)):
        assert whole_tables(found) == set()
        assert indexes(found) == {"dispatch_ready", "dispatch_forced"}
        conditions = [node["Index Cond"] for node in found if node.get("Index Name") == "dispatch_ready"]
        assert ["class" in each and "owner" in each for each in conditions] == [False, True]


async def test_what_is_due_is_found_by_skipping_from_number_to_number(million: Database) -> None:
    found = await plan_of(million, dispatch.SQL.release_of_each, (NOW, 200, 400, 500))
    assert whole_tables(found) == set()
    held = [node for node in found if node.get("Index Name") == "dispatch_held"]
    assert ["reason" in node.get("Index Cond", "") for node in held] == [False, False, True]
    assert indexes(found) == {"dispatch_held", "dispatch_pkey"}


@pytest.mark.parametrize(
    ("sql", "arguments"),
    [
        (dispatch.SQL.give_up, (NOW, 1_000)),
        (dispatch.SQL.uncertain_of_sender, ("org_7", "num_1", NOW)),
    ],
    ids=["give up", "uncertain of a number"],
)
async def test_what_is_uncertain_and_what_waits_for_a_repeat_has_its_indexes(
    million: Database, sql: str, arguments: tuple[Any, ...]
) -> None:
    for found in (await plan_of(million, sql, arguments), await plan_for_any(million, sql)):
        assert whole_tables(found) == set()
        assert indexes(found) <= {"dispatch_uncertain", "dispatch_held", "dispatch_repeats"}
        assert "dispatch_repeats" in indexes(found)


def by_key_or_place(node: Plan) -> bool:
    if node["Node Type"] == "Tid Scan":
        return True
    condition = node.get("Index Cond", "")
    return "organization_id" in condition and "(id)" in condition.replace("id)::text", "id)")
