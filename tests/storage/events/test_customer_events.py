"""Customer events as rows: whose they are, which message they are attributed to, and how long they stay (C21)."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from tests.people import contact_id, insert_people, phone
from tests.plans import indexes, plan_for_any, plan_of, whole_tables
from tests.waiting import until_locked_out

from recado.domain.core.ids import CUSTOMER_EVENT, EXECUTION, MESSAGE, IdSource, lowest_id
from recado.domain.events.customer_event import ContactKeys, CustomerEvent, NewCustomerEvent
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.events import customer_event_pages, customer_events
from recado.storage.events.customer_event_pages import CustomerEventFilter
from recado.storage.journeys import execution_facts

ORGANIZATION, OTHER = "org_" + "0" * 21, "org_" + "1" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(5))
NOW = CLOCK.now()
ANA = contact_id(1)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)

_MESSAGE = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, recipient, recipient_hash, class, force, contact_id,
    campaign_id, sent_at, updated_at
)
values ($1, $2, $3, $4, $5, $6, 'text', '+1', 1, 1, false, $7, $8, $9::timestamptz, now())
"""
_EXECUTION = """
insert into executions (organization_id, env, journey_id, id, chain_id, versao, contact_id, status, origem, teste,
    hurried, entrada, step_id, arrived_at, started_at)
values ($1, 'test', 'jrn_1', $2, 'jrn_1', 1, $3, 'concluida', 'api', $4, false, '{}', 'end', now(), now())
"""
_STEP = """
insert into execution_steps (organization_id, execution_id, step_id, env, tipo, at, place, resultado, message_id,
    channel)
values ($1, $2, 'hello', 'test', 'enviar', now(), 0, 'enviado', $3, 'chatapp')
"""
_CAMPAIGN = """
insert into campaigns (organization_id, env, campaign_id, status, channels, first_message_at)
values ($1, 'test', $2, 'running', '{sms}', $3)
"""


def event(event_id: str, **changes: Any) -> NewCustomerEvent:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "id": IDS.new(CUSTOMER_EVENT), "event_id": event_id,
        "name": "order.paid", "contact": ContactKeys(contact_id=ANA), "occurred_at": NOW, "window": 168 * HOUR,
        "value": None, "currency": "BRL", "properties": None,
    }  # fmt: skip
    return NewCustomerEvent(**{**fields, **changes})


async def store(database: Database, *batch: NewCustomerEvent) -> list[CustomerEvent | None]:
    """What was stored of each."""
    async with database.hot.transaction() as connection:
        found = await customer_events.store(connection, batch)
    return [found.get(each.id) for each in batch]


async def message(database: Database, sent: timedelta, **changes: Any) -> str:
    """A message that left so long before the present; its id."""
    given: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp",
        "id": lowest_id(MESSAGE, NOW - sent)[:-3] + f"{random.randrange(1000):03}", "direction": "outbound",
        "status": "sent", "contact_id": ANA, "campaign_id": None, "sent_at": NOW - sent,
    }  # fmt: skip
    given |= changes
    await database.execute(_MESSAGE, *given.values())
    if given["sent_at"] and given["contact_id"] and given["direction"] == "outbound":
        touch = [given[name] for name in ("organization_id", "env", "contact_id", "sent_at", "id", "channel")]
        await database.execute("insert into contact_touches values ($1, $2, $3, $4, $5, $6)", *touch)
    return str(given["id"])


async def touched(database: Database, **changes: Any) -> str | None:
    """The message that an event of Ana is attributed to."""
    (found,) = await store(database, event(IDS.new("e"), **changes))
    assert found is not None
    return None if found.touch is None else found.touch.message_id


@pytest.fixture(autouse=True)
async def _people(database: Database) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    everybody: Sequence[dict[str, Any]] = [
        {"external_id": "ana", "email": "Home@example.com", "opt_in_status": "denied", "updated_at": at + HOUR},
        {"external_id": "bia", "email": "home@example.com", "updated_at": at + 3 * HOUR},
        {"email": "home@example.com", "opt_in_status": "granted", "updated_at": at + 2 * HOUR},
    ]
    await insert_people(database, ORGANIZATION, "test", everybody)
    await insert_people(database, OTHER, "test", [{"external_id": "zoe"}], first=9)


