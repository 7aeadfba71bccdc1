"""Push over HTTP: apps, devices, and messages until they leave (C22)."""

import asyncio
import base64
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.http.conftest import ADMIN_TOKEN
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.services.contacts.contact_erasure import ContactErasure
from recado.services.effects.consequences import Consequences
from recado.services.push.app_removals import PushAppRemovals
from recado.storage.push import apps, devices

APPS, TOKENS, MESSAGES = "/v2/push/apps", "/v2/push/tokens", "/v2/push/messages"
ALL = ["ios", "android", "web"]
SIMPLE = {"title": "Hello", "body": "There is news."}


def key() -> dict[str, str]:
    return {"Idempotency-Key": os.urandom(8).hex()}


def pem(made: Any) -> str:
    return str(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def browser() -> dict[str, str]:
    """The keys of a browser."""
    point = (
        ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    )
    return {name: base64.urlsafe_b64encode(value).decode().rstrip("=") for name, value in (
        ("p256dh", point), ("auth", os.urandom(16)),
    )}  # fmt: skip


async def app(api: Any, **more: Any) -> str:
    answer = await api.post(APPS, {"name": "Shop", "platforms": ALL, **more})
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def register(api: Any, app_id: str, token: str, **more: Any) -> Any:
    answer = await api.post(TOKENS, {"appId": app_id, "token": token, "platform": "android", **more})
    assert answer.status == 200, answer.body
    return answer.body


async def send(api: Any, body: dict[str, Any], **how: Any) -> Any:
    return await api.post(
        MESSAGES, {"platforms": ALL, "segment": "all_opt_in", **SIMPLE, **body}, **{"headers": key(), **how}
    )


async def sent(api: Any, body: dict[str, Any] | None = None, **how: Any) -> Any:
    answer = await send(api, body or {}, **how)
    assert answer.status == 201, answer.body
    return answer.body


# Apps ---------------------------------------------------------------------------------------------------------------


async def test_an_app_shows_its_public_key_and_never_its_credentials(api: Any) -> None:
    secret = pem(rsa.generate_private_key(65_537, 2_048))
    account = {"project_id": "shop-1", "client_email": "push@shop-1.example.com", "private_key": secret}
    apns = {
        "keyId": "ABC",
        "teamId": "DEF",
        "bundleId": "com.example.shop",
        "privateKey": pem(ec.generate_private_key(ec.SECP256R1())),
    }
    made = await api.post(
        APPS, {"name": "Shop", "platforms": ALL, "credentials": {"serviceAccount": account, "apns": apns}}
    )
    assert made.status == 201
    assert made.body["hasCredentials"] is True
    assert len(base64.urlsafe_b64decode(made.body["vapidPublicKey"] + "=")) == 65
    assert set(made.body) == {"id", "name", "platforms", "hasCredentials", "vapidPublicKey", "createdAt"}
    stored = await api.database.fetchrow("select * from push_apps where id = $1", made.body["id"])
    assert "PRIVATE KEY" not in str(dict(stored))
    path = f"{APPS}/{made.body['id']}"
    assert (await api.get(path)).body == made.body
    changed = await api.patch(path, {"name": "Other", "credentials": None})
    assert (changed.body["name"], changed.body["hasCredentials"]) == ("Other", False)
    assert changed.body["vapidPublicKey"] == made.body["vapidPublicKey"]
    assert (await api.delete(path)).status == 204
    assert (await api.get(path)).status == 404


@pytest.mark.parametrize(
    ("credentials", "path"),
    [
        ({"serviceAccount": {"project_id": "a", "client_email": "a@b", "private_key": "secret"}}, "private_key"),
        ({"serviceAccount": {"project_id": "../a", "client_email": "a@b", "private_key": "x"}}, "project_id"),
        ({"apns": {"keyId": "a\r\nb", "teamId": "b", "bundleId": "c", "privateKey": "x"}}, "keyId"),
        ({"apns": {"keyId": "a", "teamId": "b", "bundleId": "c", "privateKey": "secret"}}, "privateKey"),
    ],
)
async def test_credentials_that_are_none_are_refused_and_not_repeated(api: Any, credentials: Any, path: str) -> None:
    answer = await api.post(APPS, {"name": "Shop", "platforms": ALL, "credentials": credentials})
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert any(error["path"].endswith(path) for error in answer.body["errors"])
    assert "secret" not in str(answer.body)


async def test_an_environment_has_twenty_apps_at_most(api: Any) -> None:
    for _ in range(20):
        await app(api)
    refused = await api.post(APPS, {"name": "Shop", "platforms": ALL})
    assert (refused.status, refused.code) == (409, "LIMIT_REACHED")


async def test_an_app_stays_while_a_message_is_to_leave(api: Any) -> None:
    app_id = await app(api)
    await register(api, app_id, "token")
    message = await sent(api)
    refused = await api.delete(f"{APPS}/{app_id}")
    assert (refused.status, refused.code) == (409, "RESOURCE_IN_USE")
    await api.post(f"{MESSAGES}/{message['id']}/cancel")
    assert (await api.delete(f"{APPS}/{app_id}")).status == 204
    assert (await api.get("/v2/push/devices")).body["total"] == 0


async def test_the_devices_of_a_deleted_app_go_in_blocks_and_nobody_sends_to_them(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apps, "LOOKED_AT_ONCE", 2)
    gone, stays = await app(api), await app(api)
    for n in range(7):
        for app_id in (gone, stays):
            await register(api, app_id, f"token {n}")
    assert (await api.delete(f"{APPS}/{gone}")).status == 204
    preview = await api.post("/v2/push/preview", {"platforms": ALL, "segment": "all_opt_in"})
    assert preview.body["reach"] == 7
    removals = PushAppRemovals(api.database, clock=SystemClock())
    await removals.work()
    left = await api.database.fetch("select app_id, count(*) from push_devices group by app_id")
    assert [tuple(row) for row in left] == [(stays, 7)]
    assert await api.database.fetchval("select count(*) from push_app_removals") == 0


# Devices ------------------------------------------------------------------------------------------------------------


async def test_a_device_is_registered_once_and_keeps_what_is_left_out(api: Any) -> None:
    app_id = await app(api)
    first = await register(api, app_id, "token", externalId="ana", userName="Ana", topics=["news"])
    assert (first["created"], first["status"], first["optedIn"], first["topics"]) == (
        True,
        "registered",
        True,
        ["news"],
    )
    api.clock.shift(10)
    again = await api.post(TOKENS, {"appId": app_id, "token": "token"})
    assert again.body == {**first, "created": False}
    (listed,) = (await api.get("/v2/push/devices")).body["items"]
    assert (listed["externalId"], listed["userName"], listed["platform"]) == ("ana", "Ana", "android")


async def test_an_opt_out_holds_until_the_app_says_otherwise(api: Any) -> None:
    app_id = await app(api)
    device = await register(api, app_id, "token")
    out = await api.post(f"{TOKENS}/opt-out", {"appId": app_id, "token": "token"})
    assert (out.status, out.body["id"], out.body["status"]) == (200, device["id"], "opted_out")
    api.clock.shift(5)
    assert (await api.post(f"{TOKENS}/opt-out", {"appId": app_id, "token": "token"})).body == out.body
    assert (await register(api, app_id, "token"))["status"] == "opted_out"
    sums = (await api.get("/v2/push/devices/summary")).body["items"]
    assert {each["platform"]: each["optedOut"] for each in sums} == {"ios": 0, "android": 1, "web": 0}
    assert (await send(api, {})).code == "EMPTY_AUDIENCE"
    assert (await register(api, app_id, "token", optedIn=True))["status"] == "registered"
    assert (await sent(api))["reach"] == 1


async def test_a_device_is_linked_to_its_contact(api: Any) -> None:
    app_id = await app(api)
    ana = (await api.post("/contacts", {"phone": "+5511987650001", "externalId": "ana"})).body["id"]
    bia = (await api.post("/contacts", {"phone": "+5511987650002", "externalId": "bia"})).body["id"]
    assert (await register(api, app_id, "token", externalId="ana"))["contactId"] == ana
    assert (await register(api, app_id, "token", contactId=bia))["contactId"] == bia
    listed = (await api.get(f"/v2/push/devices?contactId={bia}")).body["items"]
    assert [each["contactId"] for each in listed] == [bia]
    assert (
        await api.post(TOKENS, {"appId": app_id, "token": "t", "platform": "ios", "contactId": "cnt_" + "0" * 21})
    ).status == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"token": "t", "platform": "ios"}, 400, "BAD_REQUEST"),
        ({"token": "t"}, 400, "BAD_REQUEST"),
        ({"token": "t" * 4_097, "platform": "ios"}, 400, "BAD_REQUEST"),
        ({"token": "t", "platform": "fax"}, 400, "BAD_REQUEST"),
        ({"token": "t", "platform": "web"}, 400, "WEB_PUSH_KEYS_REQUIRED"),
        ({"token": "t", "platform": "web", "auth": "AAAAAAAAAAAAAAAAAAAAAA"}, 400, "WEB_PUSH_KEYS_REQUIRED"),
        ({"token": "t", "platform": "web", "p256dh": "short", "auth": "AAAAAAAAAAAAAAAAAAAAAA"}, 400, "BAD_REQUEST"),
        ({"token": "t", "platform": "ios", "topics": ["a"] * 51}, 400, "BAD_REQUEST"),
        ({"appId": "app_" + "0" * 21, "token": "t", "platform": "ios"}, 404, "NOT_FOUND"),
        ({"token": "t\x00", "platform": "ios"}, 422, "INVALID_CHARACTER"),
    ],
)
async def test_a_registration_that_lacks_something_is_refused(api: Any, body: Any, status: int, code: str) -> None:
    app_id = await app(api, platforms=["android", "web"])
    answer = await api.post(TOKENS, {"appId": app_id, **body})
    assert (answer.status, answer.code) == (status, code)
    assert (await api.get("/v2/push/devices")).body["total"] == 0


