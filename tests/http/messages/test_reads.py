"""Lists and single messages: filters, pages, cursors, and why a message waits (C5, C14.6)."""

import secrets
from datetime import timedelta
from typing import Any

import orjson
import pytest

from recado.domain.core.retention import MESSAGES_MONTHS, months_before


async def test_lists_filter_and_page(mail: Any) -> None:
    sent = [await mail.send(campaignId="spring" if n % 2 else "autumn") for n in range(7)]
    newest_first = [message["id"] for message in reversed(sent)]
    whole = (await mail.api.get("/messages?limit=200")).body
    assert [item["id"] for item in whole["items"]] == newest_first
    assert whole["total"] == 7
    assert "nextCursor" not in whole
    assert "totalEstimated" not in whole

    skipped = (await mail.api.get("/messages?limit=2&skip=4")).body
    assert [item["id"] for item in skipped["items"]] == newest_first[4:6]
    campaign = (await mail.api.get("/messages?campaignId=spring&channel=chatapp&channel=sms&status=queued")).body
    assert campaign["total"] == 3
    assert (await mail.api.get("/messages?channel=email")).body == {"items": [], "total": 0}
    assert (await mail.api.get(f"/messages?numberId={mail.number_id}&direction=outbound")).body["total"] == 7
    assert (await mail.api.get("/messages?unknown=1&status=failed")).body["total"] == 0

    walked: list[str] = []
    path = "/messages?limit=3"
    while True:
        page = (await mail.api.get(path)).body
        walked += [item["id"] for item in page["items"]]
        if "nextCursor" not in page:
            break
        await mail.send()  # what is new never appears on later pages
        path = f"/messages?limit=3&cursor={page['nextCursor']}"
    assert walked == newest_first


async def test_large_messages_come_whole_by_skip_and_in_parts_by_cursor(mail: Any) -> None:
    newest_first = [(await mail.send())["id"] for _ in range(9)][::-1]
    vars_of = [secrets.token_urlsafe(300_000)]
    await mail.api.database.execute(
        "update messages set template_vars = $1::text::json", orjson.dumps(vars_of).decode()
    )
    whole = (await mail.api.get("/messages?limit=200")).body
    assert ([item["id"] for item in whole["items"]], whole["total"]) == (newest_first, 9)
    assert {tuple(item["templateVars"]) for item in whole["items"]} == {tuple(vars_of)}
    first = (await mail.api.get("/messages?limit=1")).body
    assert first["total"] == 9
    second = (await mail.api.get(f"/messages?limit=8&cursor={first['nextCursor']}")).body
    assert [item["id"] for item in second["items"]] == newest_first[1:4]
    third = (await mail.api.get(f"/messages?limit=8&cursor={second['nextCursor']}")).body
    assert third["items"][0]["id"] == newest_first[4]


async def test_a_message_was_never_changed_before_it_was_made(mail: Any) -> None:
    sent = await mail.send()
    # As of a batch: the moment of its request, while ids are of the moment when the row was made.
    await mail.api.database.execute("update messages set updated_at = updated_at - interval '9 ms'")
    shown = (await mail.api.get(f"/messages/{sent['id']}")).body
    assert shown["updatedAt"] == shown["createdAt"] == sent["createdAt"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "INVALID_PARAMETER"),
        ("limit=201", "INVALID_PARAMETER"),
        ("skip=10001", "INVALID_PARAMETER"),
        ("status=lost", "INVALID_PARAMETER"),
        ("channel=rcs", "INVALID_PARAMETER"),
        ("from=2026-11-01T00:00:00", "INVALID_PARAMETER"),
        ("from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "INVALID_PERIOD"),
        ("cursor=abc", "INVALID_CURSOR"),
    ],
)
async def test_a_bad_parameter_is_answered_with_400(mail: Any, query: str, code: str) -> None:
    answer = await mail.api.get(f"/messages?{query}")
    assert (answer.status, answer.code) == (400, code)


@pytest.mark.parametrize("spelling", ["%2B5511987650001", "+5511987650001", "%2B55%20(11)%208765-0001"])
async def test_a_list_finds_a_phone_in_any_spelling_without_showing_it(mail: Any, spelling: str) -> None:
    await mail.send(to="+5511987650002")
    wanted = await mail.send(to="+5511987650001")
    blind = await mail.api.key("messages:read")
    for status in ("", "&status=queued"):
        found = (await mail.api.get(f"/messages?phone={spelling}{status}", token=blind)).body
        assert [item["id"] for item in found["items"]] == [wanted["id"]]
        assert found["total"] == 1
        assert "50001" not in found["items"][0]["to"]
    assert (await mail.api.get("/messages?phone=%2B5511987650003")).body == {"items": [], "total": 0}
    foreign = await mail.api.get(f"/messages?phone={spelling}", organization=1)
    assert foreign.body == {"items": [], "total": 0}


async def test_a_phone_that_is_none_is_refused_where_it_stands(mail: Any) -> None:
    refused = await mail.api.get("/messages?phone=11987650001")
    assert (refused.status, refused.code) == (400, "INVALID_PARAMETER")
    assert [error["path"] for error in refused.body["errors"]] == ["phone"]
    assert "11987650001" not in str(refused.body)


async def test_a_cursor_is_bound_to_its_filters_and_its_owner(mail: Any) -> None:
    for _ in range(3):
        await mail.send(campaignId="spring")
    cursor = (await mail.api.get("/messages?limit=1&campaignId=spring")).body["nextCursor"]
    assert (await mail.api.get(f"/messages?limit=2&campaignId=spring&cursor={cursor}")).status == 200
    for query, how in (
        ("campaignId=autumn", {}),
        ("", {}),
        ("campaignId=spring", {"env": "live"}),
        ("campaignId=spring", {"organization": 1}),
    ):
        answer = await mail.api.get(f"/messages?{query}&cursor={cursor}", **how)
        assert (answer.status, answer.code) == (400, "INVALID_CURSOR")


async def test_a_period_holds_what_was_created_in_it(mail: Any) -> None:
    sent = await mail.send()
    at = sent["createdAt"]
    later = "2999-01-01T00:00:00Z"
    assert (await mail.api.get(f"/messages?from={at}&to={later}")).body["total"] == 1
    assert (await mail.api.get(f"/messages?to={at}")).body["total"] == 0


async def test_a_list_shows_nothing_beyond_what_is_kept(mail: Any) -> None:
    kept_from = months_before(mail.api.clock.now(), MESSAGES_MONTHS)
    ids = [(await mail.send())["id"] for _ in range(3)]
    await mail.age(ids[0], kept_from - timedelta(minutes=1))
    kept = await mail.age(ids[1], kept_from + timedelta(minutes=1))
    for query in ("", "?from=2020-01-01T00:00:00Z"):
        listed = (await mail.api.get(f"/messages{query}")).body
        assert ([item["id"] for item in listed["items"]], listed["total"]) == ([ids[2], kept], 2)


async def test_only_what_waits_says_why(mail: Any) -> None:
    sent = await mail.send()
    mail.waiting.update(reason="scheduled", until=mail.api.clock.now())
    for status in ("queued", "sending", "sent", "failed"):
        await mail.set_status(sent["id"], status)
        body = (await mail.api.get(f"/messages/{sent['id']}")).body
        assert ("waiting" in body) == (status in {"queued", "sending"})
