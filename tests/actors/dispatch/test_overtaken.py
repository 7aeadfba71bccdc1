"""Looks at what is held: so much at a time, and everything in the end."""

from tests.storage.billing.test_holds import ADD_NUMBER, ADD_TEMPLATE, IDS, ORGANIZATION, held, ready

from recado.actors.dispatch.overtaken import OvertakenHolds
from recado.domain.core.ids import NUMBER, TEMPLATE
from recado.storage.core.connections.postgres import Database


async def template(db: Database, status: str) -> str:
    template_id = IDS.new(TEMPLATE)
    await db.execute(ADD_TEMPLATE, ORGANIZATION, template_id, IDS.new(NUMBER), status)
    return template_id


async def test_a_look_ends_after_so_many_rows_and_the_next_goes_on_there(database: Database) -> None:
    paused, approved = await template(database, "paused"), await template(database, "approved")
    waiting = [await held(database, "template_state", template=paused) for _ in range(3)]
    overtaken = [await held(database, "template_state", template=approved) for _ in range(2)]
    holds = OvertakenHolds(database, page=2, rows=2)

    assert [await holds.look() for _ in range(3)] == [0, 1, 1]
    assert [await ready(database, each) for each in waiting + overtaken] == [False] * 3 + [True] * 2

    await database.execute("update templates set status = 'rejected' where id = $1", paused)
    assert [await holds.look() for _ in range(3)] == [2, 1, 0]


async def test_a_look_goes_from_group_to_group(database: Database) -> None:
    groups = [(IDS.new(NUMBER), reason) for _ in range(2) for reason in ("owner_paused", "template_state")]
    messages = [await held(database, reason, number=number) for number, reason in groups]

    holds = OvertakenHolds(database, rows=3)

    assert [await holds.look() for _ in range(2)] == [3, 1]
    assert [await ready(database, each) for each in messages] == [True] * 4


async def test_what_waits_for_a_number_that_is_not_back_is_passed_over(database: Database) -> None:
    away, back = sorted(IDS.new(NUMBER) for _ in range(2))
    for number, status in ((away, "disconnected"), (back, "connected")):
        await database.execute(ADD_NUMBER, ORGANIZATION, number, status)
    for _ in range(3):
        await held(database, "number_state", number=away)
    message = await held(database, "number_state", number=back)

    assert await OvertakenHolds(database, page=1, rows=1).look() == 1
    assert await ready(database, message)
