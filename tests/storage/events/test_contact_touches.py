"""When a message left that names a contact is noted by whatever tells of its departure, in its commit (C21.5)."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest
from tests.storage.dispatch.test_claims import IDS, NOW, ORGANIZATION, of

from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.ids import MESSAGE
from recado.domain.messages.message import MessageEvent
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep import retention
from recado.storage.dispatch import departures, dispatch, epochs, settlements
from recado.storage.dispatch.departures import Following
from recado.storage.dispatch.dispatch import CLAIMED
from recado.storage.dispatch.settlements import Departed
from recado.storage.messages import messages, receipts, state_moves
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.receipts import ReportRow

NUMBER_ID = "num_" + "0" * 21
CONTACT_ID = "cnt_" + "0" * 21


async def sending(db: Database, contact_id: str | None = CONTACT_ID) -> str:
    """A claimed message to the contact."""
    message_id = IDS.new(MESSAGE)
    new = NewMessage(
        organization_id=ORGANIZATION, env="test", channel=CHATAPP, id=message_id, sender_id=NUMBER_ID, type="text",
        recipient="+5511987654321", recipient_hash=1, klass=1, force=False, template_id=None, payload=None,
        template_vars=None, metadata=None, campaign_id=None, scheduled_at=None, due_at=NOW, ttl=timedelta(hours=1),
        held_base_ms=0, accepted_at=NOW, contact_id=contact_id,
    )  # fmt: skip
    assert await messages.accept(db, [new]) == [messages.STORED]
    epoch = await epochs.take_epoch(db, NOW)
    assert await dispatch.claim(db, [of(message_id)], epoch, NOW) == [CLAIMED]
    return message_id


def departed(message_id: str, at: datetime = NOW) -> Departed:
    return Departed(ORGANIZATION, "test", CHATAPP, message_id, NUMBER_ID, "provider-1", at, None, None, at)


async def answered(db: Database, message_id: str) -> None:
    await settlements.departed(db, [departed(message_id)])


async def answered_at_once(db: Database, message_id: str) -> None:
    await departures.depart(db, [departed(message_id)], Following())


async def reported(db: Database, message_id: str, status: str = "delivered") -> None:
    row = ReportRow(ORGANIZATION, "test", CHATAPP, message_id, status, NOW + timedelta(seconds=1), None, None)
    assert (await receipts.apply(db, [row], NOW))[message_id]


Leaves = Callable[[Database, str], Awaitable[None]]
each_way = pytest.mark.parametrize("leaves", [answered, answered_at_once, reported])


async def touches(db: Database) -> list[tuple[str, str, str, datetime, bool]]:
    """Contact, channel, message and moment of each, and whether it is the moment that the message tells."""
    rows = await db.fetch(
        "select t.contact_id, t.channel, t.message_id, t.sent_at, t.sent_at = m.sent_at "
        "from contact_touches t join messages m on m.id = t.message_id order by 4, 3"
    )
    return [tuple(row) for row in rows]


@each_way
async def test_a_departure_to_a_contact_is_noted_once(database: Database, leaves: Leaves) -> None:
    message_id = await sending(database)
    assert await touches(database) == []
    await leaves(database, message_id)
    noted = [(CONTACT_ID, CHATAPP, message_id, NOW, True)]
    assert await touches(database) == noted
    await reported(database, message_id, "read")
    assert await touches(database) == noted


@each_way
async def test_a_departure_that_names_no_contact_is_not_noted(database: Database, leaves: Leaves) -> None:
    await leaves(database, await sending(database, contact_id=None))
    assert await database.fetchval("select count(*) from contact_touches") == 0


async def test_an_answer_after_the_report_tells_the_moment_that_holds(database: Database) -> None:
    message_id = await sending(database)
    await reported(database, message_id)
    at = NOW + timedelta(milliseconds=50)
    await settlements.departed(database, [departed(message_id, at)])
    assert [(moment, holds) for *_, moment, holds in await touches(database)] == [(NOW, False), (at, True)]
    await database.execute(
        retention.SQL.forget_provider_ids.replace("{month}", "messages"), ORGANIZATION, "test", CHATAPP, "", 10
    )
    assert await touches(database) == []


async def test_a_message_whose_event_takes_it_to_sent_has_left(database: Database) -> None:
    message_id, other = await sending(database), await sending(database, contact_id=None)
    keys = [(ORGANIZATION, "test", each) for each in (message_id, other)]
    async with database.transaction() as connection:
        await state_moves.move(connection, CHATAPP, keys, MessageEvent.ACCEPTED, NOW, None)
    assert await touches(database) == [(CONTACT_ID, CHATAPP, message_id, NOW, True)]