async def test_an_event_is_stored_with_the_external_id_of_its_contact(database: Database) -> None:
    new = event("e-1", value=Decimal("99.9"), properties='{"sku":"7"}')
    (stored,) = await store(database, new)
    assert stored == CustomerEvent(
        id=new.id, event_id="e-1", name="order.paid", contact_id=ANA, contact_external_id="ana", occurred_at=NOW,
        value=Decimal("99.9"), currency="BRL", properties='{"sku":"7"}', touch=None,
    )  # fmt: skip
    key = (ORGANIZATION, "test", "e-1")
    assert await customer_events.known(database, [key, (ORGANIZATION, "live", "e-1")]) == {key: stored}


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        ({"contact_id": contact_id(2), "external_id": "ana"}, 2),
        ({"contact_id": contact_id(7), "external_id": "ana", "phone": phone(2)}, 1),
        ({"external_id": "nobody", "phone": phone(2), "email": "home@example.com"}, 2),
        ({"phone": phone(8), "email": "home@example.com"}, 2),  # the last one that changed
        ({"contact_id": contact_id(9)}, None),  # of another organization
        ({"external_id": "zoe", "phone": phone(9)}, None),
        ({"email": "hom@example.com"}, None),
    ],
)
async def test_the_first_key_that_finds_a_contact_counts(
    database: Database, keys: dict[str, str], number: int | None
) -> None:
    (stored,) = await store(database, event("e", contact=ContactKeys(**keys)))
    assert stored is not None
    assert stored.contact_id == (None if number is None else contact_id(number))


async def test_an_id_of_the_caller_is_taken_once_in_an_environment(database: Database) -> None:
    first, second = event("e"), event("e")
    assert [found is None for found in await store(database, first, second)] == [False, True]
    assert await store(database, event("e", value=Decimal(1))) == [None]
    elsewhere = [event("e", env="live"), event("e", organization_id=OTHER), event("E")]
    assert None not in await store(database, *elsewhere)
    assert await database.fetchval("select count(*) from customer_events") == 4


async def test_the_last_departure_is_credited_whatever_was_accepted_later(database: Database) -> None:
    scheduled = await message(database, 20 * 24 * HOUR, sent_at=NOW - MINUTE, campaign_id="spring", channel="sms")
    await message(database, 2 * MINUTE)
    (stored,) = await store(database, event("e"))
    assert stored is not None
    assert stored.touch is not None
    assert (stored.touch.message_id, stored.touch.channel, stored.touch.campaign_id) == (scheduled, "sms", "spring")
    assert stored.touch.sent_at == NOW - MINUTE


async def test_of_two_that_left_together_the_younger_is_credited(database: Database) -> None:
    await message(database, 2 * HOUR, sent_at=NOW - MINUTE)
    younger = await message(database, HOUR, sent_at=NOW - MINUTE)
    assert await touched(database) == younger


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "failed"},
        {"status": "queued"},
        {"status": "sending"},
        {"status": "undelivered"},
        {"status": "bounced"},
        {"status": "complained"},
        {"direction": "inbound", "status": "delivered"},
        {"channel": "social"},
        {"contact_id": contact_id(2)},
        {"contact_id": None},
        {"env": "live"},
        {"organization_id": OTHER},
        {"sent_at": None},
        {"sent_at": NOW + MINUTE},
        {"sent_at": NOW - 168 * HOUR - timedelta(milliseconds=1)},
    ],
)
async def test_nothing_else_is_credited(database: Database, changes: dict[str, Any]) -> None:
    older = await message(database, HOUR, status="read")
    await message(database, MINUTE, **changes)
    assert await touched(database) == older


@pytest.mark.parametrize("channel", ["chatapp", "sms", "rcs", "email"])
async def test_each_channel_of_messages_is_credited_at_both_ends_of_the_window(
    database: Database, channel: str
) -> None:
    early = await message(database, HOUR, channel=channel, status="delivered")
    assert await touched(database, window=HOUR) == early
    assert await touched(database, window=HOUR - timedelta(milliseconds=1)) is None
    now = await message(database, timedelta(0), channel=channel)
    assert await touched(database, window=HOUR) == now


async def test_an_event_of_the_moment_at_which_a_departure_is_shown_is_attributed_to_it(database: Database) -> None:
    """Callers know moments to the millisecond, and departures are stored more finely."""
    fine = timedelta(microseconds=700)
    sent = await message(database, timedelta(0), sent_at=NOW + fine)
    (stored,) = await store(database, event("at once"))
    assert stored is not None
    assert stored.touch is not None
    assert (stored.touch.message_id, stored.touch.hours_until(stored.occurred_at)) == (sent, 0.0)
    assert await touched(database, occurred_at=NOW - timedelta(milliseconds=1)) is None
    assert await touched(database, occurred_at=NOW + HOUR + 2 * fine, window=HOUR - timedelta(milliseconds=1)) is None
    assert await touched(database, occurred_at=NOW + HOUR + fine / 2, window=HOUR) == sent


