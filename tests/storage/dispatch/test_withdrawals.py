"""What is noted of people for whom more is queued than one commit withdraws (C12.5.3)."""

from dataclasses import replace

import pytest
from tests.plans import indexes, plan_for_any, whole_tables
from tests.post import LETTERS, POST
from tests.storage.dispatch.test_claims import NOW, ORGANIZATION, stored
from tests.storage.journeys.rows import QUEUE

from recado.domain.channels.policies import POLICIES
from recado.domain.messages.withdrawal import Withdrawal, WithdrawalKind
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import withdrawals

FIRST = Withdrawal(ORGANIZATION, "test", WithdrawalKind.OPTED_OUT, "-1", "msg_5")
LATER = replace(FIRST, before_id="msg_7")
LATEST = "msg_zzzzzzzz"


@pytest.fixture
async def queued(database: Database) -> list[str]:
    """Ids of five messages to one recipient, in their order."""
    ids = sorted([await stored(database) for _ in range(5)])
    await database.execute("update dispatch set consent_hash = -1")
    await database.execute("update messages set contact_id = 'cnt_1'")
    return ids


async def test_who_is_noted_again_goes_on_up_to_the_later_message(database: Database) -> None:
    for each in (FIRST, LATER, FIRST):
        await withdrawals.note(database, [each])
    assert await withdrawals.noted(database) == [LATER]


async def test_who_was_noted_again_meanwhile_is_not_finished(database: Database) -> None:
    await withdrawals.note(database, [LATER])
    await withdrawals.finish(database, [FIRST])
    assert await withdrawals.noted(database) == [LATER]
    await withdrawals.finish(database, [LATER])
    assert await withdrawals.noted(database) == []


async def test_the_first_of_each_environment_and_kind_come_next(database: Database) -> None:
    of = {
        (env, kind): [Withdrawal(ORGANIZATION, env, kind, name, LATEST) for name in ("1", "2", "3")]
        for env in ("live", "test")
        for kind in (WithdrawalKind.DELETED, WithdrawalKind.OPTED_OUT)
    }
    await withdrawals.note(database, [each for group in of.values() for each in group])
    assert await withdrawals.next_ones(database, 2) == [each for group in of.values() for each in group[:2]]


async def test_blocks_of_a_refusal_take_what_waited_before_it_and_say_what_is_left(
    database: Database, queued: list[str]
) -> None:
    (refused,) = withdrawals.refusals([(ORGANIZATION, "test", -1)], queued[4])
    assert len(await withdrawals.opted_out(database, [refused], NOW, limit=3)) == 3
    assert await withdrawals.left_of(database, [refused]) == {refused: 1}
    assert [each.id for each in await withdrawals.opted_out(database, [refused], NOW, limit=3)] != []
    assert await withdrawals.left_of(database, [refused]) == {}
    left = await database.fetch("select id from dispatch")
    assert [row["id"] for row in left] == [queued[4]]


