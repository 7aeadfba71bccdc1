"""Links of messages as rows: in the commit of their message, found while they live, gone with it (C27.1, C12.6)."""

import asyncio
import random
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.channels.example.policy import PAGER, PAGES
from tests.people import insert_people
from tests.plans import indexes, plan_for_any, whole_tables
from tests.waiting import until_locked_out

from recado.domain.channels.policies import POLICIES
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.links.tracked import TrackedLink
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.contacts import contact_erasures
from recado.storage.contacts.contact_erasures import Erasure
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.links import tracked_links
from recado.storage.links.tracked_links import Clicked, CodeTaken
from recado.storage.messages import messages
from recado.storage.messages.messages import STORED, STORED_EARLIER, NewMessage

ORGANIZATION = "org_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(5))
NOW = CLOCK.now()
URL = "https://example.com/?q=ç"


@pytest.fixture(autouse=True)
def _entered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, PAGER, PAGES)  # type: ignore[arg-type]


def page(*codes: str, **changes: Any) -> NewMessage:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": PAGER, "id": IDS.new(MESSAGE),
        "sender_id": "pager_test_city", "type": "text", "recipient": "ana@example.com", "recipient_hash": 1, "klass": 1,
        "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
        "campaign_id": None, "scheduled_at": None, "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0,
        "accepted_at": NOW, "links": [TrackedLink(code, URL) for code in codes],
    }  # fmt: skip
    return NewMessage(**{**fields, **changes})


async def stored(database: Database) -> list[tuple[str, str]]:
    return [tuple(row) for row in await database.fetch("select code, message_id from tracked_links order by code")]


async def count(database: Database) -> int:
    return int(await database.fetchval("select count(*) from messages"))


async def test_links_are_stored_in_the_statement_that_stores_their_messages(database: Database) -> None:
    batch = [page("AAAAAAAA", "BBBBBBBB"), page(), page("CCCCCCCC")]
    assert await messages.accept(database.hot, batch) == [STORED] * 3
    assert await stored(database) == [
        ("AAAAAAAA", batch[0].id), ("BBBBBBBB", batch[0].id), ("CCCCCCCC", batch[2].id),
    ]  # fmt: skip
    found = await tracked_links.by_code(database, ["CCCCCCCC", "DDDDDDDD"], NOW)
    assert [(code, link.url, link.message) for code, link in found.items()] == [
        ("CCCCCCCC", URL, (ORGANIZATION, "test", PAGER, batch[2].id))
    ]


async def test_the_same_batch_again_stores_nothing_twice(database: Database) -> None:
    batch = [page("AAAAAAAA"), page("BBBBBBBB")]
    await messages.accept(database.hot, batch)
    assert await messages.accept(database.hot, batch) == [STORED_EARLIER] * 2
    assert len(await stored(database)) == 2


async def test_a_repeat_under_a_key_stores_no_links(database: Database) -> None:
    keyed: dict[str, Any] = {"key_hash": b"k" * 32, "fingerprint": b"f" * 32}
    first = page("AAAAAAAA", **keyed)
    await messages.accept(database.hot, [first])
    await messages.accept(database.hot, [page("BBBBBBBB", **keyed)])
    assert await stored(database) == [("AAAAAAAA", first.id)]


async def test_a_code_of_another_message_stores_nothing_at_all(database: Database) -> None:
    await messages.accept(database.hot, [page("AAAAAAAA")])
    with pytest.raises(CodeTaken):
        await messages.accept(database.hot, [page("BBBBBBBB"), page("AAAAAAAA")])
    assert (await count(database), len(await stored(database))) == (1, 1)


async def test_links_whose_recipients_are_asked_for_consent_by_email_are_stored_too(database: Database) -> None:
    new = page("AAAAAAAA", consent=messages.ConsentCheck.NOT_REFUSED)
    assert await messages.accept(database.hot, [new]) == [STORED]
    assert await stored(database) == [("AAAAAAAA", new.id)]


async def test_codes_live_for_a_hundred_and_eighty_days(database: Database) -> None:
    await messages.accept(database.hot, [page("AAAAAAAA")])
    for days, alive in ((179, 1), (181, 0)):
        at = NOW + timedelta(days=days)
        assert len(await tracked_links.by_code(database, ["AAAAAAAA"], at)) == alive
        await tracked_links.purge(database, at)
        assert len(await stored(database)) == alive