async def test_a_journey_counts_an_event_from_the_moment_that_its_begin_is_shown_as(database: Database) -> None:
    (stored,) = await store(database, event("goal"))
    assert stored is not None
    contact = execution_facts.ContactKey(ORGANIZATION, "test", ANA)
    begins = [NOW + timedelta(microseconds=700), NOW + timedelta(milliseconds=1)]
    asked = [execution_facts.EventQuestion(contact, stored.name, begin) for begin in begins]
    assert await execution_facts.first_events(database, asked) == {0: NOW}


async def test_so_many_departures_are_looked_at_and_no_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = await message(database, 3 * HOUR)
    for each in (2, 1):
        await message(database, each * HOUR, status="failed")
    monkeypatch.setattr(customer_events, "MOST_LOOKED_AT", 2)
    assert await touched(database) is None
    monkeypatch.setattr(customer_events, "MOST_LOOKED_AT", 3)
    assert await touched(database) == arrived


async def test_a_departure_that_was_corrected_since_counts_at_its_last_moment(database: Database) -> None:
    corrected = await message(database, HOUR)
    touch = (ORGANIZATION, "test", ANA, NOW - MINUTE, corrected, "chatapp")
    await database.execute("insert into contact_touches values ($1, $2, $3, $4, $5, $6)", *touch)
    (stored,) = await store(database, event("e"))
    assert stored is not None
    assert stored.touch is not None
    assert stored.touch.sent_at == NOW - HOUR


async def test_conversions_are_counted_in_the_campaign_and_add_up_reals_only(database: Database) -> None:
    for campaign in ("spring", "summer"):
        await database.execute(_CAMPAIGN, ORGANIZATION, campaign, NOW)
    await message(database, HOUR, campaign_id="spring")
    await message(database, MINUTE, campaign_id="summer", contact_id=contact_id(2))
    priced = [("a", "0.1", "BRL"), ("b", "0.2", "BRL"), ("c", "50", "USD"), ("a", "9", "BRL")]
    await store(
        database, *(event(name, value=Decimal(value), currency=currency) for name, value, currency in priced),
        event("d"), event("e", contact=ContactKeys(contact_id=contact_id(2)), value=Decimal(10**12)),
        event("f", contact=ContactKeys(contact_id=contact_id(3)), value=Decimal(1)),
    )  # fmt: skip
    await store(database, event("a", value=Decimal(7)))
    counted = await database.fetch("select campaign_id, conversions, conversion_value from campaigns order by 1")
    assert [tuple(row) for row in counted] == [("spring", 4, Decimal("0.3")), ("summer", 1, Decimal(10**12))]


async def test_what_another_counts_meanwhile_is_counted_too(database: Database) -> None:
    await database.execute(_CAMPAIGN, ORGANIZATION, "spring", NOW)
    await message(database, HOUR, campaign_id="spring")
    async with database.transaction() as connection:
        assert len(await customer_events.store(connection, [event("a", value=Decimal(1))])) == 1
        second = asyncio.create_task(store(database, event("b", value=Decimal(2))))
        await until_locked_out(database)
    await second
    counted = await database.fetch("select conversions, conversion_value from campaigns")
    assert [tuple(row) for row in counted] == [(2, Decimal(3))]


