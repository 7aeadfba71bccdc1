"""Exports over HTTP: rows of each channel, periods, pages, and what is refused (C18)."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.message_rows import MASKED, PHONE, insert_messages, message_id
from tests.people import insert_people

from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.storage.core.upkeep.partitions import ensure_partitions

HOUR, MS = timedelta(hours=1), timedelta(milliseconds=1)
CHANNELS = {"chatapp": "messages:read", "sms": "sms:read", "rcs": "rcs:read", "email": "email:read"}


def ago(api: Any, hours: float = 1) -> datetime:
    """A moment of the past, to the millisecond."""
    now: datetime = api.clock.now()
    return now.replace(microsecond=0) - hours * HOUR


async def add(api: Any, *rows: dict[str, Any], organization: int = 0, env: str = "test") -> None:
    await insert_messages(api.database, api.organizations[organization].organization.id, env, rows)


async def exported(api: Any, channel: str = "chatapp", *, token: str | None = None, **query: Any) -> Any:
    period = {"from": format_timestamp(ago(api, 24)), "to": format_timestamp(api.clock.now())}
    return await api.get(f"/v2/exports/{channel}?{urlencode(period | query)}", token=token)


def around(at: datetime) -> dict[str, str]:
    """The period of two hours, in which pages by cursor stay."""
    return {"from": format_timestamp(at - HOUR), "to": format_timestamp(at + HOUR)}


async def rows_of(api: Any, channel: str = "chatapp", **how: Any) -> list[dict[str, Any]]:
    answer = await exported(api, channel, **how)
    assert answer.status == 200, answer.body
    assert answer.body["nextCursor"] is None
    items: list[dict[str, Any]] = answer.body["items"]
    return items


async def test_a_row_of_chat_app_says_what_became_of_it_and_what_it_belongs_to(api: Any) -> None:
    organization_id = api.organizations[0].organization.id
    (contact_id,) = await insert_people(api.database, organization_id, "test", [{"external_id": "crm-7"}])
    at = ago(api)
    times = {f"{name}_at": format_timestamp(at + n * MS) for n, name in enumerate(("sent", "delivered", "read"), 1)}
    metadata = {"order": 1042, "gift": True, "shop": "São Paulo", "weight": 0.5}
    await add(
        api,
        {
            "id": message_id(at), "status": "read", "campaign_id": "spring sale", "contact_id": contact_id,
            "metadata": metadata, **times,
        },
    )  # fmt: skip
    (row,) = await rows_of(api)
    assert row == {
        "id": message_id(at), "channel": "chatapp", "direction": "outbound", "to": PHONE, "status": "read",
        "campaignId": "spring sale", "contactId": contact_id, "contactExternalId": "crm-7", "metadata": metadata,
        "createdAt": format_timestamp(at), "sentAt": times["sent_at"], "deliveredAt": times["delivered_at"],
        "readAt": times["read_at"],
    }  # fmt: skip
    await api.patch(f"/contacts/{contact_id}", {"externalId": "crm-8"})
    assert (await rows_of(api))[0]["contactExternalId"] == "crm-8"


async def test_each_channel_has_its_own_messages_in_its_own_words(api: Any) -> None:
    failed = {"failed_at": format_timestamp(ago(api)), "outcome_certain": True}
    rows: dict[str, list[dict[str, Any]]] = {
        "chatapp": [
            {"direction": "inbound"},
            {"status": "archived", "failure_code": "withdrawn", "last_error": "withdrawn: it was archived"},
            {"status": "queued", "last_error": "provider_error: refused for now"},
        ],
        "social": [{"recipient": "123456789"}],
        "sms": [
            {"direction": "inbound"},
            {"status": "undelivered", "units": 3, "failure_code": "expired", **failed},
            {"status": "failed", "failure_code": "opted_out", **failed},
        ],
        "rcs": [
            {"status": "read", "units": 2, "details": {"deliveredVia": "rcs"}},
            {"status": "sent", "units": 2, "details": {"deliveredVia": "sms"}},
            {"status": "failed", "failure_code": "not_rcs_capable", **failed},
        ],
        "email": [
            {"status": "bounced", "recipient": "maria@example.com", "failure_code": "mailbox_full",
             "details": {"subject": 'Your "order"', "bodyBytes": 7}, **failed},
        ],
    }  # fmt: skip
    at = ago(api)
    for channel, given in rows.items():
        numbered = [{"id": message_id(at - n * MS), "channel": channel, **row} for n, row in enumerate(given)]
        await add(api, *numbered)
    told = {
        channel: [
            {name: row[name] for name in sorted(row) if name not in {"id", "createdAt", "failedAt", "to"}}
            for row in await rows_of(api, channel)
        ]
        for channel in CHANNELS
    }
    out: dict[str, Any] = {"direction": "outbound"}
    assert told == {
        "chatapp": [
            {"channel": "chatapp", "direction": "inbound", "status": "delivered"},
            {"channel": "chatapp", **out, "status": "archived", "reason": "withdrawn"},
            {"channel": "chatapp", **out, "status": "queued", "reason": "provider_error"},
        ],
        "sms": [
            {"channel": "sms", "direction": "inbound", "status": "delivered"},
            {"channel": "sms", **out, "status": "undelivered", "reason": "expired", "segments": 3},
            {"channel": "sms", **out, "status": "failed", "reason": "abandoned", "segments": 1},
        ],
        "rcs": [
            {"channel": "rcs", **out, "status": "read", "deliveredVia": "rcs"},
            {"channel": "rcs", **out, "status": "sent", "deliveredVia": "sms", "segments": 2},
            {"channel": "rcs", **out, "status": "failed", "reason": "not_rcs_capable"},
        ],
        "email": [
            {"channel": "email", **out, "status": "bounced", "reason": "mailbox_full", "subject": 'Your "order"'},
        ],
    }


@pytest.mark.parametrize(
    ("channel", "recipient", "masked"), [("chatapp", PHONE, MASKED), ("email", "maria@example.com", "m***@example.com")]
)
async def test_recipients_are_masked_without_the_scope_for_them(
    api: Any, channel: str, recipient: str, masked: str
) -> None:
    await add(api, {"id": message_id(ago(api)), "channel": channel, "recipient": recipient})
    for scopes, told in (((), masked), (("pii:full",), recipient)):
        token = await api.key(CHANNELS[channel], *scopes)
        assert [row["to"] for row in await rows_of(api, channel, token=token)] == [told]


async def test_whom_a_deleted_contact_was_reached_by_stays_masked(api: Any) -> None:
    organization_id = api.organizations[0].organization.id
    (contact_id,) = await insert_people(api.database, organization_id, "test", [{}])
    waits = {"id": message_id(ago(api)), "contact_id": contact_id, "status": "sending"}  # it needs its recipient yet
    await add(api, waits, {"id": message_id(ago(api, 2)), "contact_id": contact_id})
    assert [row["to"] for row in await rows_of(api)] == [PHONE, PHONE]
    assert (await api.delete(f"/contacts/{contact_id}")).status == 204
    for row in await rows_of(api):
        assert (row["to"], row["contactId"], "contactExternalId" in row) == (MASKED, contact_id, False)
    assert await api.database.fetchval("select bool_or(recipient = $1) from messages", PHONE)


async def test_a_scope_opens_the_export_of_its_channel_only(api: Any) -> None:
    for channel, scope in CHANNELS.items():
        token = await api.key(scope)
        for other in CHANNELS:
            answer = await exported(api, other, token=token)
            assert answer.status == (200 if other == channel else 403)
            if answer.status == 200:
                assert answer.headers["RateLimit-Policy"].startswith('"bulk";')
                assert answer.headers["Cache-Control"] == "no-store"
            else:
                assert answer.body["meta"] == {"requiredScope": CHANNELS[other]}


async def test_an_export_is_of_its_organization_and_environment(api: Any) -> None:
    at, owners = ago(api), [(0, "test"), (0, "live"), (1, "test")]
    for n, (organization, env) in enumerate(owners):
        await add(api, {"id": message_id(at, n)}, organization=organization, env=env)
    for n, (organization, env) in enumerate(owners):
        rows = await rows_of(api, token=api.token(organization, env))
        assert [row["id"] for row in rows] == [message_id(at, n)]
    assert await rows_of(api, token=api.token(1, "live")) == []


async def test_both_ends_of_the_period_belong_to_it(api: Any) -> None:
    at = ago(api)
    ids = [message_id(at + n * MS) for n in range(4)]
    await add(api, *({"id": each} for each in ids))

    async def found(start: datetime, end: datetime) -> list[str]:
        period = {"from": start.isoformat(), "to": end.isoformat()}
        return [row["id"] for row in await rows_of(api, **period)][::-1]

    assert await found(at + MS, at + 2 * MS) == ids[1:3]
    assert await found(at + 2 * MS, at + 2 * MS) == ids[2:3]
    finer = timedelta(microseconds=999)
    assert await found(at + MS + finer, at + 2 * MS + finer) == ids[1:3]


async def test_what_is_past_its_time_is_not_shown(api: Any) -> None:
    api.clock.shift((datetime.fromisoformat("2026-06-15T12:00:00Z") - api.clock.now()).total_seconds())
    kept_from = datetime.fromisoformat("2024-06-15T12:00:00Z")
    await ensure_partitions(api.database, kept_from, months_ahead=0)
    ids = [message_id(kept_from + n * HOUR) for n in (-1, 1)]
    await add(api, *({"id": each} for each in ids))
    period = {"from": format_timestamp(kept_from - 2 * HOUR), "to": format_timestamp(kept_from + 2 * HOUR)}
    assert [row["id"] for row in await rows_of(api, **period)] == [ids[1]]
    beyond = {"from": period["from"], "to": format_timestamp(kept_from - HOUR)}
    assert await rows_of(api, **beyond) == []


WRONG: list[tuple[dict[str, Any], int, str, list[str]]] = [
    ({"from": ...}, 400, "INVALID_PARAMETER", ["from"]),
    ({"to": ...}, 400, "INVALID_PARAMETER", ["to"]),
    ({"from": ..., "to": ...}, 400, "INVALID_PARAMETER", ["from", "to"]),
    ({"from": ""}, 400, "INVALID_PARAMETER", ["from"]),
    ({"from": "2026-01-01"}, 400, "INVALID_PARAMETER", ["from"]),
    ({"to": "2026-01-01T00:00:00"}, 400, "INVALID_PARAMETER", ["to"]),
    ({"to": "a\0b"}, 400, "INVALID_PARAMETER", ["to"]),
    ({"limit": 0}, 400, "INVALID_PARAMETER", ["limit"]),
    ({"limit": 1001}, 400, "INVALID_PARAMETER", ["limit"]),
    ({"limit": "many"}, 400, "INVALID_PARAMETER", ["limit"]),
    ({"limit": [1, 2]}, 400, "INVALID_PARAMETER", ["limit"]),
    ({"cursor": ""}, 400, "INVALID_PARAMETER", ["cursor"]),
    ({"cursor": "x"}, 400, "INVALID_CURSOR", []),
    ({"cursor": "é" * 300}, 400, "INVALID_CURSOR", []),
    ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, 422, "VALIDATION_ERROR", ["from"]),
    ({"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00.001Z"}, 422, "PERIOD_TOO_LONG", ["to"]),
    ({"from": "0001-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z"}, 422, "PERIOD_TOO_LONG", ["to"]),
]


async def test_what_is_wrong_is_named(api: Any) -> None:
    usual = {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}
    for changes, status, code, paths in WRONG:
        query = {name: value for name, value in {**usual, **changes}.items() if value is not ...}
        for channel in CHANNELS:
            refused = await api.get(f"/v2/exports/{channel}?{urlencode(query, doseq=True)}")
            told = [error["path"] for error in refused.body.get("errors", [])]
            assert (refused.status, refused.code, told) == (status, code, paths), query


async def test_the_first_and_the_last_moments_of_all_are_periods_too(api: Any) -> None:
    for at in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-01-31T23:59:60Z"):
        assert await rows_of(api, **{"from": at, "to": at}) == []


async def test_31_days_are_taken(api: Any) -> None:
    at = api.clock.now()
    period = {"from": format_timestamp(at - timedelta(days=31)), "to": format_timestamp(at)}
    assert await rows_of(api, **period) == []


async def test_no_other_channel_is_exported(api: Any) -> None:
    refused = await exported(api, "social")
    assert (refused.status, refused.code) == (404, "ROUTE_NOT_FOUND")
    posted = await api.post("/v2/exports/sms")
    assert (posted.status, posted.headers["Allow"]) == (405, "GET, HEAD")


async def test_pages_hold_each_row_once_as_it_is_then_and_nothing_that_came_in_later(api: Any) -> None:
    at = ago(api)
    ids = [message_id(at + n * MS, n) for n in range(7)]
    await add(api, *({"id": each, "status": "sent"} for each in ids))
    seen, query = [], {**around(at), "limit": 3}
    while True:
        page = (await exported(api, **query)).body
        seen += [(row["id"], row["status"]) for row in page["items"]]
        if page["nextCursor"] is None:
            break
        assert len(page["items"]) == 3
        await add(api, {"id": message_id(created_at(ids[-1]) + HOUR / 2, len(seen))})
        await api.database.execute("update messages set status = 'read' where id = $1", ids[3])
        query["cursor"] = page["nextCursor"]
    statuses = {each: "read" if each == ids[3] else "sent" for each in ids}
    assert seen == [(each, statuses[each]) for each in reversed(ids)]


async def test_a_cursor_is_good_for_its_channel_period_organization_and_environment_only(api: Any) -> None:
    at = ago(api)
    await add(api, *({"id": message_id(at, n)} for n in range(2)))
    period = around(at)
    cursor = (await exported(api, **period, limit=1)).body["nextCursor"]
    again = await exported(api, **period, limit=7, cursor=cursor)
    assert [row["id"] for row in again.body["items"]] == [message_id(at, 0)]
    spelt = {"from": period["from"].replace(".000Z", "+00:00")}
    assert (await exported(api, **{**period, **spelt}, cursor=cursor)).body == again.body
    elsewhere = [
        await exported(api, "sms", **period, cursor=cursor),
        await exported(api, **{**period, "to": format_timestamp(at + HOUR / 2)}, cursor=cursor),
        await exported(api, **period, cursor=cursor, token=api.token(1)),
        await exported(api, **period, cursor=cursor, token=api.token(0, "live")),
    ]
    assert [(answer.status, answer.code) for answer in elsewhere] == [(400, "INVALID_CURSOR")] * 4


async def test_a_large_page_is_whole_and_sent_while_it_is_read(api: Any) -> None:
    large = {f"{n:064}": "ü" * 256 for n in range(20)}
    at = ago(api)
    ids = [message_id(at, n) for n in range(150)]
    await add(api, *({"id": each, "metadata": large} for each in ids))
    answer = await exported(api, **around(at), limit=120)
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert [row["id"] for row in answer.body["items"]] == ids[:29:-1]
    assert all(row["metadata"] == large for row in answer.body["items"])
    rest = await exported(api, **around(at), limit=1000, cursor=answer.body["nextCursor"])
    assert [row["id"] for row in rest.body["items"]] == ids[29::-1]
    assert rest.body["nextCursor"] is None


async def test_a_page_of_a_thousand_small_rows_is_sent_at_once(api: Any) -> None:
    at = ago(api)
    await add(api, *({"id": message_id(at, n), "metadata": {"order": n}} for n in range(1_001)))
    page = await exported(api, **around(at), limit=1000)
    assert "Content-Length" in page.headers
    assert len(page.body["items"]) == 1_000
    assert len((await exported(api)).body["items"]) == 500
    rest = await exported(api, **around(at), limit=1000, cursor=page.body["nextCursor"])
    assert [row["id"] for row in rest.body["items"]] == [message_id(at, 0)]


async def test_an_unknown_parameter_is_named(api: Any) -> None:
    answer = await exported(api, status="read")
    assert answer.status == 200
    assert "status" in answer.headers["X-Recado-Warnings"]
