"""Words inside words (C12.1): what a search finds on a server that offers pg_trgm, and what it does not."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from bench.contacts import make_contacts
from tests.people import contact_id, phone
from tests.storage.conftest import opened, read_only
from tests.storage.searching import ENV, ORG, add, learnt, names, page

from recado.domain.contacts.contact_search import folded, search_mark, search_terms
from recado.storage.contacts import contact_reads
from recado.storage.contacts.contact_reads import ContactFilter, condition
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import migrate

PEOPLE = (
    "Maria da Conceição",  # 1
    "Mariana d'Ávila",
    "Ana_Rita 100% O\\Neill",
    "m.souza@example.com",
    "Λυδία Παπαδοπούλου",  # 5
    "山田太郎",
    "x (a.*b) [c] {d} ^e$ |f",
)


@pytest.fixture(scope="module")
def people(system_postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The connect arguments of a database with these people, which tests read only."""

    async def fill(db: Database) -> None:
        await migrate(db)
        await add(db, PEOPLE)

    with read_only(system_postgres, fill, "") as arguments:
        yield arguments


@pytest.fixture
async def shared(people: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(people) as db:
        yield db


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("aria", (1, 2)),
        ("ARIA", (1, 2)),
        ("ária", (1, 2)),
        ("arian", (2,)),
        ("ceicao", (1,)),
        ("CEIÇÃO", (1,)),
        ("conceição", (1,)),
        ("vila", (2,)),
        ("d'ávila", (2,)),
        ("ouza", (4,)),
        ("xampl", (4,)),
        ("ouza@exam", (4,)),
        ("παδοπ", (5,)),
        ("υδία", (5,)),
        ("田太郎", (6,)),
        ("neill", (3,)),
        ("100", (3,)),
        ("na_rit", (3,)),
        ("rita", (3,)),
        ("aria ceic", (1,)),
        ("aria da", (1,)),
        ("da", (1,)),
        ("d", (1, 2, 7)),
        ("ria", (1, 2)),
        # Shorter than three: beginnings only.
        ("ia", ()),
        ("田太", ()),
        ("a_", ()),
        # Over the end of a word.
        ("mariada", ()),
        ("riada", ()),
        ("ariana vila souza", ()),
        # What is special elsewhere separates words, and is nothing else.
        ("%", ()),
        ("%%%", ()),
        ("100%", (3,)),
        ("___", ()),
        ("n__r", ()),
        ("m_ria", ()),
        ("\\", ()),
        ("o\\neill", (3,)),
        ("\\w+", ()),
        ("'", ()),
        ("'''", ()),
        ("'ari", (1, 2)),
        ("ari'", (1, 2)),
        ("' or true --", ()),
        ("a.*b", (7,)),
        (".*", ()),
        ("[^x]", (7,)),
        ("mar[i]a", ()),
        ("(?i)ARIA", ()),
        ("***=ari", (1, 2)),
        ("^mar", (1, 2)),
        ("ria$", (1, 2)),
        ("ari|xyz", ()),
        ("ar{1}i", ()),
        ("😀", ()),
        ("aria😀", (1, 2)),
        ("😀😀😀", ()),
        ("a" * 100, ()),
    ],
)
async def test_a_search_finds_words_by_their_parts(shared: Database, q: str, found: tuple[int, ...]) -> None:
    assert await names(shared, q) == [PEOPLE[number - 1] for number in found]


async def test_a_phone_is_found_by_its_ends_only(shared: Database) -> None:
    first = phone(1)  # +4915000000001
    assert await names(shared, first) == [PEOPLE[0]]
    assert await names(shared, first[-5:]) == [PEOPLE[0]]
    assert await names(shared, f"aria {first[-5:]}") == [PEOPLE[0]]
    assert await names(shared, first[:8]) == list(PEOPLE)
    for inner in (first[2:9], first[5:-1], first[-2:1:-1], first[6:9], first[-3:]):
        assert await names(shared, inner) == [], inner


async def test_a_word_of_digits_is_found_inside_words_too(system_database: Database) -> None:
    await add(system_database, ["order77123x", "Ana"])
    assert await names(system_database, "7123") == ["order77123x"]


async def test_nobody_of_another_organization_or_environment_is_found(system_database: Database) -> None:
    await add(system_database, ["Maria"])
    await add(system_database, ["Rosaria"], organization="org_8", first=2)
    await add(system_database, ["Rosaria"], env="live", first=3)
    same_mark = search_mark(ORG, ENV)  # one in millions has it
    await add(system_database, ["Rosaria"], organization="org_9", first=4, mark=same_mark)
    assert await names(system_database, "saria") == []
    assert await names(system_database, "aria") == ["Maria"]


