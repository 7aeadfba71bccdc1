"""Opens of e-mails, and clicks in them: what is recorded and told of each (C27.2, C10.2.9, C23.6)."""

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import orjson
import pytest
from tests.message_rows import insert_messages

from recado.domain.channels.email import EMAIL
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.email.public_tokens import EmailKey, PublicTokens
from recado.domain.links.tracked import TrackedLink
from recado.engine.clock import SystemClock, VirtualClock
from recado.services.effects.outbox import Outbox
from recado.services.email.opens import EmailOpens
from recado.services.links import recorder
from recado.services.links.tracked_clicks import TrackedClicks
from recado.storage.core.connections.postgres import Database
from recado.storage.links import tracked_links
from recado.storage.webhooks.webhooks import SubscriptionDirectory

ORGANIZATION = "org_" + "0" * 21
SUBSCRIBED = """
insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events,
    include_pii, max_attempts, backoff_seconds, status, revision, updated_at)
values ($1, 'wbh_1', 'test', 'https://x', 's', 1, '{email.opened,email.clicked}', false, 8, 30, 'active', 1, now())
"""
CAMPAIGN = """
insert into campaigns (organization_id, env, campaign_id, status, channels, first_message_at)
values ($1, 'test', 'spring', 'running', '{email}', now())
"""


class Mailed:
    """E-mails, and who opens them and clicks in them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = VirtualClock(SystemClock().now().replace(microsecond=0))
        self.ids = IdSource(self.clock, Random(5))
        self.tokens = PublicTokens(b"k" * 32)
        self.hinted: list[Any] = []
        outbox = Outbox(
            SubscriptionDirectory(db, clock=self.clock), ids=self.ids, queued=lambda told: self.hinted.extend(told)
        )
        self.opens = EmailOpens(db, tokens=self.tokens, outbox=outbox, clock=self.clock)
        self.clicks = TrackedClicks(db, outbox=outbox, clock=self.clock)

    async def email(self, *codes: str, **changes: Any) -> EmailKey:
        key = EmailKey(ORGANIZATION, "test", self.ids.new(MESSAGE))
        row = {"channel": EMAIL, "recipient": "ana@example.com", "id": key.message_id, **changes}
        await insert_messages(self.db, ORGANIZATION, "test", [row])
        links = {key.message_id: [TrackedLink(code, "https://example.com/" + code) for code in codes]}
        async with self.db.hot.transaction() as connection:
            await tracked_links.insert(connection, ORGANIZATION, "test", EMAIL, links)
        return key

    async def open(self, *keys: EmailKey) -> None:
        for key in keys:
            assert self.opens.open(self.tokens.of_open(key), counted=True)
        await self.opens.record()

    async def click(self, *codes: str) -> None:
        for code in codes:
            await self.clicks.open(code, counted=True)
        await self.clicks.record()

    async def told(self) -> list[tuple[str, str, dict[str, Any]]]:
        rows = await self.db.fetch("select message_id, type, data from events order by id")
        return [(row["message_id"], row["type"], orjson.loads(row["data"])) for row in rows]

    async def moments(self, key: EmailKey) -> tuple[Any, Any]:
        row = await self.db.fetchrow("select opened_at, clicked_at from messages where id = $1", key.message_id)
        return tuple(row)


@pytest.fixture
async def mailed(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mailed]:
    for pause in ("EVERY", "NET"):
        monkeypatch.setattr(recorder, pause, 3_600.0)
    found = Mailed(database)
    await found.opens.start()
    await found.clicks.start()
    yield found
    await found.clicks.stop()
    await found.opens.stop()


async def test_each_open_is_told_and_the_first_one_says_so(mailed: Mailed) -> None:
    await mailed.db.execute(SUBSCRIBED, ORGANIZATION)
    first, second = await mailed.email(), await mailed.email()
    at = mailed.clock.now()
    await mailed.open(first, first)
    await mailed.open(second, first)
    told = [(each, type_, data["firstOpen"]) for each, type_, data in await mailed.told()]
    assert told == [
        (first.message_id, "email.opened", True),
        (first.message_id, "email.opened", False),
        (second.message_id, "email.opened", True),
        (first.message_id, "email.opened", False),
    ]
    assert {data["status"] for _, _, data in await mailed.told()} == {"delivered"}
    assert await mailed.moments(first) == (at, None)
    assert len(mailed.hinted) == 2  # a hint for each commit


async def test_nothing_is_told_where_nobody_listens(mailed: Mailed) -> None:
    key = await mailed.email()
    await mailed.open(key)
    assert await mailed.told() == []
    assert await mailed.moments(key) != (None, None)


async def test_what_is_not_counted_or_no_token_leaves_no_trace(mailed: Mailed) -> None:
    key = await mailed.email()
    token = mailed.tokens.of_open(key)
    assert mailed.opens.open(token, counted=False)
    assert not mailed.opens.open(token[:-1] + "*", counted=True)
    await mailed.opens.record()
    assert await mailed.moments(key) == (None, None)


async def test_an_open_of_what_is_past_its_time_is_no_fault(mailed: Mailed) -> None:
    await mailed.open(EmailKey(ORGANIZATION, "test", mailed.ids.new(MESSAGE)))
    assert mailed.opens.dropped == 0


async def test_opens_and_clicks_count_for_the_campaign(mailed: Mailed) -> None:
    await mailed.db.execute(CAMPAIGN, ORGANIZATION)
    key = await mailed.email("AAAAAAAA", campaign_id="spring")
    await mailed.open(key, key)
    await mailed.click("AAAAAAAA")
    row = await mailed.db.fetchrow("select opens, clicks from campaigns")
    assert tuple(row) == (2, 1)


async def test_a_click_is_told_and_the_record_shows_the_first(mailed: Mailed) -> None:
    await mailed.db.execute(SUBSCRIBED, ORGANIZATION)
    key = await mailed.email("AAAAAAAA", "BBBBBBBB")
    at = mailed.clock.now()
    await mailed.click("BBBBBBBB")
    await mailed.clock.advance(60)
    await mailed.click("AAAAAAAA")
    assert await mailed.moments(key) == (None, at)
    told = [(type_, data["url"], data["firstClick"]) for _, type_, data in await mailed.told()]
    assert told == [
        ("email.clicked", "https://example.com/BBBBBBBB", True),
        ("email.clicked", "https://example.com/AAAAAAAA", False),
    ]


async def test_whoever_opens_one_without_end_fills_no_queue(mailed: Mailed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_OF_ONE", 3)
    monkeypatch.setattr(recorder, "MOST_OF_ORGANIZATION", 4)
    first, second = await mailed.email(), await mailed.email()
    await mailed.open(*[first] * 5, *[second] * 3)
    assert mailed.opens.dropped == 4
    await mailed.open(second)
    assert mailed.opens.dropped == 4