async def test_a_key_inside_an_app_registers_and_sends_nothing(api: Any) -> None:
    app_id = await app(api)
    token = await api.key("push:register")
    body = {"appId": app_id, "token": "token", "platform": "ios"}
    assert (await api.call("POST", TOKENS, body, token=token)).status == 200
    assert (await api.call("POST", MESSAGES, {}, token=token, headers=key())).code == "SCOPE_REQUIRED"
    assert (await api.call("GET", "/v2/push/devices", token=token)).code == "SCOPE_REQUIRED"


async def test_a_contact_that_is_deleted_leaves_a_device_without_a_name(api: Any) -> None:
    app_id = await app(api)
    ana = (await api.post("/contacts", {"phone": "+5511987650001", "externalId": "ana"})).body["id"]
    await register(api, app_id, "token", externalId="ana", userName="Ana", userEmail="ana@example.com")
    assert (await api.delete(f"/contacts/{ana}")).status == 204
    (device,) = (await api.get("/v2/push/devices")).body["items"]
    assert {"contactId", "externalId", "userName", "userEmail", "userPhone"} & set(device) == set()


async def test_devices_of_a_contact_that_refused_have_opted_out_when_it_is_deleted(api: Any) -> None:
    app_id = await app(api)
    ana = (await api.post("/contacts", {"phone": "+5511987650001"})).body["id"]
    bia = (await api.post("/contacts", {"phone": "+5511987650002"})).body["id"]
    of_ana = (await register(api, app_id, "ana", contactId=ana))["id"]
    of_bia = (await register(api, app_id, "bia", contactId=bia))["id"]
    await api.post("/contacts/opt-out", {"contactId": ana})
    for each in (ana, bia):
        assert (await api.delete(f"/contacts/{each}")).status == 204
    found = {each["id"]: each for each in (await api.get("/v2/push/devices")).body["items"]}
    assert {each: found[each]["status"] for each in found} == {of_ana: "opted_out", of_bia: "registered"}
    assert "optedOutAt" in found[of_ana]
    assert (await register(api, app_id, "ana"))["status"] == "opted_out"


