"""Static lists: exact counts of every call, also when many calls come at once (C7.2)."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.identifiers import read_identifiers
from tests.people import contact_id, insert_people, phone
from tests.waiting import until_locked_out

from recado.domain.audience.members import Identifiers
from recado.domain.core.errors import Problem
from recado.storage.audience import lists
from recado.storage.audience.lists import MemberChange, Membership, StaticList
from recado.storage.core.connections.postgres import Database

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ORGANIZATION = "org_1"


def new(number: int = 1, **fields: Any) -> StaticList:
    shared = {"organization_id": ORGANIZATION, "env": "test", "id": f"lst_{number}", "name": f"List {number}"}
    return StaticList(**{**shared, "updated_at": NOW, **fields})


@pytest.fixture
async def people(database: Database) -> Database:
    """Ten contacts, with external ids x1 to x10."""
    await insert_people(database, ORGANIZATION, "test", [{"external_id": f"x{n}"} for n in range(1, 11)])
    return database


async def make(db: Database, *numbers: int) -> StaticList:
    """A list of these contacts."""
    async with db.transaction() as connection:
        made = await lists.insert(connection, new())
    await change(db, MemberChange.ADD, read_identifiers([contact_id(n) for n in numbers], [], []))
    return made


async def change(db: Database, what: MemberChange, named: Identifiers, list_id: str = "lst_1") -> Membership:
    async with db.hot.transaction() as connection:
        found = await lists.get_locked(connection, ORGANIZATION, "test", list_id)
        assert found is not None
        return await lists.change_members(connection, found, what, named, NOW)


async def members(db: Database, list_id: str = "lst_1") -> list[str]:
    rows = await db.fetch("select contact_id from static_list_members where list_id = $1 order by 1", list_id)
    return [row["contact_id"] for row in rows]


async def size(db: Database, list_id: str = "lst_1") -> int:
    found = await lists.get(db, ORGANIZATION, "test", list_id)
    assert found is not None
    return found.size


def counts(outcome: Membership) -> tuple[int, int, int, int, int]:
    return outcome.matched, outcome.added, outcome.removed, outcome.total, outcome.not_found


async def test_a_contact_named_in_three_ways_is_one(people: Database) -> None:
    await make(people)
    named = read_identifiers([contact_id(1), contact_id(1)], [phone(1), phone(2)], ["x1", "x3"])
    outcome = await change(people, MemberChange.ADD, named)
    assert counts(outcome) == (3, 3, 0, 3, 0)
    assert counts(await change(people, MemberChange.ADD, named)) == (3, 0, 0, 3, 0)
    assert await members(people) == [contact_id(n) for n in (1, 2, 3)]


async def test_identifiers_without_a_contact_come_back(people: Database) -> None:
    await make(people)
    absent = contact_id(999)
    outcome = await change(
        people,
        MemberChange.ADD,
        read_identifiers([absent, "cnt_1", absent], ["+4915 000-000 001", "123", phone(77)], ["x1", "nobody", ""]),
    )
    assert counts(outcome) == (1, 1, 0, 1, 6)
    assert (outcome.contact_ids.count, sorted(outcome.contact_ids.sample)) == (2, sorted(["cnt_1", absent]))
    assert (outcome.phones.count, outcome.phones.sample) == (2, ["123", phone(77)])
    assert (outcome.external_ids.count, outcome.external_ids.sample) == (2, ["", "nobody"])


async def test_the_sample_of_a_kind_has_at_most_a_hundred(people: Database) -> None:
    await make(people)
    missing = [f"nobody {n:03}" for n in range(250)]
    outcome = await change(people, MemberChange.ADD, read_identifiers([f"cnt_{n}" for n in range(150)], [], missing))
    assert (outcome.contact_ids.count, len(outcome.contact_ids.sample)) == (150, 100)
    assert (outcome.external_ids.count, outcome.external_ids.sample) == (250, missing[:100])


async def test_a_list_becomes_exactly_those_given(people: Database) -> None:
    await make(people, 1, 2, 3)
    outcome = await change(people, MemberChange.REPLACE, read_identifiers([], [phone(3), phone(4)], ["nobody"]))
    assert counts(outcome) == (2, 1, 2, 2, 1)
    assert await members(people) == [contact_id(3), contact_id(4)]
    assert await size(people) == 2


async def test_a_list_is_not_emptied_by_a_replacement(people: Database) -> None:
    await make(people, 1, 2)
    for named in (read_identifiers([], [], []), read_identifiers(["cnt_1"], [phone(99)], ["nobody"])):
        with pytest.raises(Problem) as caught:
            await change(people, MemberChange.REPLACE, named)
        assert (caught.value.code, caught.value.status) == ("NO_MEMBER_MATCHED", 422)
    assert (await size(people), len(await members(people))) == (2, 2)


async def test_who_is_removed_leaves_the_list_and_stays_a_contact(people: Database) -> None:
    await make(people, 1, 2, 3)
    outcome = await change(people, MemberChange.REMOVE, read_identifiers([contact_id(1)], [phone(9)], ["x3", "x99"]))
    assert counts(outcome) == (3, 0, 2, 1, 1)
    assert await members(people) == [contact_id(2)]
    assert await people.fetchval("select count(*) from contacts") == 10


async def test_contacts_of_others_are_not_found(people: Database) -> None:
    await insert_people(people, ORGANIZATION, "live", [{"external_id": "live"}], first=20)
    await insert_people(people, "org_2", "test", [{"external_id": "foreign"}], first=21)
    await make(people)
    named = read_identifiers([contact_id(20), contact_id(21)], [phone(20), phone(21)], ["live", "foreign"])
    assert counts(await change(people, MemberChange.ADD, named)) == (0, 0, 0, 0, 6)


IDS = st.lists(st.integers(1, 12), max_size=8)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(st.tuples(st.sampled_from(MemberChange), IDS, IDS, IDS), min_size=1, max_size=6))
async def test_every_call_counts_what_sets_would(people: Database, calls: Sequence[Any]) -> None:
    await people.execute("truncate static_lists, static_list_members")
    await make(people)
    now: set[str] = set()
    for what, ids, phones, external_ids in calls:
        numbers = {*ids, *phones, *external_ids}
        named = read_identifiers(
            [contact_id(n) for n in ids], [phone(n) for n in phones], [f"x{n}" for n in external_ids]
        )
        matched = {contact_id(n) for n in numbers if n <= 10}
        absent = sum(len({n for n in kind if n > 10}) for kind in (ids, phones, external_ids))
        if what is MemberChange.REPLACE and not matched:
            with pytest.raises(Problem):
                await change(people, what, named)
            continue
        outcome = await change(people, what, named)
        after = {
            MemberChange.ADD: now | matched,
            MemberChange.REPLACE: matched,
            MemberChange.REMOVE: now - matched,
        }[what]
        assert counts(outcome) == (len(matched), len(after - now), len(now - after), len(after), absent)
        assert set(await members(people)) == after
        assert await size(people) == len(after)
        now = after


async def test_the_size_is_exact_whoever_calls_at_the_same_time(people: Database) -> None:
    await make(people)

    async def call(turn: int) -> Membership:
        numbers = [1 + (turn + step) % 10 for step in range(4)]
        what = list(MemberChange)[turn % 3]
        return await change(people, what, read_identifiers([contact_id(n) for n in numbers], [], []))

    outcomes = await asyncio.gather(*(call(turn) for turn in range(30)))
    assert await size(people) == len(await members(people))
    assert sum(outcome.added - outcome.removed for outcome in outcomes) == await size(people)


async def test_a_contact_that_is_removed_leaves_every_list_also_one_that_is_just_being_filled(people: Database) -> None:
    await make(people, 1, 2)
    async with people.transaction() as connection:
        await lists.insert(connection, new(2))

    async def removed() -> None:
        async with people.transaction() as connection:
            await connection.execute("delete from contacts where id = $1", contact_id(1))
            await lists.leave(connection, ORGANIZATION, "test", [contact_id(1)])

    async with people.hot.transaction() as connection:
        other = await lists.get_locked(connection, ORGANIZATION, "test", "lst_2")
        assert other is not None
        await lists.change_members(
            connection, other, MemberChange.ADD, read_identifiers([contact_id(1), contact_id(3)], [], []), NOW
        )
        removal = asyncio.create_task(removed())
        await until_locked_out(people)
    await removal
    assert await members(people) == [contact_id(2)]
    assert await members(people, "lst_2") == [contact_id(3)]
    assert (await size(people), await size(people, "lst_2")) == (1, 1)


async def test_contacts_that_an_import_made_join_a_list_once(people: Database) -> None:
    await make(people, 1)

    async def join(list_id: str) -> int | None:
        async with people.transaction() as connection:
            return await lists.join(connection, ORGANIZATION, "test", list_id, [contact_id(1), contact_id(2)], NOW)

    assert await join("lst_1") == 2
    assert await join("lst_1") == 2
    assert await size(people) == 2
    assert await join("lst_0") is None


async def test_a_list_that_is_deleted_takes_its_memberships_along(people: Database) -> None:
    made = await make(people, 1, 2)
    async with people.transaction() as connection:
        await lists.delete(connection, made)
    assert await members(people) == []
    assert await lists.get(people, ORGANIZATION, "test", made.id) is None
    assert await people.fetchval("select count(*) from contacts") == 10
