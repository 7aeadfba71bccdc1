"""API keys over HTTP (C24.4): what they may grant, how they end, and at once."""

from datetime import timedelta
from typing import Any

import pytest
from tests.http.conftest import CEILINGS

from recado.domain.core.timestamps import format_timestamp

NEW = {"name": "Shop", "scopes": ["messages:send", "messages:read"]}


async def issue(api: Any, **fields: Any) -> Any:
    answer = await api.post("/v2/api-keys", NEW | fields)
    assert answer.status == 201, answer.body
    return answer.body


async def works(api: Any, token: str) -> bool:
    answer = await api.get("/v2/organization", token=token)
    assert answer.status in (200, 401, 403)
    return bool(answer.status == 200)


async def test_a_key_is_issued_shown_once_and_works(api: Any) -> None:
    made = await issue(api, scopes=["org:read"], rateLimits={"read": {"perSecond": 2.5, "capacity": 7}})
    assert made["token"].startswith(made["prefix"])
    assert len(made["prefix"]) == 13
    assert (made["env"], made["status"], made["allowedIps"]) == ("test", "active", [])
    assert made["createdById"] == api.organizations[0].keys["test"][0].id
    used = await api.get("/v2/organization", token=made["token"])
    assert used.headers["RateLimit-Policy"] == '"read";q=7;w=3'
    read = await api.get(f"/v2/api-keys/{made['id']}")
    del made["token"]
    assert read.body == made
    assert made["rateLimits"] == {"read": {"perSecond": 2.5, "capacity": 7}}


async def test_keys_are_listed_newest_first_without_their_tokens(api: Any) -> None:
    ids = [(await issue(api, name=f"key {index}"))["id"] for index in range(3)]
    page = (await api.get("/v2/api-keys?limit=2&skip=1")).body
    assert page["total"] == 4
    assert [key["id"] for key in page["items"]] == [ids[1], ids[0]]
    assert all("token" not in key for key in page["items"])
    assert (await api.get("/v2/api-keys", env="live")).body["total"] == 1
    assert (await api.get("/v2/api-keys?limit=0")).status == 400
    assert (await api.get("/v2/api-keys?skip=x")).status == 400


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "/name"),
        ({"name": "x" * 81}, "/name"),
        ({"name": 5}, "/name"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["all"]}, "/scopes/0"),
        ({"scopes": ["contacts:pii"]}, "/scopes/0"),
        ({"scopes": ["accounts:read"]}, "/scopes/0"),
        ({"scopes": "org:read"}, "/scopes"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "/expiresAt"),
        ({"expiresAt": "2100-01-01T00:00:00"}, "/expiresAt"),
        ({"allowedIps": ["300.0.0.1"]}, "/allowedIps/0"),
        ({"allowedIps": ["10.0.0.0/8"] * 51}, "/allowedIps"),
        ({"rateLimits": {"read": {"perSecond": 0, "capacity": 1}}}, "/rateLimits/read/perSecond"),
        ({"rateLimits": {"login": {"perSecond": 1, "capacity": 1}}}, "/rateLimits/login"),
    ],
)
async def test_a_key_that_is_not_valid_is_not_made(api: Any, change: Any, path: str) -> None:
    answer = await api.post("/v2/api-keys", NEW | change)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == [path]
    assert (await api.get("/v2/api-keys")).body["total"] == 1


async def test_a_key_asks_for_no_more_than_the_ceiling(api: Any) -> None:
    refill, capacity = CEILINGS["send"]
    highest = {"perSecond": refill, "capacity": capacity}
    above = {"send": {"perSecond": refill + 0.5, "capacity": capacity + 1}, "read": {"perSecond": 1, "capacity": 1}}
    refused = await api.post("/v2/api-keys", NEW | {"rateLimits": above})
    assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")
    assert [(error["path"], error["code"]) for error in refused.body["errors"]] == [
        ("/rateLimits/send/perSecond", "OUT_OF_RANGE"),
        ("/rateLimits/send/capacity", "OUT_OF_RANGE"),
    ]
    assert "10,000" in refused.body["errors"][0]["message"]
    assert refused.body["meta"] == {"ceilings": {"send": highest}}
    assert (await api.get("/v2/api-keys")).body["total"] == 1
    assert (await issue(api, rateLimits={"send": highest}))["rateLimits"] == {"send": highest}