async def test_the_refusal_of_a_deleted_contact_outlives_it_for_devices_that_are_unlinked_later(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "UNLINKED_AT_ONCE", 1)
    app_id = await app(api)
    ana = (await api.post("/contacts", {"phone": "+5511987650001"})).body["id"]
    for token in ("one", "two", "three"):
        await register(api, app_id, token, contactId=ana)
    await api.post("/contacts/opt-out", {"contactId": ana})
    assert (await api.delete(f"/contacts/{ana}")).status == 204
    await ContactErasure(api.database, effects=Consequences(), clock=SystemClock()).work()
    found = (await api.get("/v2/push/devices")).body["items"]
    assert [(each["status"], "contactId" in each) for each in found] == [("opted_out", False)] * 3


async def test_a_list_shows_no_message_beyond_retention(api: Any) -> None:
    await register(api, await app(api), "token")
    made = await sent(api)
    assert [each["id"] for each in (await api.get(MESSAGES)).body["items"]] == [made["id"]]
    api.clock.shift(timedelta(days=24 * 31).total_seconds())
    assert (await api.get(MESSAGES)).body["items"] == []


async def test_a_contact_is_reached_by_push_while_one_of_its_devices_is_registered(api: Any) -> None:
    ana = (await api.post("/contacts", {"phone": "+5511987650001", "externalId": "ana"})).body["id"]
    bia = (await api.post("/contacts", {"phone": "+5511987650002"})).body["id"]
    app_id, other_app = await app(api), await app(api, name="Other")

    async def reached(operator: str = "is", value: Any = "push") -> list[str]:
        condition = {"field": "channel", "operator": operator, "value": value}
        preview = await api.post("/v2/segments/preview", {"filters": [condition]})
        assert preview.body["count"] == len(preview.body["sampleContactIds"])
        return sorted(preview.body["sampleContactIds"])

    assert await reached() == []
    await register(api, app_id, "phone", contactId=ana)
    await register(api, other_app, "tablet", externalId="ana")
    await register(api, app_id, "nobody")
    await register(api, app_id, "out", contactId=bia, optedIn=False)
    assert await reached() == await reached("in", ["push"]) == [ana]
    assert await reached("is_not") == [bia]
    assert await reached("in", ["push", "sms"]) == sorted([ana, bia])
    await register(api, app_id, "phone")  # at each start of the app
    await api.post(f"{TOKENS}/opt-out", {"appId": app_id, "token": "phone"})
    await api.post(f"{TOKENS}/opt-out", {"appId": app_id, "token": "phone"})
    assert await reached() == [ana]
    await register(api, other_app, "tablet", contactId=bia)
    assert await reached() == [bia]
    assert (await api.delete(f"{APPS}/{other_app}")).status == 204
    assert await reached() == []
    await register(api, app_id, "phone", optedIn=True)
    assert await reached() == [ana]


