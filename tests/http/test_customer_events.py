"""Customer events over HTTP: what is taken and refused, repeats, and the list (C21)."""

import asyncio
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.waiting import until

from recado.domain.core.timestamps import format_timestamp, parse_timestamp

EVENTS = "/v2/events"
PHONE = "+5511987654321"


def body(event_id: str = "order-1", **fields: Any) -> dict[str, Any]:
    return {"name": "order.paid", "eventId": event_id, "contact": {"externalId": "crm-7"}, **fields}


async def contact(api: Any, **fields: Any) -> str:
    answer = await api.post("/contacts", {"phone": PHONE, "externalId": "crm-7", **fields})
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def posted(api: Any, event_id: str = "order-1", **fields: Any) -> Any:
    answer = await api.post(EVENTS, body(event_id, **fields))
    assert answer.status == 201, answer.body
    return answer.body


def ago(api: Any, **past: float) -> str:
    return format_timestamp(api.clock.now() - timedelta(**past))


async def listed(api: Any, query: dict[str, Any] | None = None, **how: Any) -> Any:
    period = {"from": ago(api, days=30), "to": ago(api, days=-1)}
    return await api.get(f"{EVENTS}?{urlencode(period | (query or {}))}", **how)


async def test_an_event_is_stored_as_it_was_told(api: Any) -> None:
    contact_id = await contact(api)
    properties = {"sku": "A-7", "items": 2, "gift": True, "weight": 0.5}
    given = {"occurredAt": "2026-01-31T09:00:00-03:00", "value": 99.9, "currency": "usd", "properties": properties}
    api.clock.shift((parse_timestamp("2026-01-31T12:01:00Z") - api.clock.now()).total_seconds())
    event = await posted(api, **given)
    assert event.pop("id").startswith("cev_")
    assert event == {
        "name": "order.paid", "eventId": "order-1", "contactId": contact_id, "contactExternalId": "crm-7",
        "occurredAt": "2026-01-31T12:00:00.000Z", "value": 99.9, "currency": "USD", "properties": properties,
        "attribution": None, "duplicate": False,
    }  # fmt: skip


async def test_an_event_of_nobody_is_stored_and_makes_no_contact(api: Any) -> None:
    event = await posted(api, contact={"phone": "+55 (11) 98765-4321", "email": "nobody@example.com"})
    assert set(event) == {"id", "name", "eventId", "occurredAt", "currency", "attribution", "duplicate"}
    assert (event["currency"], event["attribution"]) == ("BRL", None)
    assert (await api.get("/contacts")).body["total"] == 0


@pytest.mark.parametrize(
    "keys", [{"phone": "+55 11 8765-4321"}, {"email": "ANA@example.com"}, {"contactId": "x", "externalId": "crm-7"}]
)
async def test_a_contact_is_found_in_any_spelling(api: Any, keys: dict[str, str]) -> None:
    contact_id = await contact(api, email="Ana@Example.com")
    assert (await posted(api, contact=keys))["contactId"] == contact_id


async def test_a_contact_of_the_other_environment_is_not_found(api: Any) -> None:
    await contact(api)
    answer = await api.post(EVENTS, body(), env="live")
    assert (answer.status, "contactId" in answer.body) == (201, False)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "/name", "VALIDATION_ERROR"),
    ({"name": "order paid"}, "/name", "VALIDATION_ERROR"),
    ({"name": "x" * 101}, "/name", "VALIDATION_ERROR"),
    ({"eventId": " "}, "/eventId", "VALIDATION_ERROR"),
    ({"eventId": "x" * 256}, "/eventId", "VALIDATION_ERROR"),
    ({"eventId": 7}, "/eventId", "VALIDATION_ERROR"),
    ({"contact": None}, "/contact", "VALIDATION_ERROR"),
    ({"contact": {}}, "/contact", "VALIDATION_ERROR"),
    ({"contact": {"phone": None}}, "/contact", "VALIDATION_ERROR"),
    ({"contact": {"phone": "123"}}, "/contact/phone", "PHONE_INVALID"),
    ({"contact": {"externalId": "x" * 256}}, "/contact/externalId", "VALIDATION_ERROR"),
    ({"value": -0.01}, "/value", "VALIDATION_ERROR"),
    ({"value": 10**12 + 1}, "/value", "VALIDATION_ERROR"),
    ({"value": "7"}, "/value", "VALIDATION_ERROR"),
    ({"currency": "R$"}, "/currency", "VALIDATION_ERROR"),
    ({"currency": "REAL"}, "/currency", "VALIDATION_ERROR"),
    ({"properties": {"a b": 1}}, "/properties", "METADATA_INVALID"),
    ({"properties": {"a": "x" * 257}}, "/properties/a", "METADATA_INVALID"),
    ({"properties": {"a": None}}, "/properties/a", "METADATA_INVALID"),
    ({"properties": {f"k{number}": 1 for number in range(21)}}, "/properties", "METADATA_INVALID"),
    ({"properties": []}, "/properties", "METADATA_INVALID"),
    ({"attributionWindowHours": 0}, "/attributionWindowHours", "VALIDATION_ERROR"),
    ({"attributionWindowHours": 721}, "/attributionWindowHours", "VALIDATION_ERROR"),
    ({"occurredAt": "2026-01-31T12:00:00"}, "/occurredAt", "VALIDATION_ERROR"),
]


