"""What is left of a contact in the events that webhooks were told of it, when it is deleted (C12.6)."""

from typing import Any

import orjson
import pytest
from tests.http.conftest import Api
from tests.waiting import until

from recado.services.contacts.contact_events import without_details

PHONE, OTHER = "+5511987654321", "+5511987654322"
MASKED = "+55*******4321"


async def subscribe(api: Api) -> str:
    """The path of a subscription that takes every event, with personal data."""
    body = {"url": "https://hooks.example.com/", "events": ["*"], "includePii": True}
    return f"/webhooks/{(await api.post('/webhooks', body)).body['id']}"


async def made(api: Api, phone: str = PHONE, **fields: Any) -> str:
    """A contact that consented when it was made, and refused later."""
    granted = {"status": "granted", "source": "landing page"}
    answer = await api.post("/contacts", {"phone": phone, "tags": ["vip"], "optIn": granted, **fields})
    assert answer.status == 201, answer.body
    denied = {"status": "denied", "source": "telefone", "revokedReason": "ligou"}
    assert (await api.patch(f"/contacts/{answer.body['id']}", {"optIn": denied})).status == 200
    return str(answer.body["id"])


async def told(api: Api, contact_id: str) -> list[dict[str, Any]]:
    """What the stored events of a contact say, oldest first."""
    rows = await api.database.fetch("select data from events where data ->> 'id' = $1 order by id", contact_id)
    return [orjson.loads(row["data"]) for row in rows]


async def a_number(api: Api) -> str:
    """The id of a number that its provider tells of."""
    return str((await api.get("/numbers")).body["items"][0]["id"])


async def delete(api: Api, contact_id: str) -> None:
    """Delete a contact, and wait until whatever it left was looked through."""
    assert (await api.delete(f"/contacts/{contact_id}")).status == 204
    looked = "select true from contact_erasures where contact_id = $1 and after_id = ' '"
    await until(lambda: api.database.fetchval(looked, contact_id), "what the contact left is looked through")


async def test_events_of_a_deleted_contact_keep_its_id_and_their_moments_but_nothing_that_it_was_given(
    api: Api,
) -> None:
    await subscribe(api)
    contact_id, other = await made(api, externalId="crm-7"), await made(api, OTHER, externalId="crm-8")
    created, granted, denied, opted_out = await told(api, contact_id)
    others = await told(api, other)

    await delete(api, contact_id)

    for event in (created, granted, denied, opted_out):
        assert event.pop("externalId") == "crm-7"
    assert (granted.pop("source"), denied.pop("source")) == ("landing page", "telefone")
    assert opted_out.pop("revokedReason") == "ligou"
    for event in (created, opted_out):
        assert event.pop("sealed").startswith("v1.")
        assert event["phone"] == MASKED
    created["tags"] = []
    assert await told(api, contact_id) == [created, granted, denied, opted_out]
    assert await told(api, other) == others


async def test_the_database_has_no_phone_in_an_event_that_subscriptions_are_told_with_it(api: Api) -> None:
    path = await subscribe(api)
    contact_id = await made(api)
    number = (await api.post("/v2/sandbox/numbers/" + await a_number(api), {"qualityRating": "yellow"})).body
    stored = [row["data"] for row in await api.database.fetch("select data from events order by id")]
    assert len(stored) == 5
    assert not [data for data in stored if PHONE[3:] in data or number["displayPhone"] in data]
    items = (await api.get(f"{path}/deliveries")).body["items"]
    shown = [(await api.get(f"{path}/deliveries/{item['id']}")).body["payload"]["data"] for item in items]
    assert shown[0]["displayPhone"] == number["displayPhone"]
    assert [data["phone"] for data in shown if "phone" in data] == [PHONE, PHONE]
    assert not [data for data in shown if "sealed" in data]
    # What fails authentication is shown to nobody.
    changed = "jsonb_set(data::jsonb, '{sealed}', '\"v1.test.AAAA\"')::json"
    await api.database.execute(f"update events set data = {changed} where data ->> 'id' = $1", contact_id)
    assert (await api.get(f"{path}/deliveries/{items[1]['id']}")).code == "INTERNAL_ERROR"


async def test_a_delivery_of_a_deleted_contact_shows_only_what_is_left_also_with_personal_data(api: Api) -> None:
    path = await subscribe(api)
    contact_id = await made(api, externalId="crm-7")
    items = (await api.get(f"{path}/deliveries?event=contact.created")).body["items"]
    delivery = f"{path}/deliveries/{items[0]['id']}"
    assert (await api.get(delivery)).body["payload"]["data"]["phone"] == PHONE

    await delete(api, contact_id)

    data = (await api.get(delivery)).body["payload"]["data"]
    assert (data["id"], data["phone"], data["tags"], "externalId" in data) == (contact_id, MASKED, [], False)


@pytest.mark.parametrize("type", ["contact.created", "contact.consent_changed", "contact.opted_out"])
def test_what_is_left_of_an_event_is_left_when_details_are_taken_out_again(type: str) -> None:  # noqa: A002
    data: dict[str, Any] = {"id": "cnt_1", "externalId": "e", "source": "s", "phone": PHONE, "sealed": "v1.k1.x"}
    data |= {"tags": ["a"], "revokedReason": "r"}
    once = without_details(type, data)
    assert once != data
    assert "sealed" not in once
    assert without_details(type, once) == once