async def test_a_deletion_waits_for_devices_before_it_has_its_contact(api: Any) -> None:
    ana = (await api.post("/contacts", {"phone": "+5511987650001"})).body["id"]
    device = await register(api, await app(api), "token", contactId=ana)
    async with api.database.transaction() as connection:
        await connection.execute("select from push_devices where id = $1 for no key update", device["id"])
        deletion = asyncio.create_task(api.delete(f"/contacts/{ana}"))
        mine = await connection.fetchval("select pg_backend_pid()")
        waits = "select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))"

        async def it_waits() -> bool:
            return bool(await api.database.fetchval(waits, mine))

        await until(it_waits, "the deletion waits")
        # As a commit does that has the device, and counts it for the contact.
        await connection.execute("select from contacts where id = $1 for no key update nowait", ana)
    assert (await deletion).status == 204


async def test_who_may_not_see_addresses_sees_them_masked(api: Any) -> None:
    app_id = await app(api)
    await register(api, app_id, "token", userEmail="ana@example.com", userPhone="+5511987650001")
    token = await api.key("push:read")
    (shown,) = (await api.call("GET", "/v2/push/devices", token=token)).body["items"]
    assert (shown["userEmail"], shown["userPhone"]) == ("a***@example.com", "+55*******0001")


# Messages -----------------------------------------------------------------------------------------------------------


async def test_a_message_fixes_its_audience_and_holds_its_price(api: Any) -> None:
    app_id = await app(api)
    for number in range(3):
        await register(api, app_id, f"token {number}")
    await register(api, app_id, "page", platform="web", **browser())
    before = (await api.get("/v2/wallet")).body["heldCoins"]
    made = await sent(api, {"campaignId": "Black Friday"})
    assert made["id"].startswith("psh_")
    assert {name: made[name] for name in ("status", "origin", "rateKind", "unitCoins", "reach", "replayed")} == {
        "status": "queued", "origin": "api", "rateKind": "simple", "unitCoins": 4, "reach": 4, "replayed": False,
    }  # fmt: skip
    assert made["breakdown"] == {"ios": {"reach": 0}, "android": {"reach": 3}, "web": {"reach": 1}}
    assert made["billing"] == {"heldCoins": 16}
    assert (await api.get("/v2/wallet")).body["heldCoins"] == before + 16
    await register(api, app_id, "late")
    read = (await api.get(f"{MESSAGES}/{made['id']}")).body
    assert read["metrics"] == {"reach": 4, "delivered": 0, "opened": 0, "failed": 0, "unregistered": 0}
    assert (read["breakdown"]["android"]["reach"], read["chargedCoins"], read["campaignId"]) == (3, 0, "Black Friday")
    listed = (await api.get(MESSAGES)).body
    assert [each["id"] for each in listed["items"]] == [made["id"]]
    assert "breakdown" not in listed["items"][0]