async def test_what_is_wrong_is_named_and_nothing_is_stored(api: Any) -> None:
    answers = await asyncio.gather(*(api.post(EVENTS, {**body(), **change}) for change, _, _ in WRONG))
    told = [(answer.status, answer.code, answer.body["errors"][0]["path"]) for answer in answers]
    assert told == [(422, code, pointer) for _, pointer, code in WRONG]
    assert (await listed(api)).body == {"items": []}


async def test_an_event_lies_neither_ahead_nor_a_year_back(api: Any) -> None:
    for past, code in ((-301, "EVENT_IN_FUTURE"), (365 * 86_400 + 60, "EVENT_TOO_OLD")):
        refused = await api.post(EVENTS, body(occurredAt=ago(api, seconds=past)))
        assert (refused.status, refused.code, refused.body["errors"][0]["path"]) == (422, code, "/occurredAt")
    for number, past in enumerate((-290, 365 * 86_400 - 60)):
        await posted(api, f"e-{number}", occurredAt=ago(api, seconds=past))


async def test_bounds_themselves_are_taken(api: Any) -> None:
    event = await posted(
        api, "é" * 255, name="x" * 100, value=10**12, attributionWindowHours=720,
        properties={f"k{number}": "x" * 256 for number in range(20)},
    )  # fmt: skip
    assert (event["value"], len(event["properties"])) == (10**12, 20)
    assert (await posted(api, "\x1e\x1f", value=0))["value"] == 0


async def test_a_repeat_gets_what_is_stored_whatever_it_says(api: Any) -> None:
    first = await posted(api, value=1)
    again = await api.post(EVENTS, body(name="another", value=2, contact={"phone": PHONE}))
    assert (again.status, again.body) == (200, {**first, "duplicate": True})
    assert (await api.post(EVENTS, body(), env="live")).status == 201
    assert (await api.post(EVENTS, body(), organization=1)).status == 201


async def test_of_many_at_once_one_is_stored_and_the_others_get_it(api: Any) -> None:
    answers = await asyncio.gather(*(api.post(EVENTS, body(value=number)) for number in range(30)))
    assert sorted(answer.status for answer in answers) == [200] * 29 + [201]
    assert len({answer.body["id"] for answer in answers}) == 1
    assert {(answer.status, answer.body["duplicate"]) for answer in answers} == {(200, True), (201, False)}


