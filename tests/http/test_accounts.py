"""Accounts over HTTP (C24.2): who may invite whom, what a role allows (C3.3), and how an account ends, at once."""

import asyncio
from typing import Any

import pytest
from tests.http.people import person, session

NEW = {"name": "Ana", "email": "ana@example.com", "role": "operator"}
PASSWORD = "correct horse battery"
HOURS = 3_600.0
ADMIN = "the administrator of the tests"


async def invite(api: Any, token: str, **fields: Any) -> Any:
    answer = await api.post("/v2/accounts", NEW | fields, token=token)
    assert answer.status == 201, answer.body
    return answer.body


async def accept(api: Any, token: str, password: str = PASSWORD) -> Any:
    return await api.post("/v2/accounts/accept-invite", {"token": token, "password": password}, token="")


async def actions(api: Any, target_id: str) -> list[str]:
    rows = await api.database.fetch("select action from audit where target_id = $1 order by id", target_id)
    return [action for (action,) in rows]


async def test_an_invited_person_chooses_a_password_and_is_active(api: Any) -> None:
    owner = await session(api)
    made = await invite(api, owner, extraScopes=["audit:read"])
    assert (made["status"], made["role"], made["extraScopes"]) == ("invited", "operator", ["audit:read"])

    accepted = await accept(api, made["inviteToken"])

    assert (accepted.status, accepted.body["status"]) == (200, "active")
    assert "inviteToken" not in accepted.body
    listed = (await api.get("/v2/accounts", token=owner)).body
    assert (listed["total"], listed["items"][0]) == (2, accepted.body)
    assert await actions(api, made["id"]) == ["account.create", "pii_full.grant", "account.accept"]


async def test_accounts_are_of_the_organization_in_both_environments_and_of_no_other(api: Any) -> None:
    account = await person(api)
    live, test = [await session(api, account, env=env) for env in ("live", "test")]
    elsewhere = await session(api, organization=1)

    assert (await api.get("/v2/accounts", token=live)).body == (await api.get("/v2/accounts", token=test)).body
    for method, path, body in (
        ("PATCH", f"/v2/accounts/{account.id}", {"name": "Mine"}),
        ("DELETE", f"/v2/accounts/{account.id}", None),
        ("POST", f"/v2/accounts/{account.id}/invite", None),
    ):
        foreign = await api.call(method, path, body, token=elsewhere)
        assert (foreign.status, foreign.code) == (404, "NOT_FOUND")
    assert account.id not in str((await api.get("/v2/accounts", token=elsewhere)).body)


async def test_a_key_does_nothing_with_accounts(api: Any) -> None:
    account = await person(api)
    for method, path in (
        ("GET", "/v2/accounts"),
        ("POST", "/v2/accounts"),
        ("PATCH", f"/v2/accounts/{account.id}"),
        ("DELETE", f"/v2/accounts/{account.id}"),
        ("POST", f"/v2/accounts/{account.id}/invite"),
    ):
        refused = await api.call(method, path, {} if method in ("POST", "PATCH") else None)
        assert (refused.status, refused.code) == (403, "SESSION_ONLY")


async def test_an_invitation_works_once(api: Any) -> None:
    token = (await invite(api, await session(api)))["inviteToken"]

    answers = await asyncio.gather(*(accept(api, token, f"{PASSWORD} {n}") for n in range(3)))

    assert sorted(answer.status for answer in answers) == [200, 401, 401]
    assert (await accept(api, token)).code == "UNAUTHORIZED"


async def test_a_suspended_organization_takes_no_invitation(api: Any) -> None:
    token = (await invite(api, await session(api)))["inviteToken"]
    path = f"/v2/admin/organizations/{api.organizations[0].organization.id}"
    await api.patch(path, {"status": "suspended"}, token=ADMIN)
    refused = await accept(api, token)
    assert (refused.status, refused.code) == (403, "ORGANIZATION_SUSPENDED")
    await api.patch(path, {"status": "active"}, token=ADMIN)
    assert (await accept(api, token)).status == 200


@pytest.mark.long
async def test_an_invitation_accepted_while_it_is_taken_back_or_replaced_has_one_outcome(api: Any) -> None:
    owner = await person(api)
    for n in range(8):
        token = await session(api, owner)
        made = await invite(api, token, email=f"racing{n}@example.com")
        path = f"/v2/accounts/{made['id']}"
        other = api.delete(path, token=token) if n % 2 else api.post(f"{path}/invite", token=token)

        accepted, answer = await asyncio.gather(accept(api, made["inviteToken"]), other)

        assert accepted.status in (200, 401), accepted.body
        assert answer.status in ((204,) if n % 2 else (200, 409)), answer.body
        if not n % 2:
            assert {accepted.status, answer.status} in ({200, 409}, {401, 200})