async def test_a_repeat_under_its_key_is_the_same_message(api: Any) -> None:
    await register(api, await app(api), "token")
    header = key()
    first = await sent(api, headers=header)
    again = await send(api, {}, headers=header)
    assert again.body == {**first, "replayed": True}
    assert again.headers["Idempotency-Replayed"] == "true"
    other = await send(api, {"title": "Other"}, headers=header)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    without = await send(api, {}, headers={})
    assert (without.status, without.code) == (400, "IDEMPOTENCY_KEY_REQUIRED")


async def test_an_audience_is_named_by_ids_tokens_or_a_segment(api: Any) -> None:
    app_id = await app(api)
    one = await register(api, app_id, "one")
    await register(api, app_id, "two", platform="ios")
    contact = (await api.post("/contacts", {"phone": "+5511987650001", "tags": ["vip"]})).body["id"]
    await register(api, app_id, "three", contactId=contact)
    segment = await api.post(
        "/v2/segments", {"name": "vips", "filters": [{"field": "tag", "operator": "is", "value": "vip"}]}
    )
    by_tokens = await sent(api, {"segment": None, "tokenIds": [one["id"], "two", "one", "nobody"]})
    assert by_tokens["reach"] == 2
    assert (await sent(api, {"segment": segment.body["id"]}))["reach"] == 1
    assert (await sent(api, {"platforms": ["ios"]}))["reach"] == 1
    await api.post("/contacts/opt-out", {"contactId": contact})
    assert (await send(api, {"segment": segment.body["id"]})).code == "EMPTY_AUDIENCE"
    assert (await sent(api))["reach"] == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"tokenIds": ["a"]}, "AUDIENCE_INVALID"),
        ({"segment": None}, "AUDIENCE_INVALID"),
        ({"segment": "seg_" + "0" * 21}, "REFERENCE_NOT_FOUND"),
        ({"segment": "nonsense"}, "REFERENCE_NOT_FOUND"),
        ({"title": None}, "VALIDATION_ERROR"),
        ({"title": None, "body": None}, "VALIDATION_ERROR"),
        ({"title": "a" * 101}, "VALIDATION_ERROR"),
        ({"platforms": []}, "VALIDATION_ERROR"),
        ({"platforms": ["fax"]}, "VALIDATION_ERROR"),
        ({"deepLink": "javascript:alert(1)"}, "VALIDATION_ERROR"),
        ({"imageUrl": "http://example.com/a.png"}, "VALIDATION_ERROR"),
        ({"imageUrl": "https://example.com:0/a.png"}, "VALIDATION_ERROR"),
        ({"deepLink": "https://a..example/"}, "VALIDATION_ERROR"),
        ({"actions": [{"label": "a"}] * 4}, "VALIDATION_ERROR"),
        ({"data": {"a": {"b": 1}}}, "METADATA_INVALID"),
        ({"scheduledAt": "2999-01-01T00:00:00Z"}, "SCHEDULE_TOO_FAR"),
        ({"tokenIds": ["a"] * 10_001, "segment": None}, "VALIDATION_ERROR"),
        ({"tokenIds": [], "segment": None}, "EMPTY_AUDIENCE"),
    ],
)
async def test_a_message_that_is_wrong_is_refused_and_leaves_nothing(api: Any, body: Any, code: str) -> None:
    await register(api, await app(api), "token")
    header = key()
    answer = await send(api, body, headers=header)
    assert (answer.status, answer.code) == (422, code)
    assert (await api.get(MESSAGES)).body["items"] == []
    assert await api.database.fetchval("select count(*) from push_blocks") == 0
    assert (await send(api, {}, headers=header)).status == 201  # the key is free


