"""How a message is found by what its provider names it by, when that does not tell whose it is (C29.2)."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.storage.dispatch.test_claims import NOW, NUMBER, ORGANIZATION, of, stored
from tests.storage.webhooks.test_events import plan_of

from recado.domain.channels.source import Source
from recado.domain.messages.message import Cause
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import departures, dispatch, epochs, settlements
from recado.storage.dispatch.departures import Following
from recado.storage.dispatch.dispatch import CLAIMED
from recado.storage.dispatch.settlements import Departed, Failed, LookUps, Returned, Uncertain
from recado.storage.embedded.restored import end_queue
from recado.storage.messages import receipts

BRIDGE = Source("chatapp", "bridge", "test")
PN, OTHERS = "pn-1", "pn-2"
OWN = (
    "insert into sender_owners (env, channel, account, organization_id, sender_id) "
    "values ('test', 'chatapp', $1, $2, $3)"
)


async def named(db: Database, reference: str, account: str | None = None, source: Source = BRIDGE) -> str | None:
    (found,) = await receipts.messages_named(db, source, [(reference, account)])
    if found is None:
        return None
    assert found[0] == ORGANIZATION
    return found[1]


async def sending(db: Database) -> str:
    message_id = await stored(db)
    epoch = await epochs.take_epoch(db, NOW)
    assert await dispatch.claim(db, [of(message_id)], epoch, NOW) == [CLAIMED]
    return message_id


def departed(message_id: str, look_ups: LookUps | None) -> Departed:
    return Departed(ORGANIZATION, "test", "chatapp", message_id, NUMBER, "p-1", NOW, "utility", look_ups, NOW)


async def depart(db: Database, row: Departed) -> None:
    await settlements.departed(db, [row])


async def depart_at_once(db: Database, row: Departed) -> None:
    await departures.depart(db, [row], Following())


Depart = Callable[[Database, Departed], Awaitable[None]]
each_way = pytest.mark.parametrize("settle", [depart, depart_at_once])


@each_way
async def test_a_message_is_found_by_either_id_as_its_adapter_needs(database: Database, settle: Depart) -> None:
    message_id = await sending(database)
    await settle(database, departed(message_id, LookUps(PN, "bridge", theirs=True, ours=True)))
    assert await named(database, "p-1", PN) == message_id
    assert await named(database, message_id) == await named(database, message_id, PN) == message_id
    assert [await named(database, each, OTHERS) for each in ("p-1", message_id)] == [None, None]


@each_way
@pytest.mark.parametrize(
    ("look_ups", "found"),
    [
        (LookUps(PN, "bridge", theirs=True, ours=False), ["p-1"]),
        (LookUps(PN, "bridge", theirs=False, ours=True), ["ours"]),
        (None, []),
    ],
)
async def test_no_more_rows_are_written_than_an_adapter_needs(
    database: Database, settle: Depart, look_ups: LookUps | None, found: list[str]
) -> None:
    message_id = await sending(database)
    await settle(database, departed(message_id, look_ups))
    rows = await database.fetch("select reference from provider_messages")
    assert [row["reference"].replace(message_id, "ours") for row in rows] == found


async def test_adapters_channels_and_environments_name_messages_of_their_own(database: Database) -> None:
    message_id = await sending(database)
    await depart(database, departed(message_id, LookUps(PN, "bridge", theirs=True, ours=True)))
    others = [BRIDGE._replace(**{field: "another"}) for field in BRIDGE._fields]
    for reference in ("p-1", message_id):
        assert [await named(database, reference, PN, source) for source in others] == [None] * 3


async def test_one_provider_s_id_is_another_message_of_another_account(database: Database) -> None:
    first, second = await sending(database), await sending(database)
    for message_id, account in ((first, PN), (second, OTHERS)):
        await depart(database, departed(message_id, LookUps(account, "bridge", theirs=True, ours=False)))
    asked: list[tuple[str, str | None]] = [("p-1", OTHERS), ("p-2", PN), ("p-1", PN)]
    found = await receipts.messages_named(database, BRIDGE, asked)
    channel = BRIDGE.channel
    assert found == [(ORGANIZATION, second, channel), None, (ORGANIZATION, first, channel)]


@each_way
async def test_an_id_that_a_provider_gives_once_more_names_the_latest_message(
    database: Database, settle: Depart
) -> None:
    first, second = await sending(database), await sending(database)
    theirs = LookUps(PN, "bridge", theirs=True, ours=False)
    for message_id in (first, second):
        await settle(database, departed(message_id, theirs))
        assert await named(database, "p-1", PN) == message_id
    await settle(database, departed(second, theirs))  # as when the answer to the statement is lost
    assert await named(database, "p-1", PN) == second


async def test_two_of_a_batch_may_have_one_id(database: Database) -> None:
    theirs = LookUps(PN, "bridge", theirs=True, ours=False)
    first, second = [await sending(database) for _ in range(2)]
    later = replace(departed(first, theirs), sent_at=NOW + timedelta(seconds=1))
    moved = await settlements.departed(database, [departed(second, theirs), later])
    assert {each.id for each in moved} == {first, second}
    assert await named(database, "p-1", PN) == first


async def uncertain(db: Database, message_id: str) -> None:
    await settlements.uncertain(db, [Uncertain(ORGANIZATION, message_id, NUMBER, NOW)])


async def waits_for_its_repeat(db: Database, message_id: str) -> None:
    call = Returned(ORGANIZATION, "test", "chatapp", message_id, NOW, NOW, "retry", None, False, NOW, NOW)
    await settlements.returned(db, [call], await epochs.current_epoch(db))


async def given_up(db: Database, message_id: str) -> None:
    unknown = Cause("outcome_unknown", "no report came", certain=False)
    failed = Failed(ORGANIZATION, "test", "chatapp", message_id, unknown, NOW, False, NOW)
    await settlements.failed(db, [failed])


@pytest.mark.parametrize("becomes", [uncertain, waits_for_its_repeat, given_up])
async def test_what_may_have_left_is_found_by_our_id_alone(database: Database, becomes: Any) -> None:
    """No answer told the provider's."""
    message_id = await sending(database)
    assert await named(database, message_id) is None  # its call is under way: whoever reports it first comes again
    await becomes(database, message_id)
    assert await named(database, message_id) == message_id
    assert await named(database, message_id, source=BRIDGE._replace(channel="sms")) is None
    assert await named(database, message_id, "gateway_a") == message_id  # an account that organizations share