async def test_a_withdrawn_message_becomes_what_its_channel_has_for_that(
    database: Database, queued: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    for table in ("messages", "dispatch"):
        await database.execute(f"update {table} set channel = $2 where id = $1", queued[0], POST)
    moved, _ = await withdrawals.of_contact(database, ORGANIZATION, "test", "cnt_1", NOW, limit=2)
    assert {(each.channel, each.to_status, each.quiet) for each in moved} == {
        (POST, "failed", True),
        ("chatapp", "archived", True),
    }
    rows = await database.fetch(
        "select status, failed_at, archived_at, failure_code from messages where id = any($1) order by id", queued[:2]
    )
    assert [tuple(row) for row in rows] == [("failed", NOW, None, "withdrawn"), ("archived", None, NOW, "withdrawn")]


async def test_blocks_of_a_contact_go_on_after_each_other(database: Database, queued: list[str]) -> None:
    taken, after_id = [], ""
    for _ in range(3):
        moved, position = await withdrawals.of_contact(
            database, ORGANIZATION, "test", "cnt_1", NOW, after_id=after_id, limit=2
        )
        taken.append(sorted(each.id for each in moved))
        after_id = position or ""
    assert taken == [queued[:2], queued[2:4], queued[4:]]
    assert after_id == ""


async def test_a_block_that_is_not_committed_has_withdrawn_nothing(database: Database, queued: list[str]) -> None:
    refused = withdrawals.refusals([(ORGANIZATION, "test", -1)], LATEST)
    await withdrawals.note(database, refused)

    async def dies() -> None:
        async with database.transaction() as connection:
            assert len(await withdrawals.opted_out(connection, refused, NOW, limit=3, noted=True)) == 3
            await withdrawals.finish(connection, refused)
            raise LookupError("the process is gone")

    with pytest.raises(LookupError):
        await dies()
    assert await withdrawals.noted(database) == refused
    assert await withdrawals.left_of(database, refused) == {refused[0]: 5}
    assert await withdrawals.left_of(database, refused, count=2) == {refused[0]: 2}
    assert await database.fetch("select distinct status from messages") == [("queued",)]


async def test_of_who_is_noted_only_the_one_who_goes_on_with_it_withdraws(
    database: Database, queued: list[str]
) -> None:
    refused = withdrawals.refusals([(ORGANIZATION, "test", -1)], LATEST)
    await withdrawals.note(database, refused)
    assert await withdrawals.opted_out(database, refused, NOW, limit=9) == []
    assert len(await withdrawals.opted_out(database, refused, NOW, limit=9, noted=True)) == len(queued)


async def test_blocks_of_journeys_take_all_that_waits_of_them_and_of_no_other(
    database: Database, queued: list[str]
) -> None:
    mine = "update dispatch set source_kind = 'journey', owner = case id when $1 then 'jrn_2' else 'jrn_1' end"
    await database.execute(mine, queued[4])
    archived = [withdrawals.of_archived(ORGANIZATION, "test", each) for each in ("jrn_0", "jrn_1")]
    assert await withdrawals.left_of_journeys(database, archived, NOW) == {archived[1]}
    counts = [len(await withdrawals.of_journeys(database, archived, NOW, limit=3)) for _ in range(3)]
    assert counts == [3, 1, 0]
    assert await withdrawals.left_of_journeys(database, archived, NOW) == set()
    left = await database.fetch("select id from dispatch")
    assert [row["id"] for row in left] == [queued[4]]
    told = "select distinct last_error from messages where status = 'archived'"
    assert await database.fetchval(told) == "withdrawn: its journey was archived before it was sent"


async def test_a_journey_waits_for_calls_in_hand_and_not_for_outcomes_that_nobody_knows(
    database: Database, queued: list[str]
) -> None:
    claimed = "update dispatch set source_kind = 'journey', owner = 'jrn_1', claimed_epoch = 1, claimed_at = $1"
    await database.execute(claimed, NOW)
    archived = [withdrawals.of_archived(ORGANIZATION, "test", "jrn_1")]
    assert await withdrawals.of_journeys(database, archived, NOW, limit=9) == []
    assert await withdrawals.left_of_journeys(database, archived, NOW) == {*archived}
    await database.execute("update dispatch set reason = 'uncertain', not_before = 'infinity'")
    assert await withdrawals.left_of_journeys(database, archived, NOW) == set()


async def test_the_end_of_a_journey_ends_repeats(database: Database, queued: list[str]) -> None:
    await database.execute("update dispatch set source_kind = 'journey', owner = 'jrn_1', repeat_of = $1", NOW)
    archived = [withdrawals.of_archived(ORGANIZATION, "test", "jrn_1")]
    assert await withdrawals.of_journeys(database, archived, NOW, limit=9) == []
    rows = await database.fetch("select distinct reason, repeat_of, claimed_at from dispatch")
    assert [tuple(row) for row in rows] == [("uncertain", None, NOW)]
    assert await withdrawals.left_of_journeys(database, archived, NOW) == set()


@pytest.mark.parametrize("rows", ["", QUEUE], ids=["empty", "full"])
async def test_what_journeys_have_queued_is_found_by_its_index(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
        await database.execute("analyze dispatch")
    for name, others in (("waiting_of_journeys", set()), ("left_of_journeys", {"journeys_pkey"})):
        found = await plan_for_any(database.hot, getattr(withdrawals.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), {"dispatch_of_journeys", *others})
    for pool in (database, database.hot):
        found = await plan_for_any(pool, withdrawals.SQL.in_hand)
        assert (whole_tables(found), indexes(found)) == (set(), {"dispatch_pkey"})
