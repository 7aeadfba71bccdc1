"""Evaluating filters leaves room for the rest: few at a time, each within its limit (C13.3)."""

import asyncio
from collections import Counter
from datetime import UTC, datetime

import pytest
from tests.people import contact_id, insert_people
from tests.waiting import PATIENCE, locked_out, until

from recado.domain.audience.segment import Field, Leaf, Not, Operator
from recado.domain.channels.address import AddressKind
from recado.domain.core.errors import Unavailable
from recado.storage.audience import lists, segment_evaluation
from recado.storage.audience.lists import StaticList
from recado.storage.audience.segment_evaluation import AFTER_ALL_IDS, AT_ONCE, MOST_WAITING, Evaluation
from recado.storage.batches.audiences import Audience
from recado.storage.core.connections.postgres import Database

NOW = datetime(2026, 6, 1, tzinfo=UTC)
EVERYBODY = Not(Leaf(Field.TAG, Operator.IS, "nobody has it"))
KEY = ("org_1", "test")


async def test_an_evaluation_that_takes_too_long_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_evaluation, "EVALUATION_LIMIT", 0.3)
    evaluation = Evaluation(database)
    async with database.transaction() as connection:
        await connection.execute("lock table contacts in access exclusive mode")
        for asked in (
            evaluation.count(*KEY, EVERYBODY, NOW),
            evaluation.preview(*KEY, EVERYBODY, NOW),
            evaluation.contacts(*KEY, EVERYBODY, NOW, before_id=None, limit=1),
        ):
            with pytest.raises(Unavailable) as caught:
                await asked
            assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "60")
    monkeypatch.undo()
    assert await evaluation.count(*KEY, EVERYBODY, NOW) == 0  # its connection and its place are free again


async def test_a_preview_counts_all_and_names_the_newest_wherever_they_are(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = [["old", "each"]] * 25 + [["each"]] * 25 + [["each", "new"]] * 5
    ids = await insert_people(database, *KEY, [{"tags": each} for each in tags])
    monkeypatch.setattr(segment_evaluation, "NEWEST", 30)  # none of the old ones is among them
    expected = {"each": (55, ids[:-21:-1]), "old": (25, ids[24:4:-1]), "new": (5, ids[:-6:-1]), "none": (0, [])}
    for tag, found in expected.items():
        matches = await Evaluation(database).preview(*KEY, Leaf(Field.TAG, Operator.IS, tag), NOW)
        assert (matches.count, matches.sample) == found, tag


async def test_only_a_few_evaluations_run_at_a_time_and_one_of_an_organization(database: Database) -> None:
    await insert_people(database, *KEY, [{}] * 3)
    evaluation = Evaluation(database)
    async with database.transaction() as connection:
        await connection.execute("lock table contacts in access exclusive mode")
        counts = [asyncio.create_task(evaluation.count(*KEY, EVERYBODY, NOW)) for _ in range(AT_ONCE + 3)]

        async def one_waits() -> bool:
            return await locked_out(database) >= 1

        await until(one_waits, "an evaluation waits for the table")
        assert await locked_out(database) == 1
        others = [asyncio.create_task(evaluation.count(f"org_{n}", "test", EVERYBODY, NOW)) for n in (2, 3, 4)]

        async def as_many_as_may() -> bool:
            return await locked_out(database) >= AT_ONCE

        await until(as_many_as_may, "evaluations wait for the table")
        assert await locked_out(database) == AT_ONCE
    assert await asyncio.gather(*counts, *others) == [3] * len(counts) + [0] * len(others)


async def test_an_audience_is_read_however_long_it_waited_for_its_turn_and_not_longer_than_others_then(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_evaluation, "EVALUATION_LIMIT", 0.3)
    ids = await insert_people(database, *KEY, [{}] * 3)
    evaluation = Evaluation(database)

    async def read() -> list[str]:
        audience = Audience(before_id=AFTER_ALL_IDS, tree=EVERYBODY)
        reached = await evaluation.next_of(*KEY, audience, NOW, after_id="", limit=5)
        return [contact for contact, _ in reached.people]

    async with evaluation._places.place(KEY[0]):
        waiting_long = asyncio.create_task(read())
        with pytest.raises(Unavailable):
            await evaluation.count(*KEY, EVERYBODY, NOW)
        assert not waiting_long.done()
        monkeypatch.setattr(segment_evaluation, "EVALUATION_LIMIT", PATIENCE)  # from its turn on
    assert await waiting_long == ids
    monkeypatch.setattr(segment_evaluation, "EVALUATION_LIMIT", 0.3)
    async with database.transaction() as connection:
        await connection.execute("lock table contacts in access exclusive mode")
        with pytest.raises(Unavailable):
            await read()


async def test_an_organization_that_asks_for_too_much_at_once_is_told_to_come_again(database: Database) -> None:
    evaluation = Evaluation(database)
    async with database.transaction() as connection:
        await connection.execute("lock table contacts in access exclusive mode")
        counts = [asyncio.create_task(evaluation.count(*KEY, EVERYBODY, NOW)) for _ in range(1 + MOST_WAITING + 2)]
        with pytest.raises(Unavailable) as caught:
            await counts[-1]
        assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "10")
    found = await asyncio.gather(*counts, return_exceptions=True)
    assert found[: 1 + MOST_WAITING] == [0] * (1 + MOST_WAITING)
    assert [type(each) for each in found[1 + MOST_WAITING :]] == [Unavailable] * 2


