"""Whom organizations have sent to from senders that they share is noted by whatever tells of a departure (C28.1)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.plans import indexes, plan_for_any, whole_tables
from tests.storage.dispatch.test_claims import IDS, NOW, ORGANIZATION, of

from recado.domain.channels.address import Address, AddressKind
from recado.domain.channels.source import Source
from recado.domain.core.ids import MESSAGE
from recado.storage.contacts import contact_erasures
from recado.storage.contacts.contact_erasures import Erasure
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import departures, dispatch, epochs, settlements
from recado.storage.dispatch.departures import Following
from recado.storage.dispatch.dispatch import CLAIMED
from recado.storage.dispatch.settlements import Departed
from recado.storage.messages import messages, reached_recipients, receipts
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.receipts import ReportRow

PHONE, OTHER = "+5511987654321", "+5511987654322"
SECOND = "org_" + "9" * 21
PREMIUM = "sms:live:premium"
LIVE = Source("sms", "bridge", "live")
NOBODYS = "num_" + "0" * 21


async def sending(db: Database, *, channel: str = "sms", env: str = "live", recipient: str = PHONE) -> str:
    message_id = IDS.new(MESSAGE)
    new = NewMessage(
        organization_id=ORGANIZATION, env=env, channel=channel, id=message_id,
        sender_id=PREMIUM if channel == "sms" else NOBODYS, type="text", recipient=recipient, recipient_hash=1, klass=1,
        force=False, template_id=None, payload=None, template_vars=None, metadata=None, campaign_id=None,
        scheduled_at=None, due_at=NOW, ttl=timedelta(hours=1), held_base_ms=0, accepted_at=NOW,
    )  # fmt: skip
    assert await messages.accept(db, [new]) == [messages.STORED]
    epoch = await epochs.take_epoch(db, NOW)
    assert await dispatch.claim(db, [of(message_id)], epoch, NOW) == [CLAIMED]
    return message_id


def departed(message_id: str, channel: str, env: str) -> Departed:
    sender = PREMIUM if channel == "sms" else NOBODYS
    return Departed(ORGANIZATION, env, channel, message_id, sender, "provider-1", NOW, None, None, NOW)


async def answered(db: Database, message_id: str, channel: str, env: str) -> None:
    await settlements.departed(db, [departed(message_id, channel, env)])


async def answered_at_once(db: Database, message_id: str, channel: str, env: str) -> None:
    await departures.depart(db, [departed(message_id, channel, env)], Following())


async def reported(db: Database, message_id: str, channel: str, env: str) -> None:
    row = ReportRow(ORGANIZATION, env, channel, message_id, "delivered", NOW, None, None)
    assert (await receipts.apply(db, [row], NOW))[message_id]


Leaves = Callable[[Database, str, str, str], Awaitable[None]]
each_way = pytest.mark.parametrize("leaves", [answered, answered_at_once, reported])


async def senders_to(db: Database, phone: str) -> list[tuple[str, str]]:
    address = Address(AddressKind.PHONE, phone).hash("sms")
    return (await reached_recipients.senders_to(db, LIVE, [address], NOW - timedelta(days=30))).get(address, [])


@each_way
async def test_whoever_is_sent_to_in_live_from_a_shared_sender_is_found(database: Database, leaves: Leaves) -> None:
    for recipient in (PHONE, PHONE, OTHER):
        await leaves(database, await sending(database, recipient=recipient), "sms", "live")
    assert await senders_to(database, PHONE) == await senders_to(database, OTHER) == [(ORGANIZATION, PREMIUM)]
    assert await database.fetchval("select count(*) from reached_recipients") == 2


@each_way
@pytest.mark.parametrize(("channel", "env"), [("sms", "test"), ("chatapp", "live")])
async def test_of_other_messages_nothing_is_noted_also_beside_those(
    database: Database, leaves: Leaves, channel: str, env: str
) -> None:
    other = await sending(database, channel=channel, env=env, recipient=OTHER)
    await leaves(database, other, channel, env)
    assert await database.fetchval("select count(*) from reached_recipients") == 0


async def test_a_report_notes_only_what_has_left_by_it(database: Database) -> None:
    """One that comes later finds the departure noted, or gone with the person who was erased."""
    message_id = await sending(database)
    await answered(database, message_id, "sms", "live")
    await database.execute("delete from reached_recipients")
    await reported(database, message_id, "sms", "live")
    assert await senders_to(database, PHONE) == []


async def test_a_report_of_a_message_that_was_erased_meanwhile_notes_no_recipient(database: Database) -> None:
    message_id = await sending(database)
    await database.execute("update messages set recipient = '+55***', recipient_hash = null where id = $1", message_id)
    await reported(database, message_id, "sms", "live")
    assert await database.fetchval("select count(*) from reached_recipients") == 0


async def test_those_of_several_channels_are_reported_together(database: Database) -> None:
    shared, own = await sending(database), await sending(database, channel="chatapp", recipient=OTHER)
    row = ReportRow(ORGANIZATION, "live", "sms", shared, "delivered", NOW, None, None)
    found = await receipts.apply(database, [row, replace(row, channel="chatapp", id=own)], NOW)
    assert found.keys() == {shared, own}
    assert await senders_to(database, PHONE) == [(ORGANIZATION, PREMIUM)]
    assert await senders_to(database, OTHER) == []


async def erased(db: Database, contact_id: str) -> None:
    key = (ORGANIZATION, "live", contact_id)
    await contact_erasures.begin(db, key, NOW, refused=False)
    assert await contact_erasures.block(db, Erasure(key, ""), NOW, mask=lambda channel, recipient: "***")


async def belongs(db: Database, message_id: str, contact_id: str, sent_at: datetime = NOW) -> None:
    await db.execute("update messages set contact_id = $2, sent_at = $3 where id = $1", message_id, contact_id, sent_at)


async def test_that_an_erased_contact_was_reached_is_forgotten_and_what_else_was_is_not(database: Database) -> None:
    for contact_id, recipient in (("cnt_1", PHONE), ("cnt_1", PHONE), ("cnt_2", OTHER)):
        message_id = await sending(database, recipient=recipient)
        await answered(database, message_id, "sms", "live")
        await belongs(database, message_id, contact_id)
    await database.execute(
        "insert into reached_recipients select env, channel, address_hash, $1, sender_id, reached_at "
        "from reached_recipients",
        SECOND,
    )
    await erased(database, "cnt_1")
    assert await senders_to(database, PHONE) == [(SECOND, PREMIUM)]
    assert {*await senders_to(database, OTHER)} == {(ORGANIZATION, PREMIUM), (SECOND, PREMIUM)}


async def test_whoever_is_sent_to_again_after_the_deletion_stays_reached(database: Database) -> None:
    """The phone may be that of a new contact by the time that the old one is erased."""
    message_id = await sending(database)
    await answered(database, message_id, "sms", "live")
    await belongs(database, message_id, "cnt_1", NOW - timedelta(minutes=1))
    await erased(database, "cnt_1")
    assert await senders_to(database, PHONE) == [(ORGANIZATION, PREMIUM)]


async def test_what_is_forgotten_is_found_through_its_key(database: Database) -> None:
    found = await plan_for_any(database.hot, contact_erasures.SQL.forget)
    assert (indexes(found), whole_tables(found)) == ({"reached_recipients_pkey"}, set())
