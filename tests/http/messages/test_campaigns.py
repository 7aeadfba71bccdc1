"""Campaigns over HTTP, and their completion with its event (C15.6, C23.6)."""

import asyncio
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from tests.causes import cause

from recado.domain.senders.number import NumberStatus
from recado.storage.dispatch.settlements import Departed, Failed

QUARTER = 15 * 60


async def depart(mail: Any, message_id: str) -> None:
    """The provider takes the message."""
    await mail.api.database.execute("update dispatch set claimed_epoch = 1 where id = $1", message_id)
    await mail.api.database.execute("update messages set status = 'sending' where id = $1", message_id)
    now = mail.api.clock.now()
    await mail.sending.settle(
        Departed(mail.organization_id, "test", "chatapp", message_id, mail.number_id, "p-1", now, "utility", None, now)
    )


async def fail(mail: Any, message_id: str) -> None:
    now = mail.api.clock.now()
    await mail.sending.settle(
        Failed(mail.organization_id, "test", "chatapp", message_id, cause("expired: late"), now, True)
    )


async def campaign(mail: Any, name: str = "spring") -> dict[str, Any]:
    answer = await mail.api.get(f"/v2/campaigns/{quote(name, safe='')}")
    assert answer.status == 200
    found: dict[str, Any] = answer.body
    return found


async def test_a_campaign_shows_where_its_messages_are(mail: Any) -> None:
    first, second, third, _ = [await mail.send(campaignId="spring") for _ in range(4)]
    await mail.send()
    await depart(mail, first["id"])
    await fail(mail, second["id"])
    await mail.api.post(f"/messages/{third['id']}/archive")
    found = await campaign(mail)
    assert found == {
        "campaignId": "spring",
        "status": "running",
        "channels": ["chatapp"],
        "totals": {
            "requested": 4, "accepted": 4, "skipped": 0, "queued": 1, "sent": 1, "delivered": 0, "read": 0, "failed": 1,
            "archived": 1,
        },
        "clicks": 0,
        "opens": 0,
        "conversions": {"count": 0, "value": 0},
        "chargedCoins": found["chargedCoins"],
        "firstMessageAt": found["firstMessageAt"],
        "lastMessageAt": found["lastMessageAt"],
        "completions": 0,
    }  # fmt: skip
    assert first["createdAt"] <= found["firstMessageAt"] <= found["lastMessageAt"]


async def test_messages_accepted_together_are_counted_together(mail: Any) -> None:
    names = ["spring", "summer", "autumn"]
    await asyncio.gather(
        *(mail.send(campaignId=names[turn % 3]) for turn in range(60)), *(mail.send() for _ in range(20))
    )
    assert [(await campaign(mail, name))["totals"]["queued"] for name in names] == [20, 20, 20]
    assert (await mail.api.get("/v2/campaigns")).body["total"] == 3


async def test_a_repeat_is_counted_once(mail: Any) -> None:
    key = {"Idempotency-Key": "once"}
    for _ in range(3):
        assert (await mail.api.post("/messages", mail.body(campaignId="spring"), headers=key)).status == 201
    assert (await campaign(mail))["totals"]["accepted"] == 1


async def test_a_message_that_is_sent_again_is_counted_beside_the_one_that_failed(mail: Any) -> None:
    sent = await mail.send(campaignId="spring")
    await fail(mail, sent["id"])
    assert (await mail.api.post(f"/messages/{sent['id']}/reprocess")).status == 201
    totals = (await campaign(mail))["totals"]
    assert (totals["accepted"], totals["queued"], totals["failed"]) == (2, 1, 1)


async def test_a_message_without_a_campaign_leaves_no_trace(mail: Any) -> None:
    await mail.send()
    assert await mail.api.database.fetchval("select count(*) from totals") == 0
    assert (await mail.api.get("/v2/campaigns")).body == {"items": [], "total": 0}


async def test_it_completes_with_one_event_and_opens_again(mail: Any) -> None:
    await mail.api.database.execute("delete from events")
    await subscribe(mail)
    sent = await mail.send(campaignId="spring")
    await depart(mail, sent["id"])
    await mail.completion.work()
    assert (await campaign(mail))["status"] == "running"
    mail.api.clock.shift(QUARTER + 1)
    await mail.completion.work()
    await mail.completion.work()
    found = await campaign(mail)
    assert (found["status"], found["completions"]) == ("completed", 1)
    [data] = await told(mail)
    assert data == {
        "campaignId": "spring",
        "totals": found["totals"],
        "channels": ["chatapp"],
        "chargedCoins": found["chargedCoins"],
        "firstMessageAt": found["firstMessageAt"],
        "completedAt": found["completedAt"],
        "completions": 1,
    }
    assert data["totals"]["sent"] == 1

    later = await mail.send(campaignId="spring")
    reopened = await campaign(mail)
    assert (reopened["status"], reopened["completions"]) == ("running", 1)
    assert "completedAt" not in reopened
    await mail.api.post(f"/messages/{later['id']}/archive")
    mail.api.clock.shift(QUARTER + 1)
    await mail.completion.work()
    assert [data["completions"] for data in await told(mail)] == [1, 2]


