"""The organization and the administrator's operations (C24.1)."""

import re
from typing import Any

import pytest
from tests.http.people import session

from recado.domain.messages.changes import OrganizationChanged

ADMIN = "the administrator of the tests"
NEW = {"name": "Third", "ownerEmail": "third@example.com"}


async def test_the_organization_is_read_with_its_defaults(api: Any) -> None:
    answer = await api.get("/v2/organization")
    assert answer.status == 200
    assert answer.body | {"createdAt": "", "updatedAt": ""} == {
        "id": api.organizations[0].organization.id,
        "name": "First",
        "status": "active",
        "timeZone": "America/Sao_Paulo",
        "country": "BR",
        "quietHours": None,
        "requireGrantedForMarketing": False,
        "hidePhoneHash": False,
        "optOutKeywords": [],
        "optInKeywords": [],
        "optOutReply": None,
        "dedicatedSender": None,
        "createdAt": "",
        "updatedAt": "",
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", answer.body["createdAt"])
    assert answer.headers["Cache-Control"] == "no-store"


async def test_settings_change_for_both_environments_and_are_told(api: Any) -> None:
    settings = {
        "name": " Loja ",
        "timeZone": "Europe/Lisbon",
        "country": "PT",
        "quietHours": {"start": "21:00", "end": "08:30"},
        "requireGrantedForMarketing": True,
        "hidePhoneHash": True,
        "optOutKeywords": ["basta"],
        "optInKeywords": ["quero"],
        "optOutReply": "Ok.",
        "dedicatedSender": "ignored",
        "status": "suspended",
    }
    answer = await api.patch("/v2/organization", settings)
    assert answer.status == 200
    live = (await api.get("/v2/organization", env="live")).body
    assert live == {name: value for name, value in answer.body.items() if name != "warnings"}
    assert [each["path"] for each in answer.body["warnings"]] == ["/dedicatedSender", "/status"]
    assert live["name"] == "Loja"
    assert live["quietHours"] == {"start": "21:00", "end": "08:30"}
    assert (live["dedicatedSender"], live["status"]) == (None, "active")
    assert api.changes == [OrganizationChanged(live["id"])]


async def test_an_absent_field_stays_and_null_clears(api: Any) -> None:
    await api.patch("/v2/organization", {"quietHours": {"start": "22:00", "end": "07:00"}, "optOutReply": "Ok."})
    kept = await api.patch("/v2/organization", {"name": "Other"})
    assert kept.body["quietHours"] == {"start": "22:00", "end": "07:00"}
    cleared = await api.patch("/v2/organization", {"quietHours": None, "optOutReply": None})
    assert cleared.body["quietHours"] is None
    assert cleared.body["optOutReply"] is None


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"name": None}, "/name"),
        ({"name": "  "}, "/name"),
        ({"name": 7}, "/name"),
        ({"timeZone": "Mars/Olympus"}, "/timeZone"),
        ({"timeZone": "../../etc/passwd"}, "/timeZone"),
        ({"country": "Brazil"}, "/country"),
        ({"quietHours": {"start": "24:00", "end": "07:00"}}, "/quietHours/start"),
        ({"quietHours": {"start": "07:00", "end": "07:00"}}, "/quietHours"),
        ({"quietHours": {"start": "07:00"}}, "/quietHours/end"),
        ({"requireGrantedForMarketing": "true"}, "/requireGrantedForMarketing"),
        ({"hidePhoneHash": None}, "/hidePhoneHash"),
        ({"optOutKeywords": ["x"] * 31}, "/optOutKeywords"),
        ({"optOutKeywords": [""]}, "/optOutKeywords/0"),
        ({"optInKeywords": None}, "/optInKeywords"),
    ],
)
async def test_settings_that_are_not_valid_change_nothing(api: Any, body: Any, path: str) -> None:
    before = await api.get("/v2/organization")
    answer = await api.patch("/v2/organization", body)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == [path]
    assert (await api.get("/v2/organization")).body == before.body


async def test_the_revision_guards_a_change(api: Any) -> None:
    first = await api.get("/v2/organization")
    assert first.etag == '"1"'
    changed = await api.patch("/v2/organization", {"name": "New"}, headers={"If-Match": first.etag})
    assert (changed.status, changed.etag) == (200, '"2"')
    stale = await api.patch("/v2/organization", {"name": "Lost"}, headers={"If-Match": first.etag})
    assert (stale.status, stale.code) == (412, "VERSION_MISMATCH")
    assert stale.body["meta"]["currentETag"] == '"2"'
    assert (await api.get("/v2/organization")).body["name"] == "New"
    assert (await api.patch("/v2/organization", {"name": "Any"}, headers={"If-Match": "*"})).status == 200
    known = await api.get("/v2/organization", headers={"If-None-Match": '"3"'})
    assert (known.status, known.body) == (304, None)


async def test_a_change_to_the_same_values_raises_no_revision(api: Any) -> None:
    answer = await api.patch("/v2/organization", {"name": "First"})
    assert answer.etag == '"1"'
    assert api.changes == []


async def test_the_administrator_is_told_of_parameters_that_nobody_knows(api: Any) -> None:
    path = "/v2/admin/organizations?dryRun=true"
    refused = await api.post(path, NEW, token=ADMIN, headers={"Prefer": "handling=strict"})
    assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in refused.body["errors"]] == ["dryRun"]
    answer = await api.post(path, NEW, token=ADMIN)
    assert answer.status == 201
    assert [each["path"] for each in answer.body["warnings"]] == ["dryRun"]