async def test_the_mark_is_found_neither_alone_nor_with_what_follows(system_database: Database) -> None:
    mark = "4mar"
    await add(system_database, ["Ana Rui", "x4marana"], mark=mark)
    inside = await learnt(system_database)
    asked = {
        "4ma": ["x4marana"],
        "mar": ["x4marana"],
        "arana": ["x4marana"],
        "marrui": [],
        "ana": ["Ana Rui", "x4marana"],
    }
    for q, wanted in asked.items():
        sql, arguments = condition(search_terms(mark, q, inside))
        rows = await system_database.fetch(f"select name from contacts c where {sql} order by id", *arguments)
        assert [row["name"] for row in rows] == wanted, q


async def test_the_index_and_the_table_agree_on_every_part_of_every_word(system_database: Database) -> None:
    written = ["Straße", "ŁÓDŹ", "Привет", "ᏣᎳᎩ", "ﬁnance", "Ǆungla", "İstanbul", "ΣΊΣΥΦΟΣ", "นามสกุล", "हिन्दी", "x²y³z"]
    await add(system_database, written)
    inside = await learnt(system_database)
    asked = 0
    async with system_database.transaction() as connection:
        await connection.execute("set local enable_seqscan = off; set local enable_indexscan = off")
        for word in re.findall(r"\w{4,}", folded(" ".join(written))):
            for begin in range(len(word) - 2):
                for end in range(begin + 3, len(word) + 1):
                    part = word[begin:end]
                    wanted = [name for name in written if part in folded(name)]
                    q = ContactFilter(organization_id=ORG, env=ENV, q=part, inside=inside)
                    found = await contact_reads.list_page(connection, q, limit=50)
                    assert [contact.name for contact in reversed(found.items)] == wanted, part
                    asked += 1
    assert asked > 100


async def test_many_matches_are_counted_and_read_page_by_page_as_ever(system_database: Database) -> None:
    async with system_database.acquire() as connection:
        ids = (await make_contacts(connection, ORG, 10_500))[::-1]
    first = await page(system_database, "obrenome", limit=3)
    assert (first.total, first.estimated, first.more) == (10_001, True, True)
    assert [contact.id for contact in first.items] == ids[:3]
    second = await page(system_database, "obrenome", limit=3, after=(None, ids[2]))
    skipped = await page(system_database, "obrenome", limit=3, skip=3)
    assert [contact.id for contact in second.items] == [contact.id for contact in skipped.items] == ids[3:6]
    few = await page(system_database, "ustomer1049", limit=3)
    all_of_them = await page(system_database, "ustomer1049", limit=50)
    assert few.total == all_of_them.total == len(all_of_them.items) > 3
    assert (few.more, few.estimated, all_of_them.more) == (True, False, False)
    assert [contact.id for contact in few.items] == [contact.id for contact in all_of_them.items][:3]
    assert (await page(system_database, "obrenome", limit=3, after=(None, ids[-1]))).items == []


async def test_a_search_in_a_static_list_and_by_tag_finds_parts_too(system_database: Database) -> None:
    await add(system_database, ["Maria", "Mariana", "Ana"])
    await system_database.execute("update contacts set tags = '{VIP}', tag_keys = '{vip}' where name <> 'Maria'")
    await system_database.execute(
        "insert into static_lists (organization_id, env, id, name, name_key, size, updated_at)"
        " values ($1, $2, 'lst_1', 'n', 'n', 2, now())", ORG, ENV,
    )  # fmt: skip
    await system_database.execute(
        "insert into static_list_members (organization_id, list_id, contact_id, added_at)"
        " select organization_id, 'lst_1', id, now() from contacts where name in ('Maria', 'Ana')"
    )
    inside = await learnt(system_database)
    narrowed: list[tuple[dict[str, Any], list[int]]] = [
        ({"tag": "vip"}, [2]),
        ({"list_id": "lst_1"}, [1]),
        ({"list_id": "lst_1", "tag": "vip"}, []),
    ]
    for more, wanted in narrowed:
        asked = ContactFilter(organization_id=ORG, env=ENV, q="aria", inside=inside, **more)
        found = await contact_reads.list_page(system_database, asked, limit=5)
        assert ([contact.id for contact in found.items], found.total) == ([contact_id(n) for n in wanted], len(wanted))