async def test_what_still_waits_keeps_it_running(mail: Any) -> None:
    at = (mail.api.clock.now() + timedelta(days=1)).isoformat()
    await mail.send(campaignId="spring", scheduledAt=at)
    mail.api.clock.shift(2 * QUARTER)
    await mail.completion.work()
    assert (await campaign(mail))["status"] == "running"


async def test_many_that_are_through_complete_in_one_look(mail: Any) -> None:
    for turn in range(5):
        await fail(mail, (await mail.send(campaignId=f"c{turn}"))["id"])
    mail.api.clock.shift(QUARTER + 1)
    await mail.completion.work()
    assert (await mail.api.get("/v2/campaigns?status=running")).body["total"] == 0
    assert (await mail.api.get("/v2/campaigns?status=completed&limit=2")).body["total"] == 5


async def test_the_list_takes_status_period_and_pages(mail: Any) -> None:
    for name in ("a", "b", "c"):
        await mail.send(campaignId=name)
        mail.api.clock.shift(60)
    listed = (await mail.api.get("/v2/campaigns")).body
    assert [item["campaignId"] for item in listed["items"]] == ["c", "b", "a"]
    second = listed["items"][1]["firstMessageAt"]
    at = quote(second)
    assert [item["campaignId"] for item in (await mail.api.get(f"/v2/campaigns?from={at}")).body["items"]] == ["c", "b"]
    assert [item["campaignId"] for item in (await mail.api.get(f"/v2/campaigns?to={at}")).body["items"]] == ["a"]
    page = (await mail.api.get("/v2/campaigns?limit=1&skip=1")).body
    assert ([item["campaignId"] for item in page["items"]], page["total"]) == (["b"], 3)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("status=open", "INVALID_PARAMETER"),
        ("limit=201", "INVALID_PARAMETER"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "INVALID_PERIOD"),
    ],
)
async def test_a_bad_query_is_refused(mail: Any, query: str, code: str) -> None:
    refused = await mail.api.get(f"/v2/campaigns?{query}")
    assert (refused.status, refused.code) == (400, code)


@pytest.mark.parametrize("name", ["a b", "50 % off/é", "x" * 64, "'; drop table campaigns; --", "a?b#c"])
async def test_a_tag_may_be_any_text(mail: Any, name: str) -> None:
    await mail.send(campaignId=name)
    assert (await campaign(mail, name))["campaignId"] == name


async def test_campaigns_of_others_do_not_exist(mail: Any) -> None:
    await mail.send(campaignId="spring")
    for how in ({"organization": 1}, {"env": "live"}):
        assert (await mail.api.get("/v2/campaigns/spring", **how)).status == 404
        assert (await mail.api.get("/v2/campaigns", **how)).body["total"] == 0
    for path in ("/v2/campaigns/nothing", "/v2/campaigns/a%00b", "/v2/campaigns/%ff"):
        assert (await mail.api.get(path)).status == 404
    refused = await mail.api.get("/v2/campaigns", token=await mail.api.key("messages:read"))
    assert (refused.status, refused.body["meta"]) == (403, {"requiredScope": "campaigns:read"})


async def test_a_refused_message_counts_nowhere(mail: Any) -> None:
    await mail.api.database.execute("update numbers set status = $1", NumberStatus.DISCONNECTED.value)
    mail.api.directories.numbers.clear()
    await mail.refusal(mail.body(campaignId="spring"))
    assert (await mail.api.get("/v2/campaigns/spring")).status == 404


async def subscribe(mail: Any) -> None:
    await mail.api.database.execute(
        "insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events,"
        " include_pii, max_attempts, backoff_seconds, status, revision, updated_at)"
        " values ($1, $2, 'test', 'https://example.com', 'c', 1, '{campaign.completed}', false, 8, 30, 'active',"
        " 1, now())",
        mail.organization_id,
        "wbh_" + "1" * 21,
    )


async def told(mail: Any) -> list[dict[str, Any]]:
    """The data of the completions that were told, each with its delivery."""
    rows = await mail.api.database.fetch("select * from events where type = 'campaign.completed' order by id")
    queued = await mail.api.database.fetchval("select count(*) from delivery_queue where event = 'campaign.completed'")
    assert queued == len(rows)
    return [orjson.loads(row["data"]) for row in rows]