async def test_a_repeat_under_a_key_shows_the_event_as_it_is_stored(api: Any) -> None:
    contact_id = await contact(api)
    key = {"Idempotency-Key": "once"}
    first = await api.post(EVENTS, body(), headers=key)
    again = await api.post(EVENTS, body(), headers=key)
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (201, first.body, "true")
    reused = await api.post(EVENTS, body("order-2"), headers=key)
    assert (reused.status, reused.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert "crm-7" not in str(await api.database.fetchval("select convert_from(body, 'UTF8') from idempotency"))
    assert (await api.delete(f"/contacts/{contact_id}")).status == 204

    async def gone() -> bool:
        return bool(await api.database.fetchval("select bool_and(contact_external_id is null) from customer_events"))

    await until(gone, "the event has lost the external id of its contact")
    erased = await api.post(EVENTS, body(), headers=key)
    assert erased.body == {name: value for name, value in first.body.items() if name != "contactExternalId"}


async def test_a_create_has_no_version_to_match(api: Any) -> None:
    refused = await api.post(EVENTS, body(), headers={"If-Match": "*"})
    assert (refused.status, refused.code) == (412, "VERSION_MISMATCH")


async def test_the_list_begins_with_what_occurred_last_and_is_filtered(api: Any) -> None:
    contact_id = await contact(api)
    hours = {"b": 2, "d": 4, "a": 1, "c": 3}
    for name, past in hours.items():
        whose = {} if name in "ab" else {"contact": {"externalId": "nobody"}}
        await posted(api, name, name=f"event.{name}", occurredAt=ago(api, hours=past), **whose)

    async def found(**query: Any) -> str:
        return "".join(item["eventId"] for item in (await listed(api, query)).body["items"])

    assert await found() == "abcd"
    assert await found(name="event.c") == "c"
    assert await found(contactId=contact_id) == "ab"
    assert await found(contactId=contact_id, name="event.b") == "b"
    assert await found(contactId="x") == ""
    begins = (await listed(api)).body["items"][1]["occurredAt"]
    assert await found(**{"from": begins}) == "ab"
    assert await found(to=begins) == "cd"
    assert (await listed(api, env="live")).body == {"items": []}
    assert (await listed(api, organization=1)).body == {"items": []}


async def test_pages_go_on_where_the_one_before_ended_also_within_a_moment(api: Any) -> None:
    moments = [ago(api, hours=1)] * 3 + [ago(api, hours=2)] * 2
    ids = [(await posted(api, str(number), occurredAt=at))["id"] for number, at in enumerate(moments)]
    seen, query = [], {"limit": 2, "from": ago(api, days=1), "to": ago(api, hours=0)}
    while True:
        page = (await listed(api, query)).body
        seen.append([item["id"] for item in page["items"]])
        if "nextCursor" not in page:
            break
        query["cursor"] = page["nextCursor"]
    assert seen == [[ids[2], ids[1]], [ids[0], ids[4]], [ids[3]]]
    other = await listed(api, {**query, "name": "order.paid"})
    assert (other.status, other.code) == (400, "INVALID_CURSOR")


async def test_a_large_page_ends_early_and_the_next_one_goes_on(api: Any) -> None:
    properties = {f"{'k' * 60}{number:02}": "é" * 256 for number in range(20)}
    batch = [body(str(number), properties=properties, occurredAt=ago(api, hours=number)) for number in range(120)]
    assert {answer.status for answer in await asyncio.gather(*(api.post(EVENTS, each) for each in batch))} == {201}
    period = {"from": ago(api, days=30), "to": ago(api, hours=-1), "limit": 500}
    first = (await listed(api, period)).body
    rest = (await listed(api, {**period, "cursor": first["nextCursor"]})).body
    assert 0 < len(first["items"]) < 120
    assert [item["eventId"] for item in first["items"] + rest["items"]] == [str(number) for number in range(120)]
    assert "nextCursor" not in rest


@pytest.mark.parametrize(
    ("query", "code", "parameter"),
    [
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "INVALID_PERIOD", "from"),
        ({"from": "2026-01-01T00:00:00Z", "to": "2026-04-03T00:00:00.001Z"}, "INVALID_PERIOD", None),
        ({"from": "2026-01-01T00:00:00Z"}, "INVALID_PARAMETER", "to"),
        ({"to": "2026-01-01T00:00:00Z"}, "INVALID_PARAMETER", "from"),
        ({"from": "2026-01-01", "to": "2026-01-02T00:00:00Z"}, "INVALID_PARAMETER", "from"),
    ],
)
async def test_a_period_is_needed_of_at_most_ninety_two_days(
    api: Any, query: dict[str, str], code: str, parameter: str | None
) -> None:
    refused = await api.get(f"{EVENTS}?{urlencode(query)}")
    assert (refused.status, refused.code) == (400, code)
    assert [error["path"] for error in refused.body.get("errors", [])] == ([parameter] if parameter else [])
    whole = {"from": "2026-01-01T00:00:00Z", "to": "2026-04-03T00:00:00Z"}
    assert (await api.get(f"{EVENTS}?{urlencode(whole)}")).status == 200


async def test_the_list_shows_nothing_that_is_past_its_time(api: Any) -> None:
    event = await posted(api)
    at = parse_timestamp(event["occurredAt"])
    period = {"from": format_timestamp(at - timedelta(days=1)), "to": format_timestamp(at + timedelta(days=1))}
    api.clock.shift(729 * 86_400)
    assert len((await listed(api, period)).body["items"]) == 1
    api.clock.shift(3 * 86_400)
    assert (await listed(api, period)).body == {"items": []}


async def test_reading_and_posting_have_scopes_of_their_own(api: Any) -> None:
    reader, writer = await api.key("contacts:read"), await api.key("contacts:write")
    assert (await api.post(EVENTS, body(), token=writer)).status == 201
    assert (await listed(api, token=reader)).status == 200
    refused = [await api.post(EVENTS, body(), token=reader), await listed(api, token=writer)]
    assert [(each.status, each.body["meta"]["requiredScope"]) for each in refused] == [
        (403, "contacts:write"), (403, "contacts:read"),
    ]  # fmt: skip
