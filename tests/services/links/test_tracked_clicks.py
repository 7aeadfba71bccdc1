"""Clicks on links of messages: where they lead, and what is recorded of them (C27.1, C23.6)."""

import asyncio
import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import orjson
import pytest
from tests.channels.example.policy import PAGER, PAGES
from tests.waiting import until_locked_out

from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CONTACT, MESSAGE, IdSource
from recado.domain.core.phones import phone_hash
from recado.domain.links.tracked import TrackedLink
from recado.engine.clock import SystemClock, VirtualClock
from recado.services.effects.outbox import Outbox
from recado.services.links import recorder
from recado.services.links.tracked_clicks import TrackedClicks
from recado.storage.core.connections.postgres import Database
from recado.storage.links import tracked_links
from recado.storage.links.tracked_links import FoundLink
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage
from recado.storage.webhooks.webhooks import SubscriptionDirectory

ORGANIZATION = "org_" + "0" * 21
URL = "https://example.com/?q=1"
SUBSCRIBED = """
insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events,
    include_pii, max_attempts, backoff_seconds, status, revision, updated_at)
values ($1, 'wbh_1', 'test', 'https://x', 's', 1, '{email.clicked}', false, 8, 30, 'active', 1, now())
"""


class Linked:
    """Messages with links, and who clicks them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = VirtualClock(SystemClock().now().replace(microsecond=0))
        self.ids = IdSource(self.clock, random.Random(5))
        self.hinted: list[Any] = []
        outbox = Outbox(
            SubscriptionDirectory(db, clock=self.clock), ids=self.ids, queued=lambda told: self.hinted.extend(told)
        )
        self.clicks = TrackedClicks(db, outbox=outbox, clock=SystemClock())

    async def message(self, *codes: str, **changes: Any) -> NewMessage:
        now = self.clock.now()
        fields: dict[str, Any] = {
            "organization_id": ORGANIZATION, "env": "test", "channel": PAGER, "id": self.ids.new(MESSAGE),
            "sender_id": "pager_test_city", "type": "text", "recipient": "ana@example.com", "recipient_hash": 1,
            "klass": 1, "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
            "campaign_id": None, "scheduled_at": None, "due_at": now, "ttl": timedelta(hours=1), "held_base_ms": 0,
            "accepted_at": now, "links": [TrackedLink(code, URL + code) for code in codes],
        }  # fmt: skip
        new = NewMessage(**{**fields, **changes})
        await messages.accept(self.db.hot, [new])
        return new

    async def contact(self, phone: str) -> str:
        contact_id = self.ids.new(CONTACT)
        await self.db.execute(
            "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, "
            "updated_at) values ($1, 'test', $2, $3, $4, 'api', 'unknown', '', $5)",
            ORGANIZATION, contact_id, phone, phone_hash(ORGANIZATION, phone), self.clock.now(),
        )  # fmt: skip
        return contact_id

    async def click(self, *codes: str) -> list[str | None]:
        found = await asyncio.gather(*[self.clicks.open(code, counted=True) for code in codes])
        await self.clicks.record()
        return list(found)

    async def counted(self) -> dict[str, int]:
        return {row["code"]: row["clicks"] for row in await self.db.fetch("select code, clicks from tracked_links")}

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        rows = await self.db.fetch("select message_id, data from events order by id")
        return [(row["message_id"], orjson.loads(row["data"])) for row in rows]

    async def touched(self, contact_id: str) -> Any:
        return await self.db.fetchval("select last_interaction_at from contacts where id = $1", contact_id)


@pytest.fixture
async def linked(database: Database, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(POLICIES, PAGER, PAGES)  # type: ignore[arg-type]
    for pause in ("EVERY", "NET"):
        monkeypatch.setattr(recorder, pause, 3_600.0)
    found = Linked(database)
    await found.clicks.start()
    yield found
    await found.clicks.stop()


async def test_a_code_leads_to_its_address_and_its_clicks_are_counted(linked: Linked) -> None:
    await linked.message("AAAAAAAA", "BBBBBBBB")
    assert await linked.click("AAAAAAAA", "BBBBBBBB", "AAAAAAAA", "CCCCCCCC", "x") == [
        URL + "AAAAAAAA", URL + "BBBBBBBB", URL + "AAAAAAAA", None, None,
    ]  # fmt: skip
    assert await linked.counted() == {"AAAAAAAA": 2, "BBBBBBBB": 1}
    row = await linked.db.fetchrow("select first_clicked_at, last_clicked_at from tracked_links where clicks = 2")
    assert row["first_clicked_at"] <= row["last_clicked_at"]


async def test_what_is_not_counted_leaves_no_trace(linked: Linked) -> None:
    await linked.message("AAAAAAAA")
    assert await linked.clicks.open("AAAAAAAA", counted=False) == URL + "AAAAAAAA"
    await linked.clicks.record()
    assert await linked.counted() == {"AAAAAAAA": 0}


async def test_each_click_is_told_and_the_first_of_a_message_says_so(linked: Linked) -> None:
    await linked.db.execute(SUBSCRIBED, ORGANIZATION)
    first, second = await linked.message("AAAAAAAA", "BBBBBBBB"), await linked.message("CCCCCCCC")
    await linked.click("BBBBBBBB", "BBBBBBBB")
    await linked.click("AAAAAAAA", "CCCCCCCC")
    told = await linked.told()
    assert [(message_id, data["url"], data["firstClick"]) for message_id, data in told] == [
        (first.id, URL + "BBBBBBBB", True),
        (first.id, URL + "BBBBBBBB", False),
        (first.id, URL + "AAAAAAAA", False),
        (second.id, URL + "CCCCCCCC", True),
    ]
    assert {data["status"] for _, data in told} == {"queued"}
    assert len(linked.hinted) == 2  # a hint for each commit


@pytest.mark.parametrize("codes", [("AAAAAAAA", "AAAAAAAA"), ("BBBBBBBB", "AAAAAAAA")], ids=["one link", "two links"])
async def test_of_two_processes_that_count_clicks_in_one_message_one_has_the_first(
    linked: Linked, codes: tuple[str, str]
) -> None:
    """The second begins before the first has committed, and counts after it."""
    await linked.db.execute(SUBSCRIBED, ORGANIZATION)
    await linked.message("AAAAAAAA", "BBBBBBBB")
    other = Linked(linked.db)
    await other.clicks.start()
    await linked.clicks.open(codes[0], counted=False)
    await other.clicks.open(codes[1], counted=True)
    first = linked.clicks.find(codes[0])
    assert isinstance(first, FoundLink)

    async with linked.db.hot.transaction() as connection:
        counted = await tracked_links.count(connection, [(first, [SystemClock().now()])])
        assert [each.fresh for each in counted.values()] == [True]
        counting = asyncio.ensure_future(other.clicks.record())
        await until_locked_out(linked.db)
    await counting
    assert [data["firstClick"] for _, data in await linked.told()] == [False]
    assert sum((await linked.counted()).values()) == 2
    await other.clicks.stop()


async def test_a_click_is_the_last_interaction_of_the_contact(linked: Linked) -> None:
    named, by_phone = await linked.contact("+5511987650001"), await linked.contact("+5511987650002")
    await linked.message("AAAAAAAA", contact_id=named)
    await linked.message("BBBBBBBB", recipient="+5511987650002")
    await linked.message("CCCCCCCC", contact_id="cnt_" + "0" * 21)
    before = SystemClock().now()
    await linked.click("AAAAAAAA", "BBBBBBBB", "CCCCCCCC")
    assert await linked.touched(named) >= before
    assert await linked.touched(by_phone) >= before
    assert set((await linked.counted()).values()) == {1}


async def test_a_click_on_an_email_is_one_of_the_oldest_contact_with_its_address(linked: Linked) -> None:
    oldest, other, elsewhere = [await linked.contact(f"+551198765000{n}") for n in range(3)]
    await linked.db.execute("update contacts set email = 'Ana@example.com', email_key = 'ana@example.com'")
    await linked.db.execute("update contacts set email = null, email_key = null where id = $1", elsewhere)
    await linked.message("AAAAAAAA", channel="email", recipient="ANA@example.com")
    await linked.message("BBBBBBBB", channel="email", recipient="ana@example.com", contact_id=elsewhere)
    before = SystemClock().now()
    await linked.click("AAAAAAAA")
    assert await linked.touched(oldest) >= before
    assert [await linked.touched(each) for each in (other, elsewhere)] == [None, None]
    await linked.db.execute("update contacts set last_interaction_at = null")
    await linked.click("BBBBBBBB")
    assert [await linked.touched(each) for each in (oldest, other)] == [None, None]
    assert await linked.touched(elsewhere) >= before


async def test_a_later_interaction_stays(linked: Linked) -> None:
    contact = await linked.contact("+5511987650001")
    later = SystemClock().now() + timedelta(hours=1)
    await linked.db.execute("update contacts set last_interaction_at = $1", later)
    await linked.message("AAAAAAAA", contact_id=contact)
    await linked.click("AAAAAAAA")
    assert await linked.touched(contact) == later


async def test_clicks_count_for_the_campaign_of_their_messages(linked: Linked) -> None:
    await linked.db.execute(
        "insert into campaigns (organization_id, env, campaign_id, status, channels, first_message_at) "
        "select $1, env, 'spring', 'running', '{pager}', now() from unnest('{test,live}'::text[]) as e (env)",
        ORGANIZATION,
    )
    await linked.message("AAAAAAAA", "BBBBBBBB", campaign_id="spring")
    await linked.message("CCCCCCCC", campaign_id="spring")
    await linked.click("AAAAAAAA", "BBBBBBBB", "CCCCCCCC", "AAAAAAAA")
    found = await linked.db.fetch("select env, clicks from campaigns order by env")
    assert [tuple(row) for row in found] == [("live", 0), ("test", 4)]


async def test_clicks_beyond_what_one_link_may_have_waiting_are_dropped(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MOST_OF_ONE", 3)
    monkeypatch.setattr(recorder, "MOST_OF_ORGANIZATION", 5)
    await linked.message("AAAAAAAA", "BBBBBBBB")
    for code in ("AAAAAAAA", "BBBBBBBB"):
        await linked.clicks.open(code, counted=False)  # known now: what follows waits for nothing
    assert await linked.click(*["AAAAAAAA"] * 5, *["BBBBBBBB"] * 3) == [URL + "AAAAAAAA"] * 5 + [URL + "BBBBBBBB"] * 3
    assert await linked.counted() == {"AAAAAAAA": 3, "BBBBBBBB": 2}
    assert linked.clicks.dropped == 3
    await linked.click("AAAAAAAA")
    assert (await linked.counted())["AAAAAAAA"] == 4


async def test_people_are_led_on_while_no_click_can_be_recorded(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked.message("AAAAAAAA")
    await linked.clicks.open("AAAAAAAA", counted=False)

    def away(*_: object, **__: object) -> Any:
        raise Unavailable

    with monkeypatch.context() as patched:
        patched.setattr(tracked_links, "count", away)
        with pytest.raises(Unavailable):
            await linked.click("AAAAAAAA")
        assert await linked.clicks.open("AAAAAAAA", counted=True) == URL + "AAAAAAAA"
    await linked.clicks.record()
    assert (await linked.counted(), linked.clicks.dropped) == ({"AAAAAAAA": 2}, 0)


async def test_what_can_never_be_recorded_keeps_nothing_waiting(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked.message("AAAAAAAA")

    def broken(*_: object, **__: object) -> Any:
        raise ValueError("no such table")

    with monkeypatch.context() as patched:
        patched.setattr(tracked_links, "count", broken)
        with pytest.raises(ValueError, match="no such table"):
            await linked.click("AAAAAAAA", "AAAAAAAA")
    await linked.click("AAAAAAAA")
    assert (await linked.counted(), linked.clicks.dropped) == ({"AAAAAAAA": 1}, 2)


async def test_what_cannot_be_recorded_before_the_end_is_dropped(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked.message("AAAAAAAA")
    await linked.clicks.open("AAAAAAAA", counted=True)

    def away(*_: object, **__: object) -> Any:
        raise Unavailable

    monkeypatch.setattr(tracked_links, "count", away)
    await linked.clicks.stop()
    assert linked.clicks.dropped == 1


async def test_codes_that_are_guessed_are_asked_for_once(linked: Linked) -> None:
    await linked.click("AAAAAAAA")
    await linked.message("AAAAAAAA")
    assert await linked.click("AAAAAAAA") == [None]


async def test_what_fails_after_the_commit_forgets_no_click_that_came_since(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked.message("AAAAAAAA")

    async def tell(*_: object) -> Any:
        await linked.clicks.open("AAAAAAAA", counted=True)

        def fails() -> None:
            raise RuntimeError("a hint that nobody takes")

        return fails

    with monkeypatch.context() as patched:
        patched.setattr(linked.clicks._outbox, "tell", tell)
        with pytest.raises(RuntimeError, match="nobody takes"):
            await linked.click("AAAAAAAA", "AAAAAAAA")
    assert (await linked.counted(), linked.clicks.dropped) == ({"AAAAAAAA": 2}, 0)
    await linked.clicks.record()
    assert (await linked.counted(), linked.clicks.dropped) == ({"AAAAAAAA": 3}, 0)


async def test_a_stop_that_could_record_nothing_leaves_an_empty_service_behind(
    linked: Linked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MOST_OF_ORGANIZATION", 1)
    await linked.message("AAAAAAAA")

    def broken(*_: object, **__: object) -> Any:
        raise ValueError("no such table")

    def away(*_: object, **__: object) -> Any:
        raise Unavailable

    for count in (broken, away):
        await linked.clicks.open("AAAAAAAA", counted=True)
        with monkeypatch.context() as patched, suppress(ValueError):
            patched.setattr(tracked_links, "count", count)
            await linked.clicks.stop()
        with pytest.raises(Unavailable):
            await linked.clicks.open("BBBBBBBB", counted=True)  # nothing looks codes up any more
        await linked.clicks.stop()
        await linked.clicks.start()
    assert linked.clicks.dropped == 2
    await linked.click("AAAAAAAA")
    assert (await linked.counted(), linked.clicks.dropped) == ({"AAAAAAAA": 1}, 2)