async def test_what_the_wallet_does_not_cover_is_refused(api: Any) -> None:
    await register(api, await app(api), "token")
    await api.database.execute("update wallets set balance_coins = 3 where env = 'test'")
    answer = await send(api, {})
    assert (answer.status, answer.code) == (402, "PAYMENT_REQUIRED")
    assert answer.body["meta"] == {"requiredCoins": 4, "availableCoins": 3}
    assert await api.database.fetchval("select count(*) from push_messages") == 0


async def test_quiet_hours_defer_what_is_shown(api: Any) -> None:
    await register(api, await app(api), "token")
    await api.database.execute("update organizations set quiet_start = '00:00', quiet_end = '23:59', time_zone = 'UTC'")
    api.directories.organizations.forget(api.organizations[0].organization.id)
    made = await sent(api)
    assert made["status"] == "scheduled"
    assert datetime.fromisoformat(made["quietDeferredTo"]).strftime("%H:%M") == "23:59"
    assert (await sent(api, {"title": None, "body": None, "data": {"sync": True}}))["status"] == "queued"
    preview = await api.post("/v2/push/preview", {"platforms": ALL, "segment": "all_opt_in"})
    assert preview.body["quietDeferredTo"] == made["quietDeferredTo"]


async def test_a_message_is_canceled_until_it_leaves(api: Any) -> None:
    await register(api, await app(api), "token")
    before = (await api.get("/v2/wallet")).body["heldCoins"]
    later = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    made = await sent(api, {"scheduledAt": later})
    assert made["status"] == "scheduled"
    path = f"{MESSAGES}/{made['id']}/cancel"
    canceled = await api.post(path)
    assert (canceled.status, canceled.body["status"]) == (200, "canceled")
    assert (await api.get("/v2/wallet")).body["heldCoins"] == before
    again = await api.post(path)
    assert (again.status, again.code, again.body["meta"]) == (409, "INVALID_STATE", {"status": "canceled"})
    (device,) = (await api.get(f"{MESSAGES}/{made['id']}/dispatches")).body["items"]
    assert device["status"] == "failed"


async def test_devices_of_a_message_are_paged_and_opened_once_delivered(api: Any) -> None:
    app_id = await app(api)
    for number in range(5):
        await register(api, app_id, f"token {number}")
    await register(api, app_id, "page", platform="ios")
    made = await sent(api)
    path = f"{MESSAGES}/{made['id']}/dispatches"
    first = (await api.get(f"{path}?limit=4")).body
    second = (await api.get(f"{path}?limit=4&cursor={first['nextCursor']}")).body
    assert "nextCursor" not in second
    devices = first["items"] + second["items"]
    assert len({each["id"] for each in devices}) == len({each["deviceId"] for each in devices}) == 6
    assert [each["id"] for each in devices] == sorted((each["id"] for each in devices), reverse=True)
    assert {each["status"] for each in devices} == {"queued"}
    other = await sent(api)
    foreign = await api.get(f"{MESSAGES}/{other['id']}/dispatches?limit=4&cursor={first['nextCursor']}")
    assert foreign.code == "INVALID_CURSOR"

    opened = f"/v2/push/dispatches/{devices[0]['id']}/opened"
    assert (await api.post(opened)).body == {"id": devices[0]["id"], "counted": False}
    guessed = devices[0]["id"][:-1] + ("0" if devices[0]["id"][-1] != "0" else "1")
    assert (await api.post(f"/v2/push/dispatches/{guessed}/opened")).status == 404


