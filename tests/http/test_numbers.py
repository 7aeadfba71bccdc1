"""Numbers over HTTP: registered, listed, changed and deleted (C14)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.http.conftest import ADMIN_TOKEN
from tests.http.registering import NEW, REFUSED, connected, register

from recado.channels.chatapp.account import details_of
from recado.domain.messages.changes import NumberChanged
from recado.services.senders.accounts import account_of
from recado.storage.batches.batch_rows import Recipients
from recado.storage.senders import numbers


async def test_a_number_is_registered_pending_with_its_defaults(api: Any) -> None:
    answer = await api.post("/numbers", NEW, env="live")
    assert answer.status == 201
    assert answer.etag == '"1"'
    number = answer.body
    assert number["id"].startswith("num_")
    assert number | {"id": "", "createdAt": "", "updatedAt": ""} == {
        "id": "",
        "organizationId": api.organizations[0].organization.id,
        "phoneNumberId": "pn-1",
        "businessAccountId": "ba-1",
        "displayPhone": "+5511987651234",
        "status": "pending",
        "qualityRating": "unknown",
        "messagingTier": "tier_250",
        "rateLimit": {"perSecond": 80, "perDay": 100_000},
        "meta": {"byo": False, "partnerRemovedAt": None, "partnerRemovedReason": None},
        "profile": {},
        "lastProviderSyncAt": None,
        "createdAt": "",
        "updatedAt": "",
    }
    assert (await api.get(f"/numbers/{number['id']}", env="live")).body == number
    assert api.changes == [NumberChanged(number["organizationId"], "live", number["id"])]


async def test_a_number_takes_what_was_given_about_it(api: Any) -> None:
    number = await register(
        api, byo=False, rateLimit={"perSecond": 1000}, profile={"about": "Hello", "website": "https://example.com"}
    )
    assert number["meta"]["byo"] is False
    assert number["rateLimit"] == {"perSecond": 1000, "perDay": 100_000}
    assert number["profile"] == {"about": "Hello", "website": "https://example.com"}


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"phoneNumberId": None}, "VALIDATION_ERROR", "/phoneNumberId"),
        ({"phoneNumberId": " "}, "VALIDATION_ERROR", "/phoneNumberId"),
        ({"businessAccountId": 5}, "VALIDATION_ERROR", "/businessAccountId"),
        ({"displayPhone": "911"}, "PHONE_INVALID", "/displayPhone"),
        ({"displayPhone": "5511987651234"}, "PHONE_INVALID", "/displayPhone"),
        ({"byo": "yes"}, "VALIDATION_ERROR", "/byo"),
        ({"rateLimit": {"perSecond": 0}}, "VALIDATION_ERROR", "/rateLimit/perSecond"),
        ({"rateLimit": {"perSecond": 1001}}, "VALIDATION_ERROR", "/rateLimit/perSecond"),
        ({"rateLimit": {"perDay": 10_000_001}}, "VALIDATION_ERROR", "/rateLimit/perDay"),
        ({"rateLimit": {"perSecond": None}}, "VALIDATION_ERROR", "/rateLimit/perSecond"),
        ({"profile": {"website": "javascript:alert(1)"}}, "VALIDATION_ERROR", "/profile/website"),
        ({"profile": {"about": "x" * 513}}, "VALIDATION_ERROR", "/profile/about"),
        ({"phoneNumberId": "a\0b"}, "INVALID_CHARACTER", "/phoneNumberId"),
    ],
)
async def test_a_number_that_is_not_valid_is_not_registered(api: Any, change: Any, code: str, path: str | None) -> None:
    answer = await api.post("/numbers", NEW | change, env="live")
    assert (answer.status, answer.code) == (422, code)
    assert [error["path"] for error in answer.body.get("errors", [])] == ([path] if path else [])
    assert (await api.get("/numbers", env="live")).body["total"] == 0


async def test_a_provider_number_belongs_to_one_organization_of_the_installation(api: Any) -> None:
    number = await register(api)
    field = {"field": "phoneNumberId"}
    for organization, meta in ((0, field | {"numberId": number["id"]}), (1, field)):
        taken = await api.post("/numbers", NEW, env="live", organization=organization)
        assert (taken.status, taken.code, taken.body["meta"]) == (409, "NUMBER_TAKEN", meta)
    writer = await api.key("numbers:write", env="live")
    assert (await api.post("/numbers", NEW, env="live", token=writer)).body["meta"] == field
    assert (await api.post("/numbers", NEW, env="test", organization=1)).status == 201
    assert (await api.delete(f"/numbers/{number['id']}", env="live")).status == 204
    assert (await api.post("/numbers", NEW, env="live", organization=1)).status == 201


async def test_only_the_administrator_says_that_a_number_is_the_customers_own(api: Any) -> None:
    refused = await api.post("/numbers", NEW | {"byo": True}, env="live")
    assert (refused.status, refused.code, refused.body["meta"]) == (403, "FORBIDDEN", {"field": "byo"})
    assert (await api.get("/numbers", env="live")).body["total"] == 0

    number = await register(api)
    await api.patch(f"/numbers/{number['id']}", {"byo": True}, env="live")
    assert (await api.get(f"/numbers/{number['id']}", env="live")).body["meta"]["byo"] is False
    path = f"/v2/admin/organizations/{number['organizationId']}/numbers/{number['id']}"
    assert (await api.patch(path, {"byo": True})).status == 401
    elsewhere = path.replace(number["organizationId"], api.organizations[1].organization.id)
    assert (await api.patch(elsewhere, {"byo": True}, token=ADMIN_TOKEN)).status == 404

    api.changes.clear()
    for _ in range(2):
        decided = await api.patch(path, {"byo": True}, token=ADMIN_TOKEN)
        assert (decided.status, decided.body["meta"]["byo"], decided.etag) == (200, True, '"2"')
        assert decided.body["displayPhone"] == "+55*******1234"
    assert api.changes == [NumberChanged(number["organizationId"], "live", number["id"])]
    assert (await api.get(f"/numbers/{number['id']}", env="live")).body["meta"]["byo"] is True
    entries = await api.database.fetch(
        "select actor_type, details from audit where target_id = $1 and action = 'number.update'", number["id"]
    )
    assert [tuple(entry) for entry in entries] == [("admin", {"byo": True})]


async def test_a_business_account_belongs_to_one_organization_until_its_last_number_goes(api: Any) -> None:
    first = await register(api)
    second = await register(api, phoneNumberId="pn-2")
    foreign = {**NEW, "phoneNumberId": "pn-3"}

    async def of_another() -> Any:
        return await api.post("/numbers", foreign, env="live", organization=1)

    taken = await of_another()
    assert (taken.status, taken.code, taken.body["meta"]) == (409, "NUMBER_TAKEN", {"field": "businessAccountId"})
    assert (await api.get("/numbers", env="live", organization=1)).body["total"] == 0
    assert (await api.post("/numbers", foreign, env="test", organization=1)).status == 201
    await api.delete(f"/numbers/{first['id']}", env="live")
    assert (await of_another()).status == 409
    await api.delete(f"/numbers/{second['id']}", env="live")
    assert (await of_another()).status == 201
    assert (await api.post("/numbers", NEW, env="live")).status == 409


async def test_two_organizations_that_want_a_business_account_at_once_are_one(api: Any) -> None:
    answers = await asyncio.gather(
        *(api.post("/numbers", {**NEW, "phoneNumberId": f"pn-{n}"}, env="live", organization=n % 2) for n in range(8))
    )
    assert sorted(answer.status for answer in answers) == [201] * 4 + [409] * 4
    owners = await api.database.fetch("select distinct organization_id from numbers where business_account_id = 'ba-1'")
    assert len(owners) == 1


async def test_two_that_register_a_number_at_once_get_one(api: Any) -> None:
    answers = await asyncio.gather(*(api.post("/numbers", NEW, env="live") for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409, 409]


async def test_the_access_token_is_kept_encrypted_and_never_returned(api: Any) -> None:
    number = await register(api, accessToken="EAAG-secret")
    assert "EAAG-secret" not in str(number)
    stored = await api.database.fetchval("select access_token_cipher from numbers where id = $1", number["id"])
    assert stored.startswith("v1.test.")
    record = await numbers.get(api.database, number["organizationId"], "live", number["id"])
    assert details_of(account_of(record, api.key_ring)).access_token == "EAAG-secret"
    assert "EAAG-secret" not in repr(account_of(record, api.key_ring))

    await api.patch(f"/numbers/{number['id']}", {"accessToken": None}, env="live")
    assert await api.database.fetchval("select access_token_cipher from numbers where id = $1", number["id"]) is None


async def test_test_keeps_no_access_token(api: Any) -> None:
    number = await register(api, env="test", accessToken="EAAG-secret")
    assert await api.database.fetchval("select access_token_cipher from numbers where id = $1", number["id"]) is None


async def test_the_phone_is_masked_without_the_scope(api: Any) -> None:
    number = await register(api)
    masking = await api.key("numbers:read", "numbers:write", env="live")
    path = f"/numbers/{number['id']}"
    assert (await api.get(path, token=masking)).body["displayPhone"] == "+55*******1234"
    assert (await api.get("/numbers", token=masking)).body["items"][0]["displayPhone"] == "+55*******1234"
    assert (await api.patch(path, {}, token=masking)).body["displayPhone"] == "+55*******1234"


async def test_a_repeat_is_masked_for_whoever_repeats(api: Any) -> None:
    once = {"Idempotency-Key": "number"}
    first = await api.post("/numbers", NEW, env="live", headers=once)
    masking = await api.key("numbers:write", env="live")
    again = await api.post("/numbers", NEW, token=masking, headers=once)
    assert (again.status, again.body["displayPhone"]) == (201, "+55*******1234")
    full = await api.post("/numbers", NEW, env="live", headers=once)
    assert full.body == first.body
    assert (await api.get("/numbers", env="live")).body["total"] == 1


async def test_numbers_are_listed_newest_first_and_filtered(api: Any) -> None:
    made = [await register(api, env="test", phoneNumberId=f"pn-{index}") for index in range(3)]
    page = (await api.get("/numbers?limit=2&skip=1")).body
    assert page["total"] == 4
    assert [number["id"] for number in page["items"]] == [made[1]["id"], made[0]["id"]]
    assert (await api.get("/numbers?status=pending")).body["total"] == 3
    assert (await api.get("/numbers?status=pending&qualityRating=green")).body == {"items": [], "total": 0}
    for query in ("status=open", "qualityRating=blue", "limit=201", "limit=1.5", "skip=-1", "skip=100001"):
        answer = await api.get(f"/numbers?{query}")
        assert (answer.status, answer.code) == (400, "INVALID_PARAMETER"), query


async def test_a_patch_changes_what_it_names_and_clears_what_is_null(api: Any) -> None:
    number = await register(api, profile={"about": "Hi", "email": "a@example.com"}, rateLimit={"perDay": 500})
    path = f"/numbers/{number['id']}"
    body = {"rateLimit": {"perSecond": 20}, "profile": {"about": None, "vertical": "retail"}}
    changed = (await api.patch(path, body, env="live")).body
    assert changed["rateLimit"] == {"perSecond": 20, "perDay": 500}
    assert changed["profile"] == {"email": "a@example.com", "vertical": "retail"}
    assert api.provider.asked_for("update_profile") == [{"email": "a@example.com", "vertical": "retail"}]
    assert (await api.patch(path, {"profile": None}, env="live")).body["profile"] == {}
    assert (await api.patch(path, {"rateLimit": {}}, env="live")).body["rateLimit"] == changed["rateLimit"]
    refused = await api.patch(path, {"rateLimit": None}, env="live")
    assert (refused.status, refused.body["errors"][0]["path"]) == (422, "/rateLimit")


async def test_a_profile_that_the_provider_does_not_take_is_not_stored(api: Any) -> None:
    number = await register(api)
    api.provider.failures["update_profile"] = REFUSED
    body = {"profile": {"about": "Hi"}, "rateLimit": {"perSecond": 7}}
    failed = await api.patch(f"/numbers/{number['id']}", body, env="live")
    assert (failed.status, failed.code) == (502, "DEPENDENCY_FAILED")
    assert (await api.get(f"/numbers/{number['id']}", env="live")).body == number


async def test_the_revision_guards_every_change(api: Any) -> None:
    path = f"/numbers/{(await connected(api))['id']}"
    now = (await api.get(path, env="live")).etag
    stale = {"If-Match": '"1"'}
    asked = len(api.provider.asked)
    for refused in (
        api.patch(path, {"profile": {"about": "x"}}, env="live", headers=stale),
        api.post(path + "/disconnect", env="live", headers=stale),
        api.delete(path, env="live", headers=stale),
    ):
        answer = await refused
        assert (answer.status, answer.code, answer.body["meta"]) == (412, "VERSION_MISMATCH", {"currentETag": now})
    assert len(api.provider.asked) == asked
    assert (await api.get(path, env="live", headers={"If-None-Match": now})).status == 304
    changed = await api.patch(path, {"rateLimit": {"perSecond": 3}}, env="live", headers={"If-Match": now})
    assert changed.status == 200
    assert changed.etag != now
    assert (await api.post("/numbers", NEW, headers={"If-Match": "*"})).status == 412


async def test_a_deleted_number_is_gone(api: Any) -> None:
    number = await register(api)
    path = f"/numbers/{number['id']}"
    api.changes.clear()
    assert (await api.delete(path, env="live")).status == 204
    assert api.changes == [NumberChanged(number["organizationId"], "live", number["id"])]
    for gone in (
        api.get(path, env="live"),
        api.patch(path, {}, env="live"),
        api.delete(path, env="live"),
        api.get(path + "/health", env="live"),
    ):
        assert (await gone).status == 404
    assert await api.database.fetchval("select count(*) from numbers where id = $1", number["id"]) == 1
    entry = (await api.get("/v2/audit?action=number.delete", env="live")).body["items"]
    assert [item["targetId"] for item in entry] == [number["id"]]


async def test_a_number_with_waiting_messages_is_not_deleted(api: Any) -> None:
    number = api.organizations[0].number
    now = api.clock.now()
    await api.database.execute(
        "insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at, "
        "held_base_ms, force) values ($1, $2, 'test', 'chatapp', $3, 1, 'single', $4, 1000, $5, 0, false)",
        number.organization_id, api.ids.new("msg_"), number.id, now, now + timedelta(hours=1),
    )  # fmt: skip
    refused = await api.delete(f"/numbers/{number.id}")
    assert (refused.status, refused.code) == (409, "RESOURCE_IN_USE")
    assert (await api.get(f"/numbers/{number.id}")).status == 200
    await api.database.execute("delete from dispatch")
    assert (await api.delete(f"/numbers/{number.id}")).status == 204


async def test_a_number_of_a_batch_that_is_not_made_yet_is_not_deleted(api: Any) -> None:
    number = api.organizations[0].number
    for status, is_open, blocks_left in (("completed", False, 1), ("running", True, 0), ("paused", True, 1)):
        await api.database.execute(
            "insert into batches (organization_id, env, id, channel, sender_id, type, class, status, requested, "
            "skipped, skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at) "
            "values ($1, 'test', $2, 'chatapp', $3, 'text', 2, $4, 1, 0, '{}', '[]', 1, 0, $5, $6, $7)",
            number.organization_id, api.ids.new("btc_"), number.id, status, blocks_left, is_open, api.clock.now(),
        )  # fmt: skip
    refused = await api.delete(f"/numbers/{number.id}")
    assert (refused.status, refused.code) == (409, "RESOURCE_IN_USE")
    await api.database.execute("update batches set blocks_left = 0 where status = 'paused'")
    assert (await api.delete(f"/numbers/{number.id}")).status == 204


async def test_a_number_that_a_resend_of_several_has_still_to_use_is_not_deleted(api: Any) -> None:
    number = api.organizations[0].number
    batch_id = api.ids.new("btc_")
    await api.database.execute(
        "insert into batches (organization_id, env, id, channel, type, class, status, requested, skipped, "
        "skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at) "
        "values ($1, 'test', $2, 'chatapp', 'text', 2, 'building', 2, 0, '{}', '[]', 1, 0, 1, true, $3)",
        number.organization_id, batch_id, api.clock.now(),
    )  # fmt: skip
    block = Recipients(
        ["+5511987650001", "+5511987650002"],
        [1, 2],
        [None, None],
        [None, None],
        sender_ids=[api.ids.new("num_"), number.id],
    )
    await api.database.execute(
        "insert into batch_blocks (organization_id, batch_id, number, recipients) values ($1, $2, 1, $3::json)",
        number.organization_id, batch_id, block.dump(),
    )  # fmt: skip
    refused = await api.delete(f"/numbers/{number.id}")
    assert (refused.status, refused.code) == (409, "RESOURCE_IN_USE")
    await api.database.execute("delete from batch_blocks")
    assert (await api.delete(f"/numbers/{number.id}")).status == 204