async def test_the_administrator_makes_an_organization_with_keys_and_a_sandbox_number(api: Any) -> None:
    answer = await api.post("/v2/admin/organizations", NEW, token=ADMIN)
    assert answer.status == 201
    assert answer.body["name"] == "Third"
    test, live = answer.body["keys"]["test"], answer.body["keys"]["live"]
    assert test["token"].startswith("svc_test_")
    assert live["token"].startswith("svc_live_")
    numbers = (await api.get("/numbers", token=test["token"])).body["items"]
    assert [(n["status"], n["messagingTier"], n["qualityRating"]) for n in numbers] == [
        ("connected", "unlimited", "green")
    ]
    assert numbers[0]["rateLimit"] == {"perSecond": 80, "perDay": 100_000}
    assert (await api.get("/numbers", token=live["token"])).body == {"items": [], "total": 0}
    accepted = await api.post(
        "/v2/accounts/accept-invite",
        {"token": answer.body["inviteToken"], "password": "long enough, this one"},
        token="",
    )
    assert (accepted.body["role"], accepted.body["email"]) == ("owner", NEW["ownerEmail"])
    owner_id = accepted.body["id"]
    audit = (await api.get("/v2/audit", token=test["token"])).body["items"]
    assert [(e["actor"]["type"], e["action"], e["targetId"]) for e in audit] == [
        ("account", "account.accept", owner_id),
        ("admin", "organization.create", answer.body["id"]),
        ("admin", "pii_full.grant", owner_id),
        ("admin", "account.create", owner_id),
        ("admin", "pii_full.grant", test["id"]),
        ("admin", "api_key.create", test["id"]),
    ]


async def test_an_organization_whose_owner_has_an_account_elsewhere_is_not_made(api: Any) -> None:
    assert (await api.post("/v2/admin/organizations", NEW, token=ADMIN)).status == 201
    again = await api.post("/v2/admin/organizations", NEW | {"name": "Fourth"}, token=ADMIN)
    assert (again.status, again.code) == (409, "ACCOUNT_EMAIL_TAKEN")
    assert await api.database.fetchval("select count(*) from organizations where name = 'Fourth'") == 0


async def test_administration_takes_the_administrators_token_alone(api: Any) -> None:
    assert (await api.post("/v2/admin/organizations", NEW)).status == 401
    assert (await api.post("/v2/admin/organizations", NEW, token="")).status == 401
    assert (await api.get("/v2/organization", token=ADMIN)).status == 401
    nothing = await api.post("/v2/admin/organizations", {}, token=ADMIN)
    assert (nothing.status, [error["path"] for error in nothing.body["errors"]]) == (422, ["/name", "/ownerEmail"])
    guarded = await api.post("/v2/admin/organizations", NEW, token=ADMIN, headers={"If-Match": "*"})
    assert guarded.status == 412


async def test_a_suspended_organization_reads_and_does_nothing_else_until_released(api: Any) -> None:
    organization_id = api.organizations[0].organization.id
    assert (await api.get("/v2/organization")).status == 200  # the key is cached now
    suspended = await api.patch(f"/v2/admin/organizations/{organization_id}", {"status": "suspended"}, token=ADMIN)
    assert suspended.body["status"] == "suspended"
    assert (await api.get("/v2/organization")).status == 200
    refused = await api.patch("/v2/organization", {"name": "X"})
    assert (refused.status, refused.code) == (403, "ORGANIZATION_SUSPENDED")
    assert (await api.patch("/v2/organization", {"name": "X"}, organization=1)).status == 200
    token = await session(api)
    assert (await api.get("/v2/organization", token=token)).status == 200
    assert (await api.delete("/v2/sessions/current", token=token)).status == 204
    assert (await api.get("/v2/organization", token=token)).status == 401

    api.clock.shift(90)
    await api.patch(f"/v2/admin/organizations/{organization_id}", {"status": "active"}, token=ADMIN)
    assert (await api.patch("/v2/organization", {"name": "X"})).status == 200
    held = await api.database.fetchval("select held_ms from organizations where id = $1", organization_id)
    assert 90_000 <= held < 100_000


async def test_the_administrator_sets_the_dedicated_sender(api: Any) -> None:
    path = f"/v2/admin/organizations/{api.organizations[0].organization.id}"
    assert (await api.patch(path, {"dedicatedSender": "29000"}, token=ADMIN)).body["dedicatedSender"] == "29000"
    assert (await api.get("/v2/organization")).body["dedicatedSender"] == "29000"
    assert (await api.patch(path, {"dedicatedSender": None}, token=ADMIN)).body["dedicatedSender"] is None
    for sender in ("+5511987654321", "Recado & Co", "1"):
        assert (await api.patch(path, {"dedicatedSender": sender}, token=ADMIN)).body["dedicatedSender"] == sender
    for wrong in ("", "a longer name", "São", "+" + "9" * 21):
        refused = await api.patch(path, {"dedicatedSender": wrong}, token=ADMIN)
        assert (refused.status, refused.body["errors"][0]["path"]) == (422, "/dedicatedSender")
    assert (await api.patch(path, {"status": "gone"}, token=ADMIN)).status == 422
    assert (await api.patch(path, {"status": None}, token=ADMIN)).status == 422
    assert (await api.patch(path[:-1] + "!", {}, token=ADMIN)).status == 404
    assert (await api.patch("/v2/admin/organizations/org_" + "0" * 21, {}, token=ADMIN)).status == 404


async def test_changes_of_the_organization_are_in_the_audit_of_both_environments(api: Any) -> None:
    await api.patch("/v2/organization", {"name": "New", "country": "PT"})
    for env in ("test", "live"):
        items = (await api.get("/v2/audit?action=organization.update", env=env)).body["items"]
        assert [item["details"] for item in items] == [{"fields": ["country", "name"]}]
        assert items[0]["actor"] == {"type": "key", "id": api.organizations[0].keys["test"][0].id}