async def test_an_invitation_holds_for_three_days(api: Any) -> None:
    owner = await person(api)
    late, early = [
        (await invite(api, await session(api, owner), email=f"{name}@example.com"))["inviteToken"]
        for name in ("late", "early")
    ]
    api.clock.shift(71.9 * HOURS)
    assert (await accept(api, early)).status == 200
    api.clock.shift(0.2 * HOURS)
    refused = await accept(api, late)
    assert (refused.status, refused.code, refused.headers["WWW-Authenticate"]) == (401, "UNAUTHORIZED", "Bearer")


@pytest.mark.parametrize("password", ["eleven char", "x" * 1025])
async def test_a_password_has_at_least_twelve_characters(api: Any, password: str) -> None:
    token = (await invite(api, await session(api)))["inviteToken"]
    refused = await accept(api, token, password)
    assert (refused.status, refused.body["errors"][0]["path"]) == (422, "/password")
    assert (await accept(api, token, "twelve chars")).status == 200


async def test_an_address_has_one_account_in_the_installation(api: Any) -> None:
    await invite(api, await session(api))
    for organization in (0, 1):
        taken = await api.post(
            "/v2/accounts", NEW | {"email": "ANA@example.com"}, token=await session(api, organization=organization)
        )
        assert (taken.status, taken.code) == (409, "ACCOUNT_EMAIL_TAKEN")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 121}, "/name"),
        ({"email": "nobody"}, "/email"),
        ({"email": "a b@example.com"}, "/email"),
        ({"role": "king"}, "/role"),
        ({"extraScopes": ["all"]}, "/extraScopes/0"),
    ],
)
async def test_an_account_that_is_not_valid_is_not_made(api: Any, change: Any, path: str) -> None:
    owner = await session(api)
    refused = await api.post("/v2/accounts", NEW | change, token=owner)
    assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (422, [path])
    assert (await api.get("/v2/accounts", token=owner)).body["total"] == 1


async def test_a_repeated_invitation_makes_one_account_and_shows_no_token_again(api: Any) -> None:
    owner = await session(api)
    first, second = [
        await api.post("/v2/accounts", NEW, token=owner, headers={"Idempotency-Key": "once"}) for _ in range(2)
    ]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert second.body == {name: value for name, value in first.body.items() if name != "inviteToken"}


@pytest.mark.parametrize(
    ("role", "holds", "lacks"),
    [
        ("owner", {"accounts:write", "contacts:pii", "wallet:write"}, set()),
        ("admin", {"accounts:write", "contacts:pii", "wallet:write"}, set()),
        ("operator", {"messages:send", "pii:full", "ops:write"}, {"messages:force", "wallet:write", "contacts:pii"}),
        ("analyst", {"audit:read", "wallet:read"}, {"pii:full", "messages:send", "contacts:pii"}),
    ],
)
async def test_a_session_has_the_scopes_of_its_role(api: Any, role: str, holds: set[str], lacks: set[str]) -> None:
    account = await person(api, role)
    assert holds <= account.scopes
    assert not lacks & account.scopes

    answer = await api.post("/v2/accounts", NEW, token=await session(api, account))

    allowed = "accounts:write" in account.scopes
    assert answer.status == (201 if allowed else 403)
    assert allowed or answer.body["meta"] == {"requiredScope": "accounts:write"}


async def test_a_change_of_role_holds_at_once(api: Any) -> None:
    owner = await session(api)
    analyst = await person(api, "analyst")
    theirs = await session(api, analyst)
    assert (await api.get("/v2/accounts", token=theirs)).status == 200

    changed = await api.patch(f"/v2/accounts/{analyst.id}", {"role": "operator", "name": "Ana"}, token=owner)

    assert (changed.body["role"], changed.body["name"]) == ("operator", "Ana")
    assert (await api.get("/v2/accounts", token=theirs)).body["meta"] == {"requiredScope": "accounts:read"}
    assert await actions(api, analyst.id) == ["account.update", "pii_full.grant"]


async def test_nobody_grants_what_he_does_not_hold(api: Any) -> None:
    helper = await session(api, await person(api, "operator", extra_scopes=["accounts:write"]))
    analyst, owner = await person(api, "analyst"), await person(api, "owner")
    refusals = [
        await api.post("/v2/accounts", NEW | {"role": "owner"}, token=helper),
        await api.post("/v2/accounts", NEW | {"extraScopes": ["contacts:pii"]}, token=helper),
        await api.patch(f"/v2/accounts/{analyst.id}", {"role": "admin"}, token=helper),
        await api.patch(f"/v2/accounts/{analyst.id}", {"extraScopes": ["wallet:write"]}, token=helper),
        await api.post(f"/v2/accounts/{owner.id}/invite", token=helper),
    ]
    assert [(answer.status, answer.code) for answer in refusals] == [(403, "SCOPE_ESCALATION")] * 5
    assert refusals[1].body["meta"] == {"scopes": ["contacts:pii"]}
    assert (await api.post("/v2/accounts", NEW | {"extraScopes": ["accounts:write"]}, token=helper)).status == 201


