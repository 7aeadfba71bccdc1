"""Inbound messages and their contacts, on the real database (C28)."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.captured import capture_logs

from recado.channels.core.events import Inbound, Preference
from recado.domain.channels.source import Source
from recado.domain.contacts.contact_search import search_mark, search_query
from recado.domain.core.ids import IdSource
from recado.domain.core.phones import phone_hash
from recado.domain.senders.number import NumberStatus
from recado.engine.clock import SystemClock
from recado.services.effects.consequences import Consequences
from recado.services.inbound.inbound import InboundMessages
from recado.services.inbound.receipts import Receipts
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import create_organization
from recado.storage.contacts import opt_out_replies
from recado.storage.contacts.opt_out_replies import BEFORE_ALL
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing

PHONE, OTHER = "+5511987650001", "+5511987650002"
ENV = "test"
SANDBOX = Source("chatapp", "sandbox", ENV)


class Phone:
    """People who write to one number."""

    def __init__(self, db: Database, number: Any) -> None:
        clock = SystemClock()
        self.db, self.number = db, number
        inbound = InboundMessages(
            organizations=Directories(db, clock=clock).organizations,
            clock=clock,
            ids=IdSource(clock, random.Random(7)),
            keys=KeyRing({"k1": b"k" * 32}),
            changed=lambda change: None,
            owing=lambda: None,
            simulator_domain="simulator.test",
        )
        self.receipts = Receipts(db, clock=clock, consequences=Consequences(), inbound=inbound)
        self._serial = 0

    def event(self, text: str = "hello", *, sender: str = PHONE, **fields: Any) -> Inbound:
        self._serial += 1
        given: dict[str, Any] = {
            "account": self.number.phone_number_id,
            "sender": sender,
            "at": datetime.now(UTC),
            "type": "text",
            "payload": {"text": {"body": text}},
            "provider_message_id": f"in-{self._serial}",
            **fields,
        }
        return Inbound(**given)

    async def write(self, *events: Inbound | Preference) -> None:
        """One block, as callbacks bring it."""
        async with self.receipts.transaction() as connection:
            await self.receipts.take_in(connection, SANDBOX, events)

    def stops(self, sender: str = PHONE, *, stopped: bool = True) -> Preference:
        return Preference(self.number.phone_number_id, sender.removeprefix("+"), stopped, datetime.now(UTC))

    async def say(self, *texts: str) -> None:
        await self.write(*[self.event(text) for text in texts])

    async def contact(self, phone: str = PHONE) -> Any:
        return await self.db.fetchrow("select * from contacts where phone = $1", phone)

    async def count(self, table: str) -> int:
        return int(await self.db.fetchval(f"select count(*) from {table}"))

    async def history(self) -> list[tuple[Any, ...]]:
        rows = await self.db.fetch(
            "select from_status, to_status, source, reason, actor_type from contact_consents order by revision"
        )
        return [tuple(row) for row in rows]

    async def deny(self, source: str | None) -> None:
        await self.db.execute(
            "update contacts set opt_in_status = 'denied', opt_in_source = $1, opt_in_revoked_at = '2026-01-01'", source
        )

    async def registered(self) -> int:
        hashed = phone_hash(self.number.organization_id, PHONE)
        return int(await self.db.fetchval("select count(*) from opt_outs where kind = 'phone' and hash = $1", hashed))


@pytest.fixture
async def phone(database: Database) -> Phone:
    clock = SystemClock()
    ids = IdSource(clock, random.Random(3))
    async with database.transaction() as connection:
        made = await create_organization(
            connection, ids, name="Acme", now=clock.now(), random_bytes=random.Random(1).randbytes
        )
        await connection.execute("update organizations set opt_out_reply = 'Bye.'")
    return Phone(database, made.number)


async def test_whoever_writes_first_becomes_a_contact(phone: Phone) -> None:
    event = phone.event(profile_name=" Ana ")
    await phone.write(event)
    contact = await phone.contact()
    assert (contact["source"], contact["opt_in_status"]) == ("webhook", "unknown")
    assert (contact["name"], contact["chatapp_profile_name"]) == (None, "Ana")
    assert contact["last_interaction_at"] == event.at
    assert await phone.db.fetchval("select contact_id from messages") == contact["id"]
    assert await phone.history() == []


async def test_a_contact_is_found_and_its_profile_name_follows(phone: Phone) -> None:
    await phone.write(phone.event(profile_name="Ana"))
    await phone.db.execute("update contacts set name = 'Dona Ana', unreachable = '{chatapp,sms}'")
    before = await phone.contact()
    later = phone.event(sender="551187650001", profile_name="Ana Maria")  # the old form of the same number
    await phone.write(later)
    after = await phone.contact()
    assert (after["name"], after["chatapp_profile_name"]) == ("Dona Ana", "Ana Maria")
    assert (after["revision"], after["unreachable"]) == (before["revision"] + 1, ["sms"])
    assert after["last_interaction_at"] == later.at
    assert await phone.count("contacts") == 1
    query = search_query(search_mark(phone.number.organization_id, ENV), "maria")
    found = await phone.db.fetchval("select search @@ $1::text::tsquery from contacts", query)
    assert found is True


async def test_an_interaction_never_moves_back_and_raises_no_revision(phone: Phone) -> None:
    now = datetime.now(UTC)
    await phone.write(phone.event(at=now), phone.event(at=now - timedelta(hours=1)))
    before = await phone.contact()
    await phone.write(phone.event(at=now - timedelta(minutes=1)))
    after = await phone.contact()
    assert before["last_interaction_at"] == after["last_interaction_at"] == now
    assert (before["revision"], before["updated_at"]) == (after["revision"], after["updated_at"])


async def test_a_repeat_changes_nothing(phone: Phone) -> None:
    stop = phone.event("stop")
    await phone.write(stop, stop)
    await phone.say("start")
    before = await phone.contact()
    await phone.write(stop)
    assert await phone.contact() == before
    assert (await phone.count("messages"), await phone.count("opt_out_replies"), len(await phone.history())) == (
        2,
        1,
        2,
    )


async def test_a_repeat_does_not_bring_a_deleted_contact_back(phone: Phone) -> None:
    event = phone.event()
    await phone.write(event)
    await phone.db.execute("delete from contacts")
    await phone.write(event)
    assert await phone.count("contacts") == 0


async def test_two_messages_of_a_new_phone_at_once_make_one_contact(phone: Phone) -> None:
    await asyncio.gather(*[phone.write(phone.event(), phone.event(sender=OTHER)) for _ in range(8)])
    assert (await phone.count("contacts"), await phone.count("messages")) == (2, 16)
    for sender in (PHONE, OTHER):
        contact_id = (await phone.contact(sender))["id"]
        assert await phone.db.fetchval("select count(*) from messages where contact_id = $1", contact_id) == 8


async def test_a_keyword_opts_out_with_history_and_registry(phone: Phone) -> None:
    await phone.say("Pare!")
    contact = await phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_source"]) == ("denied", "inbound_keyword")
    assert contact["opt_in_revoked_reason"] == "chatapp: pare"
    assert await phone.history() == [("unknown", "denied", "inbound_keyword", "chatapp: pare", "system")]
    assert await phone.registered() == 1
    (owed,) = await opt_out_replies.owed(phone.db, BEFORE_ALL, 10)
    assert (owed.contact_id, owed.phone, owed.sender_id) == (contact["id"], PHONE, phone.number.id)


@pytest.mark.parametrize(
    ("texts", "status", "registered"),
    [(("stop", "start"), "granted", 0), (("start", "stop"), "denied", 1), (("stop", "start", "stop"), "denied", 1)],
)
async def test_the_order_of_a_persons_words_is_kept_within_a_block(
    phone: Phone, texts: tuple[str, ...], status: str, registered: int
) -> None:
    await phone.say(*texts)
    assert (await phone.contact())["opt_in_status"] == status
    assert await phone.registered() == registered
    assert len(await phone.history()) == len(texts)


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize(("written", "status"), [(-1, "denied"), (0, "granted"), (1, "granted")])
async def test_a_consent_that_comes_late_does_not_undo_the_refusal_that_was_written_after_it(
    blocks: int, written: int, status: str, phone: Phone
) -> None:
    before = datetime.now(UTC) - timedelta(hours=1)
    refusal = phone.event("sair", at=before)
    consent = phone.event("voltar", at=before + timedelta(minutes=written))
    for block in [[refusal, consent]] if blocks == 1 else [[refusal], [consent]]:
        await phone.write(*block)
    assert (await phone.contact())["opt_in_status"] == status
    assert await phone.count("messages") == 2  # the words are kept in any case


async def test_of_a_consent_that_came_late_the_time_of_the_refusal_decides(phone: Phone) -> None:
    now = datetime.now(UTC)
    await phone.write(phone.event("sair", at=now - timedelta(hours=1)))
    refused_at = "update contacts set opt_in_revoked_at = $1"
    await phone.db.execute(refused_at, now - timedelta(minutes=50))
    await phone.write(phone.event("hello", at=now - timedelta(minutes=10)))
    await phone.write(phone.event("voltar", at=now - timedelta(minutes=55)))
    assert (await phone.contact())["opt_in_status"] == "denied"
    await phone.write(phone.event("voltar", at=now - timedelta(minutes=45)))
    assert (await phone.contact())["opt_in_status"] == "granted"


async def test_people_of_one_block_do_not_mind_each_other(phone: Phone) -> None:
    await phone.write(phone.event("stop"), phone.event("start", sender=OTHER), phone.event("hello"))
    assert (await phone.contact())["opt_in_status"] == "denied"
    assert (await phone.contact(OTHER))["opt_in_status"] == "granted"


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("inbound_keyword", "granted"),
        ("provider", "granted"),
        ("complaint", "denied"),
        ("desk", "denied"),
        (None, "denied"),
    ],
)
async def test_a_person_takes_back_only_a_refusal_of_their_own(phone: Phone, source: str | None, status: str) -> None:
    await phone.say("hello")
    await phone.deny(source)
    await phone.say("voltar")
    assert (await phone.contact())["opt_in_status"] == status


@pytest.mark.parametrize(("source", "status"), [("inbound_keyword", "granted"), ("desk", "denied")])
async def test_whom_the_registry_knows_is_born_denied(phone: Phone, source: str, status: str) -> None:
    await phone.db.execute(
        "insert into opt_outs values ($1, $2, 'phone', $3, '2026-01-01', $4)",
        phone.number.organization_id,
        ENV,
        phone_hash(phone.number.organization_id, PHONE),
        source,
    )
    await phone.say("hello")
    contact = await phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_source"]) == ("denied", source)
    await phone.say("start")
    assert (await phone.contact())["opt_in_status"] == status


async def test_words_of_the_organization_count_too(phone: Phone) -> None:
    await phone.db.execute("update organizations set opt_out_keywords = '{Chega}', status = 'suspended'")
    await phone.say("chega!")
    assert (await phone.contact())["opt_in_status"] == "denied"


@pytest.mark.parametrize("status", NumberStatus)
async def test_a_keyword_counts_in_every_state_of_the_number(phone: Phone, status: NumberStatus) -> None:
    await phone.db.execute("update numbers set status = $1", status.value)
    await phone.say("sair")
    assert (await phone.contact())["opt_in_status"] == "denied"


async def test_the_window_is_of_the_providers_time_and_never_moves_back(phone: Phone) -> None:
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    window = "select last_inbound_at from chat_windows"
    for told, at in ((-2, -2), (-3, -2), (-1, -1)):
        await phone.write(phone.event(at=now + told * hour))
        assert await phone.db.fetchval(window) == now + at * hour
    await phone.write(phone.event(at=now + hour))  # by a clock ahead of ours
    assert now <= await phone.db.fetchval(window) <= datetime.now(UTC)


async def test_a_number_that_is_not_known_and_a_sender_without_phone_are_dropped_with_a_line(phone: Phone) -> None:
    with capture_logs() as logs:
        await phone.write(phone.event(account="nobody's"), phone.event(sender="user-1"))
    assert (await phone.count("messages"), await phone.count("contacts")) == (0, 0)
    lines = [(each["event"], each["known_number"], each["count"]) for each in logs]
    assert lines == [("inbound_dropped", False, 1), ("inbound_dropped", True, 1)]


async def test_whoever_tells_the_provider_to_stop_has_opted_out(phone: Phone) -> None:
    await phone.say("hello")
    await phone.write(phone.stops(), phone.stops(), phone.stops(OTHER))
    contact = await phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_source"]) == ("denied", "provider")
    assert await phone.history() == [("unknown", "denied", "provider", None, "system")]
    assert await phone.contact(OTHER) is None
    assert await phone.db.fetchval("select count(*) from opt_outs where source = 'provider'") == 2
    assert await phone.count("opt_out_replies") == 0
    await phone.write(phone.stops(stopped=False))
    assert (await phone.contact())["opt_in_status"] == "denied"


async def test_whoever_is_refused_for_having_stopped_has_opted_out(phone: Phone) -> None:
    await phone.say("hello")
    await phone.receipts.stopped(SANDBOX, phone.stops())
    await phone.receipts.stopped(SANDBOX, phone.stops())
    assert await phone.history() == [("unknown", "denied", "provider", None, "system")]
    assert await phone.registered() == 1


async def test_a_stop_of_nobodys_number_is_dropped(phone: Phone) -> None:
    await phone.write(Preference("nobody's", PHONE, True, datetime.now(UTC)))
    assert await phone.registered() == 0


async def store_code(phone: Phone, code: str, *, age: timedelta = timedelta(0), number: str | None = None) -> None:
    await phone.db.execute(
        "insert into origin_codes values ($1, $2, $3, $4::json, $5)",
        phone.number.organization_id,
        number or phone.number.id,
        code,
        f'{{"fonte": "search_ads", "codigo": "{code}"}}',
        datetime.now(UTC) - age,
    )


async def origins(phone: Phone) -> list[Any]:
    rows = await phone.db.fetch(
        "select payload -> 'text' ->> 'body', link_origin ->> 'codigo' from messages order by id"
    )
    return [tuple(row) for row in rows]


async def test_the_first_message_with_a_code_tells_the_link_and_uses_it_up(phone: Phone) -> None:
    await store_code(phone, "ABCDEF")
    await phone.say("I saw the shoes (ABCDEF)", "again (ABCDEF)")
    await phone.say("later (ABCDEF)")
    assert await origins(phone) == [
        ("I saw the shoes (ABCDEF)", "ABCDEF"), ("again (ABCDEF)", None), ("later (ABCDEF)", None),
    ]  # fmt: skip
    assert await phone.count("origin_codes") == 0


async def test_a_code_counts_for_thirty_days_and_on_its_number(phone: Phone) -> None:
    await store_code(phone, "ABCDEF", age=timedelta(days=29, hours=23))
    await store_code(phone, "ABCDEG", age=timedelta(days=30, seconds=1))
    await store_code(phone, "ABCDEH", number="num_another")
    await phone.say("(ABCDEF)", "(ABCDEG)", "(ABCDEH)", "(ABCDEJ)")
    assert [code for _, code in await origins(phone)] == ["ABCDEF", None, None, None]


async def test_of_several_codes_the_first_that_is_known_tells(phone: Phone) -> None:
    await store_code(phone, "ABCDEF")
    await store_code(phone, "ABCDEG")
    await phone.say("(ABCDEJ) (ABCDEG) (ABCDEF)")
    assert [code for _, code in await origins(phone)] == ["ABCDEG"]
    assert await phone.count("origin_codes") == 0


async def test_a_button_brings_no_code(phone: Phone) -> None:
    await store_code(phone, "ABCDEF")
    payload = {"interactive": {"type": "button_reply", "title": "(ABCDEF)"}}
    await phone.write(phone.event(type="interactive", payload=payload))
    assert await phone.count("origin_codes") == 1