async def test_a_deleted_contact_takes_its_external_id_with_it_and_nothing_else(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(customer_events, "ERASE_BLOCK", 2)
    await store(
        database, *(event(str(number), occurred_at=NOW - number * HOUR) for number in range(5)),
        event("bia", contact=ContactKeys(external_id="bia")),
    )  # fmt: skip
    await customer_events.erase_contact(database, ORGANIZATION, "live", ANA)
    await customer_events.erase_contact(database, ORGANIZATION, "test", ANA)
    rows = await database.fetch("select distinct contact_id, contact_external_id from customer_events order by 1")
    assert [tuple(row) for row in rows] == [(ANA, None), (contact_id(2), "bia")]


async def test_events_go_two_years_after_they_occurred(database: Database) -> None:
    days = [timedelta(days=each) for each in (360, 300, 0)]
    await store(database, *(event(str(each), occurred_at=NOW - each) for each in days))
    after = NOW + timedelta(days=400)
    assert await customer_events.purge(database, ORGANIZATION, "live", after) == 0
    assert await customer_events.purge(database, ORGANIZATION, "test", after, block=1) == 1
    left = await database.fetch("select event_id from customer_events order by occurred_at")
    assert [row["event_id"] for row in left] == [str(days[1]), str(days[2])]


def wanted(**changes: Any) -> CustomerEventFilter:
    fields: dict[str, Any] = {"organization_id": ORGANIZATION, "env": "test", "start": NOW - 92 * 24 * HOUR, "end": NOW}
    return CustomerEventFilter(**{**fields, **changes})


async def test_a_list_is_read_along_the_index_of_its_filter(database: Database) -> None:
    await database.execute(
        "insert into customer_events (organization_id, env, event_id, id, name, contact_id, occurred_at, currency) "
        "select $1, 'test', i, 'cev_' || lpad(i::text, 21, '0'), 'n' || i % 50, 'cnt_' || i % 2000, "
        "$2::timestamptz - i * interval '1 minute', 'BRL' from generate_series(1, 20000) i",
        ORGANIZATION, NOW,
    )  # fmt: skip
    await database.execute("analyze customer_events")
    filters: dict[str, dict[str, Any]] = {
        "customer_events_newest": {},
        "customer_events_name": {"name": "order.paid"},
        "customer_events_contact": {"contact_id": ANA},
    }
    for (index, changes), after in product(filters.items(), (None, (NOW, "cev_" + "0" * 21))):
        found = await plan_of(database, *customer_event_pages.page_query(wanted(**changes), limit=101, after=after))
        assert indexes(found) == {index}
        assert whole_tables(found) == set()


async def test_what_an_event_needs_is_found_along_indexes_by_a_plan_that_was_made_once(database: Database) -> None:
    every_key = customer_events._storing(frozenset(("contact_id", "external_id", "phone", "email")))
    every_month = ", ".join({"19": "''", "20": "'~'"}.get(str(place), "null") for place in range(1, 21))
    found = await plan_for_any(database.hot, every_key, every_month)
    assert whole_tables(found) == set()
    assert {"contacts_pkey", "contacts_external_id", "contacts_phone", "contacts_email"} <= indexes(found)
    of_messages = {name for name in indexes(found) if name.startswith("messages_2")}
    assert "contact_touches_pkey" in indexes(found)
    assert of_messages
    assert [name for name in of_messages if not name.endswith("_pkey")] == []
    (touches,) = [node for node in found if node.get("Index Name") == "contact_touches_pkey"]
    assert all(column in touches["Index Cond"] for column in ("organization_id", "env", "contact_id", "sent_at"))
    (erased,) = indexes(await plan_for_any(database, customer_events.SQL.erase))
    assert erased == "customer_events_contact"
    assert indexes(await plan_for_any(database, customer_events.SQL.purge)) == {"customer_events_newest"}
    assert indexes(await plan_for_any(database.hot, customer_events.SQL.known)) == {"customer_events_pkey"}


async def by_journey(database: Database, message_id: str, *, test: bool) -> None:
    """A step of a journey made this message."""
    execution_id = IDS.new(EXECUTION)
    await database.execute("update messages set journey_id = 'jrn_1' where id = $1", message_id)
    await database.execute(_EXECUTION, ORGANIZATION, execution_id, ANA, test)
    await database.execute(_STEP, ORGANIZATION, execution_id, message_id)


async def test_an_event_names_the_step_that_made_its_message(database: Database) -> None:
    message_id = await message(database, HOUR)
    await by_journey(database, message_id, test=False)
    (stored,) = await store(database, event("e-1"))
    assert stored is not None
    assert stored.touch is not None
    assert stored.touch.journey is not None
    made_by = stored.touch.journey
    assert (made_by.journey_id, made_by.step_id, made_by.execution_id[:4]) == ("jrn_1", "hello", "exe_")
    key = (ORGANIZATION, "test", "e-1")
    assert await customer_events.known(database, [key]) == {key: stored}
    listed = await customer_event_pages.list_page(database, wanted(end=NOW + HOUR), limit=10)
    assert listed.items == [stored]


async def test_no_event_is_attributed_to_the_message_of_a_test(database: Database) -> None:
    before = await message(database, 2 * HOUR)
    await by_journey(database, await message(database, HOUR), test=True)
    assert await touched(database) == before