async def test_nobody_changes_an_account_that_holds_more(api: Any) -> None:
    helper = await session(api, await person(api, "operator", extra_scopes=["accounts:write"]))
    owner, other = await person(api, "owner"), await person(api, "owner")
    superior = await person(api, "operator", extra_scopes=["wallet:write"])
    refusals = [
        await api.patch(f"/v2/accounts/{owner.id}", {"role": "analyst"}, token=helper),
        await api.patch(f"/v2/accounts/{owner.id}", {"name": "Somebody"}, token=helper),
        await api.patch(f"/v2/accounts/{superior.id}", {"extraScopes": []}, token=helper),
        await api.delete(f"/v2/accounts/{owner.id}", token=helper),
        await api.delete(f"/v2/accounts/{superior.id}", token=helper),
    ]
    assert [(answer.status, answer.code) for answer in refusals] == [(403, "SCOPE_ESCALATION")] * 5
    assert refusals[4].body["meta"] == {"scopes": ["wallet:write"]}
    assert await actions(api, owner.id) == []
    rows = await api.database.fetch(
        "select role, status from accounts where id = any($1)", [owner.id, other.id, superior.id]
    )
    assert {tuple(row) for row in rows} == {("owner", "active"), ("operator", "active")}

    equal = await person(api, "operator")
    assert (await api.patch(f"/v2/accounts/{equal.id}", {"name": "Renamed"}, token=helper)).status == 200
    assert (await api.delete(f"/v2/accounts/{equal.id}", token=helper)).status == 204


async def test_a_disabled_account_is_out_at_once_and_everywhere(api: Any) -> None:
    owner = await session(api)
    account = await person(api, "admin")
    tokens = [await session(api, account, env=env) for env in ("live", "test")]
    for token in tokens:
        assert (await api.get("/v2/organization", token=token)).status == 200

    assert (await api.delete(f"/v2/accounts/{account.id}", token=owner)).status == 204
    assert (await api.delete(f"/v2/accounts/{account.id}", token=owner)).status == 204

    for token in tokens:
        assert (await api.get("/v2/organization", token=token)).code == "SESSION_EXPIRED"
    assert await actions(api, account.id) == ["account.disable"]


async def test_a_disabled_account_can_be_invited_back_with_another_password(api: Any) -> None:
    owner = await session(api)
    made = await invite(api, owner)
    await accept(api, made["inviteToken"])
    active = await api.post(f"/v2/accounts/{made['id']}/invite", token=owner)
    assert (active.status, active.code, active.body["meta"]) == (409, "INVALID_STATE", {"status": "active"})
    await api.delete(f"/v2/accounts/{made['id']}", token=owner)

    again = await api.post(f"/v2/accounts/{made['id']}/invite", token=owner)

    assert (again.status, again.body["status"]) == (200, "invited")
    old = await api.post("/v2/sessions", {"email": NEW["email"], "password": PASSWORD}, token="")
    assert old.status == 401
    assert (await accept(api, again.body["inviteToken"], "another password")).status == 200
    new = await api.post("/v2/sessions", {"email": NEW["email"], "password": "another password"}, token="")
    assert new.status == 201


async def test_a_second_invitation_voids_the_first(api: Any) -> None:
    owner = await session(api)
    made = await invite(api, owner)
    again = await api.post(f"/v2/accounts/{made['id']}/invite", token=owner)
    assert (await accept(api, made["inviteToken"])).status == 401
    assert (await accept(api, again.body["inviteToken"])).status == 200


async def test_an_invitation_of_a_disabled_account_opens_nothing(api: Any) -> None:
    owner = await session(api)
    made = await invite(api, owner)
    await api.delete(f"/v2/accounts/{made['id']}", token=owner)
    assert (await accept(api, made["inviteToken"])).status == 401


async def test_the_last_active_owner_stays(api: Any) -> None:
    account = await person(api)
    owner = await session(api, account)
    await invite(api, owner, role="owner")  # not active yet
    await person(api, "admin")

    refusals = [
        await api.delete(f"/v2/accounts/{account.id}", token=owner),
        await api.patch(f"/v2/accounts/{account.id}", {"role": "admin"}, token=owner),
    ]

    assert [(answer.status, answer.code) for answer in refusals] == [(409, "CONFLICT")] * 2
    await person(api)
    assert (await api.delete(f"/v2/accounts/{account.id}", token=owner)).status == 204


async def test_two_owners_who_remove_each_other_leave_one(api: Any) -> None:
    for _ in range(5):
        first, second = await person(api), await person(api)
        await api.database.execute("update accounts set role = 'admin' where id <> all($1)", [first.id, second.id])
        tokens = await session(api, first), await session(api, second)

        answers = await asyncio.gather(
            api.delete(f"/v2/accounts/{second.id}", token=tokens[0]),
            api.delete(f"/v2/accounts/{first.id}", token=tokens[1]),
        )

        assert sorted(answer.status for answer in answers) in ([204, 401], [204, 409])
        left = await api.database.fetchval("select count(*) from accounts where role = 'owner' and status = 'active'")
        assert left == 1
