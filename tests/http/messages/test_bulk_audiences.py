"""POST /messages/bulk to a list or a segment, over HTTP (C15.5, C15.6)."""

from typing import Any

import pytest
from tests.people import insert_people

from recado.domain.core.ids import LIST, SEGMENT
from recado.storage.audience import lists, segments
from recado.storage.audience.lists import StaticList
from recado.storage.audience.segments import Segment


@pytest.fixture
async def audiences(mail: Any) -> dict[str, str]:
    """A list of three contacts, and a segment that two of them match."""
    api, organization_id = mail.api, mail.organization_id
    ids = await insert_people(api.database, organization_id, "test", [{"tags": ["vip"]}, {}, {"tags": ["VIP"]}])
    shared: dict[str, Any] = {
        "organization_id": organization_id,
        "env": "test",
        "name": "Spring",
        "updated_at": api.clock.now(),
    }
    static_list = StaticList(id=api.ids.new(LIST), **shared)
    condition = {"field": "tag", "operator": "is", "value": "vip"}
    segment = Segment(id=api.ids.new(SEGMENT), filters=[condition], due_at=api.clock.now(), **shared)
    async with api.database.transaction() as connection:
        await lists.insert(connection, static_list)
        await lists.join(connection, organization_id, "test", static_list.id, ids, api.clock.now())
        await segments.insert(connection, segment)
    return {"listId": static_list.id, "segmentId": segment.id}


def bulk(mail: Any, **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = mail.body(to=..., **changes)
    return body


async def build(mail: Any, batch: dict[str, Any]) -> None:
    key = (mail.organization_id, "test", batch["id"])
    while await mail.audiences.read(key):
        while await mail.maker.make_next(key):
            pass


async def shown(mail: Any, batch: dict[str, Any]) -> Any:
    return await mail.api.database.fetchrow(
        "select b.status, b.requested, t.accepted from batches b join totals t on t.key = b.id where b.id = $1",
        batch["id"],
    )


@pytest.mark.parametrize(("name", "count"), [("listId", 3), ("segmentId", 2)])
async def test_a_list_or_a_segment_is_answered_before_it_is_read(
    mail: Any, audiences: dict[str, str], name: str, count: int
) -> None:
    answer = await mail.api.post("/messages/bulk", bulk(mail, **{name: audiences[name]}))
    assert answer.status == 202
    batch = answer.body
    assert (batch["status"], batch["totals"]["requested"], batch["totals"]["accepted"]) == ("building", count, 0)
    assert (batch["heldCoins"], batch["skippedReasons"], batch["errors"]) == (0, {}, [])
    await build(mail, batch)
    assert tuple(await shown(mail, batch)) == ("running", count, count)
    page = (await mail.api.get(f"/messages?batchId={batch['id']}")).body
    assert page["total"] == count
    assert all(message["contactId"].startswith("cnt_") for message in page["items"])
    contact = page["items"][0]["contactId"]
    assert (await mail.api.get(f"/messages?contactId={contact}")).body["total"] == 1


@pytest.mark.parametrize(
    ("audience", "code"),
    [
        ({"listId": "lst_000000000000000000000"}, "REFERENCE_NOT_FOUND"),
        ({"listId": "x"}, "REFERENCE_NOT_FOUND"),
        ({"segmentId": "seg_000000000000000000000"}, "REFERENCE_NOT_FOUND"),
        ({}, "AUDIENCE_INVALID"),
        ({"listId": "x", "segmentId": "y"}, "AUDIENCE_INVALID"),
        ({"listId": "x", "recipients": [{"to": "+5511987654321"}]}, "AUDIENCE_INVALID"),
    ],
)
async def test_an_audience_that_is_none_is_refused(mail: Any, audience: dict[str, Any], code: str) -> None:
    refused = await mail.api.post("/messages/bulk", bulk(mail, **audience))
    assert (refused.status, refused.code) == (422, code)
    assert await mail.api.database.fetchval("select count(*) from batches") == 0


async def test_the_audiences_of_others_are_not_there(mail: Any, audiences: dict[str, str]) -> None:
    for name in audiences:
        other = mail.body(to=..., **{name: audiences[name]})
        refused = await mail.api.post("/messages/bulk", other, organization=1)
        assert (refused.status, refused.code) == (422, "REFERENCE_NOT_FOUND")


async def test_a_campaign_waits_for_the_audience_of_its_batch(mail: Any, audiences: dict[str, str]) -> None:
    batch = (await mail.api.post("/messages/bulk", bulk(mail, listId=audiences["listId"], campaignId="spring"))).body
    await mail.send(campaignId="spring")
    found = (await mail.api.get("/v2/campaigns/spring")).body
    assert (found["totals"]["requested"], found["totals"]["accepted"]) == (4, 1)
    await build(mail, batch)
    found = (await mail.api.get("/v2/campaigns/spring")).body
    assert (found["totals"]["requested"], found["totals"]["accepted"]) == (4, 4)


async def test_a_repeat_with_its_key_shows_the_batch_as_it_is_now(mail: Any, audiences: dict[str, str]) -> None:
    body, key = bulk(mail, listId=audiences["listId"]), {"Idempotency-Key": "spring"}
    first = await mail.api.post("/messages/bulk", body, headers=key)
    await build(mail, first.body)
    again = await mail.api.post("/messages/bulk", body, headers=key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.body["id"], again.body["totals"]["accepted"]) == (first.body["id"], 3)
    other = await mail.api.post("/messages/bulk", bulk(mail, segmentId=audiences["segmentId"]), headers=key)
    assert other.code == "IDEMPOTENCY_KEY_REUSED"
