"""Pages of a static list by `skip`: its members as they are, whatever earlier pages remember of them (C5.1)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.identifiers import read_identifiers
from tests.people import contact_id, insert_people

from recado.storage.audience import lists
from recado.storage.audience.lists import MemberChange, StaticList
from recado.storage.contacts import contact_reads, list_pages
from recado.storage.contacts.contact_reads import ContactFilter, ContactPage
from recado.storage.contacts.list_pages import Milestones
from recado.storage.core.connections.postgres import Connection, Database

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ORGANIZATION, ENV = "org_1", "test"
PEOPLE = 30
STEP = 4
LIST = StaticList(organization_id=ORGANIZATION, env=ENV, id="lst_1", name="List", updated_at=NOW)

Numbers = Sequence[int]


@pytest.fixture
async def people(database: Database) -> Database:
    """Thirty contacts, and three lists that hold all of them."""
    await insert_people(database, ORGANIZATION, ENV, [{}] * PEOPLE)
    for number in (1, 2, 3):
        await make(database, replace(LIST, id=f"lst_{number}", name=f"List {number}"), range(1, PEOPLE + 1))
    return database


async def make(db: Database, new: StaticList, numbers: Numbers) -> None:
    async with db.transaction() as connection:
        await lists.insert(connection, new)
        await lists.join(connection, ORGANIZATION, ENV, new.id, ids(numbers), NOW)


def ids(numbers: Numbers) -> list[str]:
    return [contact_id(n) for n in numbers]


async def change(db: Database, what: MemberChange, numbers: Numbers) -> None:
    async with db.hot.transaction() as connection:
        found = await locked(connection)
        await lists.change_members(connection, found, what, read_identifiers(ids(numbers), [], []), NOW)


async def locked(connection: Connection) -> StaticList:
    found = await lists.get_locked(connection, ORGANIZATION, ENV, LIST.id)
    assert found is not None
    return found


class Reader:
    """Reads pages of three as a process does; remembers behind how many members the last one began its way."""

    def __init__(self, database: Database, **options: int) -> None:
        self.milestones = Milestones(**{"step": STEP, **options})
        self.began = 0
        self._database = database

    async def fetch(self, query: str, /, *args: Any) -> Any:
        rows = await self._database.fetch(query, *args)
        assert query == list_pages.PAGE
        self.began = args[4] if rows and rows[0]["version"] == args[3] else 0
        return rows

    async def page(self, skip: int = 0, list_id: str = LIST.id, env: str = ENV, **more: Any) -> ContactPage:
        wanted = ContactFilter(organization_id=ORGANIZATION, env=env, list_id=list_id)
        executor: Any = self
        return await contact_reads.list_page(executor, wanted, limit=3, skip=skip, milestones=self.milestones, **more)

    async def shown(self, skip: int, **more: Any) -> list[str]:
        return [contact.id for contact in (await self.page(skip, **more)).items]


# What changes a list -------------------------------------------------------------------------------------------------


async def added(db: Database, numbers: Numbers) -> None:
    await change(db, MemberChange.ADD, numbers)


async def removed(db: Database, numbers: Numbers) -> None:
    await change(db, MemberChange.REMOVE, numbers)


async def replaced(db: Database, numbers: Numbers) -> None:
    await change(db, MemberChange.REPLACE, numbers)


async def imported(db: Database, numbers: Numbers) -> None:
    async with db.transaction() as connection:
        await lists.join(connection, ORGANIZATION, ENV, LIST.id, ids(numbers), NOW)


async def contacts_deleted(db: Database, numbers: Numbers) -> None:
    """They come back as contacts, and on no list."""
    async with db.transaction() as connection:
        await connection.execute("delete from contacts where id = any($1::text[])", ids(numbers))
        await lists.leave(connection, ORGANIZATION, ENV, ids(numbers))
    for number in set(numbers):
        await insert_people(db, ORGANIZATION, ENV, [{}], first=number)


async def made_anew(db: Database, numbers: Numbers) -> None:
    async with db.transaction() as connection:
        await lists.delete(connection, LIST)
    await make(db, replace(LIST, name="List 1"), numbers)


async def described(db: Database, numbers: Numbers) -> None:
    async with db.transaction() as connection:
        before = await locked(connection)
        await lists.save(connection, before, replace(before, description=str(numbers)), NOW)


Change = Callable[[Database, Numbers], Awaitable[None]]
OUTCOMES: dict[Change, Callable[[set[int], set[int]], set[int]]] = {
    added: set.union,
    removed: set.difference,
    replaced: lambda _, named: named,
    imported: set.union,
    contacts_deleted: set.difference,
    made_anew: lambda _, named: named,
    described: lambda before, _: before,
}
CHANGES = st.tuples(
    st.sampled_from(list(OUTCOMES)), st.lists(st.integers(1, PEOPLE), min_size=1, max_size=PEOPLE, unique=True)
)
PAGES = st.tuples(st.integers(0, 1), st.integers(0, PEOPLE + STEP))


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(st.one_of(CHANGES, PAGES, PAGES), min_size=2, max_size=20))
async def test_a_page_holds_the_members_of_its_moment_whatever_changed_them(people: Database, steps: Any) -> None:
    await people.execute("delete from static_list_members where list_id = 'lst_1'")
    await people.execute("delete from static_lists where id = 'lst_1'")
    now = set(range(1, PEOPLE + 1))
    await make(people, replace(LIST, name="List 1"), sorted(now))
    readers = Reader(people), Reader(people)  # two processes, of which each remembers its own pages
    for what, argument in steps:
        if what in OUTCOMES:
            await what(people, argument)
            now = OUTCOMES[what](now, set(argument))
            continue
        page = await readers[what].page(argument)
        wanted = ids(sorted(now, reverse=True))[argument:]
        assert [contact.id for contact in page.items] == wanted[:3]
        assert (page.total, page.more) == (len(now), len(wanted) > 3)


@pytest.mark.parametrize("what", OUTCOMES, ids=lambda what: what.__name__)
async def test_milestones_hold_until_the_list_is_written(people: Database, what: Change) -> None:
    reader = Reader(people)
    before = await reader.shown(22)
    assert (await reader.shown(22), reader.began) == (before, 20)
    await what(people, [2, 4, 29, 30])
    await reader.shown(22)
    assert reader.began == 0


async def test_a_page_is_read_from_the_milestone_before_it(people: Database) -> None:
    reader = Reader(people)
    newest_first = ids(range(PEOPLE, 0, -1))
    for skip, began in [(13, 0), (13, 12), (12, 12), (11, 8), (3, 0), (4, 4), (26, 12), (25, 24), (99, 24), (99, 28)]:
        assert await reader.shown(skip) == newest_first[skip : skip + 3]
        assert reader.began == began, skip


async def test_a_change_of_as_many_members_is_noticed(people: Database) -> None:
    await replaced(people, range(1, 21))
    reader = Reader(people)
    assert await reader.shown(16) == ids([4, 3, 2])
    await replaced(people, range(11, 31))
    assert await reader.shown(16) == ids([14, 13, 12])


async def test_a_change_counts_from_its_commit(people: Database) -> None:
    reader = Reader(people)
    await reader.shown(8)
    async with people.hot.transaction() as connection:
        named = read_identifiers(ids([30, 29]), [], [])
        await lists.change_members(connection, await locked(connection), MemberChange.REMOVE, named, NOW)
        assert (await reader.shown(8), reader.began) == (ids([22, 21, 20]), 8)
    assert (await reader.shown(8), reader.began) == (ids([20, 19, 18]), 0)


async def test_a_change_that_is_undone_was_none(people: Database) -> None:
    reader = Reader(people)
    await reader.shown(8)
    async with people.hot.transaction() as connection:
        undone = connection.transaction()
        await undone.start()
        named = read_identifiers(ids([30, 29]), [], [])
        await lists.change_members(connection, await locked(connection), MemberChange.REMOVE, named, NOW)
        await undone.rollback()
    assert (await reader.shown(8), reader.began) == (ids([22, 21, 20]), 8)


async def test_a_page_beside_changes_is_of_one_moment(people: Database) -> None:
    moments = [range(1, 21), range(11, 31)]
    pages = [ids(sorted(each, reverse=True))[17:20] for each in moments]
    await replaced(people, moments[1])
    reader = Reader(people)

    async def changing() -> None:
        for turn in range(40):
            await replaced(people, moments[turn % 2])

    work = asyncio.create_task(changing())
    while not work.done():
        assert await reader.shown(17) in pages
    await work


async def test_by_cursor_the_list_goes_on_after_any_contact(people: Database) -> None:
    reader = Reader(people)
    await reader.shown(8)
    await removed(people, [20])
    page = await reader.page(after=(None, contact_id(20)))
    assert ([contact.id for contact in page.items], page.total, page.more) == (ids([19, 18, 17]), 29, True)
    last = await reader.page(after=(None, contact_id(3)))
    assert ([contact.id for contact in last.items], last.more) == (ids([2, 1]), False)


async def test_a_list_of_another_environment_shows_nobody(people: Database) -> None:
    reader = Reader(people)
    await reader.shown(8)
    for elsewhere in ({"env": "live"}, {"list_id": "lst_9"}):
        page = await reader.page(8, **elsewhere)
        assert (page.items, page.total, page.more) == ([], 0, False)


async def test_the_lists_that_were_asked_for_last_are_remembered(people: Database) -> None:
    reader = Reader(people, lists=2)
    for list_id in ("lst_1", "lst_2", "lst_1", "lst_3"):
        await reader.shown(8, list_id=list_id)
    assert len(reader.milestones) == 2
    for list_id, began in (("lst_1", 8), ("lst_3", 8), ("lst_2", 0)):
        await reader.shown(8, list_id=list_id)
        assert reader.began == began, list_id


async def test_first_pages_leave_nothing_to_remember(people: Database) -> None:
    reader = Reader(people)
    await reader.shown(0)
    await reader.shown(STEP - 1)
    assert len(reader.milestones) == 0