async def test_a_key_from_before_the_ceiling_works_below_it(api: Any) -> None:
    above = {"read": {"perSecond": 50_000, "capacity": 500_000}}
    by_key, by_operator = await issue(api, scopes=["org:read"]), await issue(api, scopes=["org:read"])
    await api.database.execute("update api_keys set rate_limits = $1 where name = 'Shop'", above)
    await api.database.execute("update api_keys set created_by_id = null where id = $1", by_operator["id"])
    policies = [
        (await api.get("/v2/organization", token=made["token"])).headers["RateLimit-Policy"]
        for made in (by_key, by_operator)
    ]
    assert policies == ['"read";q=10000;w=1', '"read";q=500000;w=10']
    assert (await api.get(f"/v2/api-keys/{by_key['id']}")).body["rateLimits"] == above


async def test_a_body_that_is_no_json_is_refused(api: Any) -> None:
    assert (await api.post("/v2/api-keys", raw=b"{")).code == "MALFORMED_JSON"
    plain = await api.post("/v2/api-keys", raw=b"{}", headers={"Content-Type": "text/plain"})
    assert (plain.status, plain.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert (await api.post("/v2/api-keys", raw=b"x" * 1_048_577)).status == 413


async def test_a_credential_grants_only_what_it_holds(api: Any) -> None:
    limited = await api.key("apikeys:write", "apikeys:read", "org:read")
    refused = await api.post("/v2/api-keys", NEW | {"scopes": ["org:read", "pii:full"]}, token=limited)
    assert (refused.status, refused.code, refused.body["meta"]) == (403, "SCOPE_ESCALATION", {"scopes": ["pii:full"]})
    assert (await api.post("/v2/api-keys", NEW | {"scopes": ["org:read"]}, token=limited)).status == 201


async def test_a_key_cannot_be_widened_or_taken_over_by_one_that_holds_less(api: Any) -> None:
    strong = await issue(api, scopes=["org:read", "pii:full"])
    limited = await api.key("apikeys:write", "org:write")
    path = f"/v2/api-keys/{strong['id']}"
    widened = await api.patch(path, {"scopes": ["org:read", "pii:full", "org:write", "audit:read"]}, token=limited)
    assert (widened.status, widened.body["meta"]) == (403, {"scopes": ["audit:read"]})
    assert (await api.patch(path, {"scopes": ["org:read", "pii:full", "org:write"]}, token=limited)).status == 200
    rotated = await api.post(path + "/rotate", token=limited)
    assert (rotated.status, rotated.code) == (403, "SCOPE_ESCALATION")
    assert await works(api, strong["token"])


async def test_a_key_is_not_let_out_of_its_bounds_by_one_that_holds_less(api: Any) -> None:
    now = api.clock.now()
    until = format_timestamp(now + timedelta(hours=1))
    bounds = {"expiresAt": until, "allowedIps": ["203.0.113.0/24", "198.51.100.0/24"]}
    strong = await issue(api, scopes=["org:read", "pii:full"], **bounds)
    limited = await api.key("apikeys:write", "org:read")
    path = f"/v2/api-keys/{strong['id']}"
    for wider in (
        {"expiresAt": None},
        {"expiresAt": format_timestamp(now + timedelta(hours=2))},
        {"allowedIps": None},
        {"allowedIps": []},
        {"allowedIps": ["203.0.113.0/24", "127.0.0.0/8"]},
    ):
        refused = await api.patch(path, wider, token=limited)
        assert (refused.status, refused.body["meta"]) == (403, {"scopes": ["pii:full"]}), wider
    narrower = {"expiresAt": format_timestamp(now + timedelta(minutes=30)), "allowedIps": ["203.0.113.0/24"]}
    assert (await api.patch(path, narrower, token=limited)).status == 200
    assert (await api.patch(path, {"expiresAt": None, "allowedIps": None})).status == 200


async def test_a_change_of_scopes_holds_at_once(api: Any) -> None:
    made = await issue(api, scopes=["org:read", "org:write"])
    assert await works(api, made["token"])
    changed = await api.patch(f"/v2/api-keys/{made['id']}", {"name": "Less", "scopes": ["org:write"]})
    assert (changed.body["name"], changed.body["scopes"]) == ("Less", ["org:write"])
    refused = await api.get("/v2/organization", token=made["token"])
    assert (refused.status, refused.code, refused.body["meta"]) == (
        403, "SCOPE_REQUIRED", {"requiredScope": "org:read"},
    )  # fmt: skip


async def test_absent_fields_of_a_patch_stay_and_null_clears(api: Any) -> None:
    until = format_timestamp(api.clock.now() + timedelta(hours=1))
    made = await issue(api, expiresAt=until, allowedIps=["10.1.2.3/8"])
    assert made["allowedIps"] == ["10.0.0.0/8"]
    path = f"/v2/api-keys/{made['id']}"
    kept = (await api.patch(path, {"name": "Other"})).body
    assert (kept["expiresAt"], kept["allowedIps"], kept["scopes"]) == (until, ["10.0.0.0/8"], sorted(NEW["scopes"]))
    cleared = (await api.patch(path, {"expiresAt": None, "allowedIps": None})).body
    assert "expiresAt" not in cleared
    assert cleared["allowedIps"] == []
    for body in ({"scopes": None}, {"name": None}, {"scopes": []}):
        assert (await api.patch(path, body)).status == 422


async def test_a_key_is_held_to_its_addresses(api: Any) -> None:
    made = await issue(api, scopes=["org:read"], allowedIps=["203.0.113.0/24"])
    refused = await api.get("/v2/organization", token=made["token"])
    assert (refused.status, refused.code) == (403, "IP_NOT_ALLOWED")
    await api.patch(f"/v2/api-keys/{made['id']}", {"allowedIps": ["127.0.0.0/8"]})
    assert await works(api, made["token"])


async def test_a_key_may_expire_at_the_very_end_of_time(api: Any) -> None:
    made = await issue(api, scopes=["org:read"], expiresAt="9999-12-31T23:59:59.9999999Z")
    assert (await api.get(f"/v2/api-keys/{made['id']}")).body["expiresAt"] == "9999-12-31T23:59:59.999Z"
    assert (await api.get("/v2/organization", token=made["token"])).status == 200


async def test_an_expired_key_says_so_and_can_be_given_more_time(api: Any) -> None:
    now = api.clock.now()
    made = await issue(api, scopes=["org:read"], expiresAt=format_timestamp(now + timedelta(minutes=1)))
    assert await works(api, made["token"])
    api.clock.shift(61)
    refused = await api.get("/v2/organization", token=made["token"])
    assert (refused.status, refused.code) == (401, "API_KEY_EXPIRED")
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    path = f"/v2/api-keys/{made['id']}"
    assert (await api.get(path)).body["status"] == "expired"
    assert (await api.post(path + "/rotate")).code == "INVALID_STATE"
    await api.patch(path, {"expiresAt": format_timestamp(now + timedelta(hours=1))})
    assert await works(api, made["token"])


async def test_a_revoked_key_ends_at_once_and_stays_readable(api: Any) -> None:
    made = await issue(api, scopes=["org:read"])
    assert await works(api, made["token"])
    path = f"/v2/api-keys/{made['id']}"
    assert (await api.delete(path)).status == 204
    refused = await api.get("/v2/organization", token=made["token"])
    assert (refused.status, refused.code) == (401, "API_KEY_REVOKED")
    assert (await api.get(path)).body["status"] == "revoked"
    assert (await api.delete(path)).status == 204
    for change in (api.patch(path, {"name": "Back"}), api.post(path + "/rotate")):
        answer = await change
        assert (answer.status, answer.code, answer.body["meta"]) == (409, "INVALID_STATE", {"status": "revoked"})


async def test_rotation_gives_a_new_token_and_a_grace_to_the_old_one(api: Any) -> None:
    made = await issue(api, scopes=["org:read"])
    rotated = await api.post(f"/v2/api-keys/{made['id']}/rotate", {"graceSeconds": 600})
    assert rotated.status == 200
    assert rotated.body["previousValidUntil"] > rotated.body["rotatedAt"]
    assert await works(api, made["token"])
    assert await works(api, rotated.body["token"])
    api.clock.shift(601)
    assert (await api.get("/v2/organization", token=made["token"])).code == "API_KEY_EXPIRED"
    assert await works(api, rotated.body["token"])


async def test_a_key_has_at_most_two_valid_tokens(api: Any) -> None:
    made = await issue(api, scopes=["org:read"])
    path = f"/v2/api-keys/{made['id']}/rotate"
    second = (await api.post(path)).body["token"]  # without a body: a day of grace
    third = (await api.post(path)).body["token"]
    assert [await works(api, token) for token in (made["token"], second, third)] == [False, True, True]
    fourth = (await api.post(path, {"graceSeconds": 0})).body
    assert "previousValidUntil" not in fourth
    assert [await works(api, token) for token in (second, third, fourth["token"])] == [False, False, True]


@pytest.mark.parametrize("grace", [-1, 604_801, "60", 1.5, None])
async def test_a_grace_out_of_bounds_rotates_nothing(api: Any, grace: Any) -> None:
    made = await issue(api, scopes=["org:read"])
    answer = await api.post(f"/v2/api-keys/{made['id']}/rotate", {"graceSeconds": grace})
    assert (answer.status, answer.body["errors"][0]["path"]) == (422, "/graceSeconds")
    assert "rotatedAt" not in (await api.get(f"/v2/api-keys/{made['id']}")).body


async def test_an_environment_holds_fifty_active_keys(api: Any) -> None:
    for _ in range(48):
        await api.key("org:read")
    last = await issue(api)
    refused = await api.post("/v2/api-keys", NEW)
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 50})
    assert (await api.post("/v2/api-keys", NEW, env="live")).status == 201
    await api.delete(f"/v2/api-keys/{last['id']}")
    await issue(api)