async def test_an_audience_is_counted_by_region_and_read_in_order(database: Database) -> None:
    await insert_people(database, *KEY, [{}, {"phone": "+5511987654321"}, {}, {}])
    evaluation = Evaluation(database)
    audience = Audience(before_id=contact_id(4), tree=EVERYBODY)
    assert await evaluation.reach(*KEY, audience, NOW) == (3, {"BR": 1, "INTL": 2})
    first = await evaluation.next_of(*KEY, audience, NOW, after_id="", limit=2)
    assert ([contact for contact, _ in first.people], first.ended) == ([contact_id(1), contact_id(2)], False)
    rest = await evaluation.next_of(*KEY, audience, NOW, after_id=contact_id(2), limit=2)
    assert ([contact for contact, _ in rest.people], rest.ended) == ([contact_id(3)], True)
    nobody = Audience(before_id=AFTER_ALL_IDS, list_id="lst_0")
    assert (await evaluation.reach(*KEY, nobody, NOW)).contacts == 0


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("of_list", [True, False])
async def test_each_email_address_of_an_audience_is_read_once_in_whatever_parts(
    database: Database, limit: int, *, of_list: bool
) -> None:
    emails = ["other@x.example", "a@x.example", None, "A@X.example", "b@x.example", "a@x.example", "OTHER@x.example"]
    ids = await insert_people(database, *KEY, [{"email": each, "tags": ["in"]} for each in emails])
    await database.execute("update contacts set tag_keys = '{}' where id = $1", ids[0])
    evaluation = Evaluation(database)
    audience = Audience(before_id=AFTER_ALL_IDS, tree=Leaf(Field.TAG, Operator.IS, "in"))
    if of_list:
        async with database.transaction() as connection:
            await lists.insert(
                connection, StaticList(organization_id=KEY[0], env=KEY[1], id="lst_1", name="x", updated_at=NOW)
            )
            await lists.join(connection, *KEY, "lst_1", ids[1:], NOW)
        audience = Audience(before_id=AFTER_ALL_IDS, list_id="lst_1")
    assert await evaluation.reach(*KEY, audience, NOW, kind=AddressKind.EMAIL) == (6, {"INTL": 5})
    people: list[tuple[str, str]] = []
    left_out = Counter[str]()
    after_id, ended = "", False
    while not ended:
        reached = await evaluation.next_of(*KEY, audience, NOW, after_id=after_id, limit=limit, kind=AddressKind.EMAIL)
        people += reached.people
        left_out.update(reached.left_out)
        after_id, ended = reached.last_id, reached.ended
    assert people == [(ids[1], "a@x.example"), (ids[4], "b@x.example"), (ids[6], "OTHER@x.example")]
    assert left_out == {"RECIPIENT_MISSING": 1, "DUPLICATE_RECIPIENT": 2}