async def test_in_a_suspended_organization_devices_opt_out_and_messages_lose_no_time(api: Any) -> None:
    token, organization_id = {"appId": await app(api), "token": "one"}, api.organizations[0].organization.id
    await register(api, token["appId"], "one")
    message = await sent(api)
    due = "select due_at from push_messages where id = $1"
    before = await api.database.fetchval(due, message["id"])
    path = f"/v2/admin/organizations/{organization_id}"
    api.clock.shift(30)
    await api.patch(path, {"status": "suspended"}, token=ADMIN_TOKEN)
    assert (await api.post(TOKENS, {**token, "optedIn": True})).code == "ORGANIZATION_SUSPENDED"
    assert (await api.post(TOKENS, token)).code == "ORGANIZATION_SUSPENDED"
    other = await api.post(TOKENS, {**token, "token": "two", "platform": "android", "optedIn": False})
    assert (other.status, other.body["status"]) == (200, "opted_out")
    assert (await api.post(TOKENS, {**token, "optedIn": False})).body["status"] == "opted_out"
    assert (await api.post(f"{TOKENS}/opt-out", token)).body["status"] == "opted_out"
    api.clock.shift(7_200)
    await api.patch(path, {"dedicatedSender": "29000"}, token=ADMIN_TOKEN)
    assert await api.database.fetchval(due, message["id"]) == before
    await api.patch(path, {"status": "active"}, token=ADMIN_TOKEN)
    stood_still = await api.database.fetchval(due, message["id"]) - before
    assert timedelta(seconds=7_200) <= stood_still < timedelta(seconds=7_230)


async def test_what_a_suspension_held_waits_for_the_end_of_quiet_hours(api: Any) -> None:
    await register(api, await app(api), "token")
    shown, silent = await sent(api), await sent(api, {"title": None, "body": None, "data": {"sync": True}})
    begun = await sent(api)
    await api.database.execute("update push_messages set status = 'sending' where id = $1", begun["id"])
    organization_id = api.organizations[0].organization.id
    path = f"/v2/admin/organizations/{organization_id}"
    await api.patch(path, {"status": "suspended"}, token=ADMIN_TOKEN)
    await api.database.execute("update organizations set quiet_start = '00:00', quiet_end = '23:59', time_zone = 'UTC'")
    api.clock.shift(60)
    await api.patch(path, {"status": "active"}, token=ADMIN_TOKEN)
    found = (await api.get(f"{MESSAGES}/{shown['id']}")).body
    assert (found["status"], found["quietDeferredTo"][11:16]) == ("scheduled", "23:59")
    rows = await api.database.fetch(
        "select message_id, ready, due_at = quiet_deferred_to as deferred"
        " from push_blocks b join push_messages m on m.id = b.message_id"
    )
    assert {row["message_id"]: (row["ready"], row["deferred"]) for row in rows} == {
        shown["id"]: (False, True), silent["id"]: (True, None), begun["id"]: (True, None),
    }  # fmt: skip
    assert (await api.get(f"{MESSAGES}/{silent['id']}")).body["status"] == "queued"


async def test_a_preview_stores_nothing(api: Any) -> None:
    await register(api, await app(api), "token")
    body = {"platforms": ALL, "segment": "all_opt_in", "imageUrl": "https://example.com/a.png"}
    found = await api.post("/v2/push/preview", body)
    assert found.status == 200
    assert {name: found.body[name] for name in ("reach", "rateKind", "unitCoins", "totalCoins", "charged")} == {
        "reach": 1, "rateKind": "rich", "unitCoins": 8, "totalCoins": 8, "charged": True,
    }  # fmt: skip
    neither = await api.post("/v2/push/preview", {"platforms": ALL})
    assert (neither.status, neither.code, neither.body["errors"][0]["path"]) == (400, "AUDIENCE_INVALID", "")
    both = await send(api, {"tokenIds": ["token"]})
    assert [each["path"] for each in both.body["errors"]] == ["/segment", "/tokenIds"]
    assert (await api.get(MESSAGES)).body["items"] == []


async def test_messages_are_listed_by_status_and_origin(api: Any) -> None:
    await register(api, await app(api), "token")
    made = [await sent(api) for _ in range(3)]
    await api.post(f"{MESSAGES}/{made[1]['id']}/cancel")
    queued = (await api.get(f"{MESSAGES}?status=queued&status=sending&origin=api")).body["items"]
    assert [each["id"] for each in queued] == [made[2]["id"], made[0]["id"]]
    assert (await api.get(f"{MESSAGES}?origin=composer")).body["items"] == []
    first = (await api.get(f"{MESSAGES}?limit=2")).body
    rest = (await api.get(f"{MESSAGES}?limit=2&cursor={first['nextCursor']}")).body
    assert [each["id"] for each in first["items"] + rest["items"]] == [each["id"] for each in reversed(made)]
    assert (await api.get(f"{MESSAGES}?status=lost")).status == 400
    backwards = await api.get(f"{MESSAGES}?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z")
    assert (backwards.status, backwards.code) == (422, "VALIDATION_ERROR")