async def test_an_expired_key_returns_only_while_there_is_room(api: Any) -> None:
    old = await issue(api, expiresAt=format_timestamp(api.clock.now() + timedelta(minutes=1)))
    api.clock.shift(61)
    for _ in range(49):
        await api.key("org:read")
    assert (await api.patch(f"/v2/api-keys/{old['id']}", {"expiresAt": None})).code == "LIMIT_REACHED"
    assert (await api.patch(f"/v2/api-keys/{old['id']}", {"name": "Old"})).status == 200


async def test_a_repeated_request_issues_one_key_and_never_repeats_its_token(api: Any) -> None:
    once = {"Idempotency-Key": "first key"}
    first = await api.post("/v2/api-keys", NEW, headers=once)
    again = await api.post("/v2/api-keys", NEW, headers=once)
    assert (again.status, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert first.body.pop("token")
    assert again.body == first.body
    other = await api.post("/v2/api-keys", NEW | {"name": "Other"}, headers=once)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    stored = await api.database.fetchval("select body from idempotency")
    assert b"svc_test_" not in stored.replace(first.body["prefix"].encode(), b"")
    assert (await api.get("/v2/api-keys")).body["total"] == 2


async def test_the_life_of_a_key_is_in_the_audit(api: Any) -> None:
    made = await issue(api, scopes=["org:read"])
    path = f"/v2/api-keys/{made['id']}"
    await api.patch(path, {"scopes": ["org:read", "pii:full"]})
    await api.post(path + "/rotate", {"graceSeconds": 0})
    await api.delete(path)
    await api.delete(path)
    items = (await api.get(f"/v2/audit?targetId={made['id']}")).body["items"]
    assert [item["action"] for item in items] == [
        "api_key.revoke", "api_key.rotate", "pii_full.grant", "api_key.update", "api_key.create",
    ]  # fmt: skip
    assert items[3]["details"] == {"fields": ["scopes"], "scopesAdded": ["pii:full"]}
    assert items[0]["ip"] == "127.0.0.1"
    assert items[0]["requestId"].startswith("req_")
    assert made["token"] not in str(items)


async def test_the_last_use_of_a_key_is_recorded(api: Any) -> None:
    made = await issue(api, scopes=["org:read"])
    assert "lastUsedAt" not in (await api.get(f"/v2/api-keys/{made['id']}")).body
    assert await works(api, made["token"])
    await api.directories.keys.flush()
    assert (await api.get(f"/v2/api-keys/{made['id']}")).body["lastUsedAt"] >= made["createdAt"]