@pytest.mark.parametrize("becomes", [uncertain, waits_for_its_repeat, given_up])
async def test_who_names_another_account_than_the_sender_s_own_speaks_of_another_message(
    database: Database, becomes: Any
) -> None:
    message_id = await sending(database)
    await database.execute(OWN, PN, ORGANIZATION, NUMBER)
    await becomes(database, message_id)
    assert await named(database, message_id, OTHERS) is None
    assert await named(database, message_id) == message_id


async def test_what_failed_for_certain_leaves_nothing_to_find_it_by(database: Database) -> None:
    message_id = await sending(database)
    refused = Failed(ORGANIZATION, "test", "chatapp", message_id, Cause("provider_error", "no"), NOW, False)
    await settlements.failed(database, [refused])
    assert await named(database, message_id) is None


async def test_what_a_restored_database_ended_is_found_by_our_id(database: Database) -> None:
    ended = await stored(database)
    await database.execute("update dispatch set env = 'live'; update messages set env = 'live'")
    await end_queue(database, NOW + timedelta(hours=1))
    assert await named(database, ended, source=BRIDGE._replace(env="live")) == ended


async def test_names_are_looked_up_through_the_keys_alone(database: Database) -> None:
    plan = await plan_of(database, receipts.SQL.messages_named)
    assert "Seq Scan" not in plan
    for index, column in (("provider_messages_pkey", "reference"), ("dispatch_uncertain", "id")):
        assert re.search(rf"Scan (using|on) {index} .*\n\s+Index Cond: .*\b{column}\b.* = g\w*\.reference", plan), plan