async def test_links_go_with_what_an_erased_contact_was_sent(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contact_erasures, "TRACKED", frozenset({PAGER}))
    contact = "cnt_" + "0" * 21
    mine, other = page("AAAAAAAA", contact_id=contact), page("BBBBBBBB")
    await messages.accept(database.hot, [mine, other])
    await database.execute("update messages set status = 'sent'")
    key = (ORGANIZATION, "test", contact)
    await contact_erasures.block(database, Erasure(key, ""), NOW, mask=lambda channel, recipient: "*")
    assert await stored(database) == [("BBBBBBBB", other.id)]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("by_code", "tracked_links_pkey"),
        ("count", "tracked_links_pkey"),
        ("count", "tracked_links_of_message"),
        ("erase", "tracked_links_of_message"),
        ("of_messages", "tracked_links_of_message"),
        ("purge", "tracked_links_of_message"),
    ],
)
async def test_links_are_found_by_code_and_by_message_alone(database: Database, name: str, index: str) -> None:
    """Also by a plan that was made while the table was empty."""
    found = await plan_for_any(database.hot, getattr(tracked_links.SQL, name))
    assert not whole_tables(found)
    assert index in indexes(found)


async def test_clicks_find_messages_and_contacts_by_their_keys(database: Database) -> None:
    found = await plan_for_any(database.hot, tracked_links.SQL.count)
    assert {"contacts_phone", "contacts_email"} <= indexes(found)
    (by_address,) = [node for node in found if node.get("Index Name") == "contacts_email"]
    assert "email_key >= " in by_address["Index Cond"]
    assert any("contact_id IS NULL" in node.get("One-Time Filter", "") for node in found)  # else nobody is looked for
    for statement in (tracked_links.SQL.lock_contacts, tracked_links.SQL.touch):
        found = await plan_for_any(database.hot, statement)
        assert not whole_tables(found)
        assert indexes(found) == {"contacts_pkey"}


async def test_a_click_counts_also_on_a_contact_that_another_changes_meanwhile(database: Database) -> None:
    (contact,) = await insert_people(database, ORGANIZATION, "test", [{}])
    await messages.accept(database.hot, [page("AAAAAAAA", contact_id=contact)])
    (link,) = (await tracked_links.by_code(database, ["AAAAAAAA"], NOW)).values()

    async def click(at: datetime) -> None:
        async with database.hot.transaction() as connection:
            await tracked_links.count(connection, [(link, [at])])

    async with database.transaction() as connection:
        await connection.execute("update contacts set last_interaction_at = $1", NOW)
        counting = asyncio.create_task(click(NOW + timedelta(minutes=1)))
        await until_locked_out(database)
    await counting
    assert await database.fetchval("select last_interaction_at from contacts") == NOW + timedelta(minutes=1)


async def test_clicks_in_messages_of_one_month_are_counted_by_a_plan_for_its_table(database: Database) -> None:
    await ensure_partitions(database, NOW)
    asked: list[str] = []

    async def fetch(query: str, /, *arguments: Any) -> Any:
        asked.append(query)
        return await database.fetch(query, *arguments)

    new = page("AAAAAAAA")
    old_id = IdSource(VirtualClock(NOW - timedelta(days=40)), random.Random(6)).new(MESSAGE)
    await messages.accept(database.hot, [new])
    (link,) = (await tracked_links.by_code(database, ["AAAAAAAA"], NOW)).values()
    connection: Any = SimpleNamespace(fetch=fetch)
    counted = await tracked_links.count(connection, [(link, [NOW])], months=database.months)
    assert counted == {new.id: Clicked(status="queued", fresh=True, campaign_id=None)}
    older = link._replace(code="BBBBBBBB", message_id=old_id)
    await tracked_links.count(connection, [(link, [NOW]), (older, [NOW])], months=database.months)
    assert [f"from messages_{NOW:%Y_%m}" in query for query in asked] == [True, False]


async def test_an_accept_without_links_does_not_name_their_table() -> None:
    assert "into tracked_links" not in messages._accepting(by_email=True, with_links=False)
    assert "into tracked_links" in messages._accepting(by_email=True, with_links=True)
