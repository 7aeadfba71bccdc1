"""Signing in and out over HTTP (C24.3): what a session may do, how long it holds, and what guessing finds out."""

from typing import Any

import pytest
from tests.captured import capture_logs
from tests.http.people import person, session

from recado.domain.access.scopes import ALL_SCOPES
from recado.storage.access import passwords

PASSWORD = "correct horse battery"
HOUR = 3_600.0


async def signer(api: Any, **fields: Any) -> Any:
    """An account whose password is PASSWORD."""
    answer = await api.post(
        "/v2/accounts",
        {"name": "Ana", "email": "Ana@Example.com", "role": "owner", **fields},
        token=await session(api),
    )
    assert answer.status == 201, answer.body
    accepted = await api.post(
        "/v2/accounts/accept-invite", {"token": answer.body["inviteToken"], "password": PASSWORD}, token=""
    )
    assert accepted.status == 200, accepted.body
    return accepted.body


async def sign_in(api: Any, password: str = PASSWORD, email: str = "ana@example.com") -> Any:
    return await api.post("/v2/sessions", {"email": email, "password": password}, token="")


async def test_a_person_signs_in_and_acts_in_both_environments(api: Any) -> None:
    account = await signer(api)

    opened = await sign_in(api, email=" ANA@example.COM ")

    assert opened.status == 201
    tokens = opened.body["tokens"]
    assert {name: token.rsplit("_", 1)[0] for name, token in tokens.items()} == {
        "live": "svcs_live",
        "test": "svcs_test",
    }
    assert opened.body["account"] == account | {"lastLoginAt": opened.body["account"]["lastLoginAt"]}
    assert opened.body["scopes"] == sorted(ALL_SCOPES)
    assert (await api.get("/v2/api-keys", token=tokens["test"])).body["items"][0]["env"] == "test"
    assert (await api.get("/v2/api-keys", token=tokens["live"])).body["items"][0]["env"] == "live"


@pytest.mark.parametrize("which", ["test", "live"])
async def test_signing_out_ends_both_tokens_at_once(api: Any, which: str) -> None:
    await signer(api)
    tokens = (await sign_in(api)).body["tokens"]
    for token in tokens.values():
        assert (await api.get("/v2/organization", token=token)).status == 200

    assert (await api.delete("/v2/sessions/current", token=tokens[which])).status == 204

    for token in tokens.values():
        refused = await api.get("/v2/organization", token=token)
        assert (refused.status, refused.code) == (401, "SESSION_EXPIRED")


async def test_signing_out_leaves_the_other_sessions_of_the_account(api: Any) -> None:
    await signer(api)
    first, second = [(await sign_in(api)).body["tokens"]["test"] for _ in range(2)]

    await api.delete("/v2/sessions/current", token=first)

    assert (await api.get("/v2/organization", token=second)).status == 200


async def test_nobody_signs_in_while_the_organization_is_moved_and_no_attempt_counts(api: Any) -> None:
    await signer(api)
    await api.database.execute("update organizations set status = 'suspended', moving = true")
    for _ in range(6):
        refused = await sign_in(api)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    assert (await sign_in(api, "a wrong password")).code == "INVALID_LOGIN"
    assert await api.database.fetchval("select count(*) from audit where action = 'session.create'") == 0
    await api.database.execute("update organizations set status = 'active', moving = false")
    assert (await sign_in(api)).status == 201


async def test_a_key_has_no_session_to_end(api: Any) -> None:
    refused = await api.delete("/v2/sessions/current")
    assert (refused.status, refused.code) == (403, "SESSION_ONLY")


async def test_a_session_holds_twelve_hours_when_it_is_used(api: Any) -> None:
    token = await session(api)
    for _ in range(7):
        api.clock.shift(1.7 * HOUR)
        assert (await api.get("/v2/organization", token=token)).status == 200
        await api.directories.flush_uses()
    api.clock.shift(0.11 * HOUR)

    refused = await api.get("/v2/organization", token=token)

    assert (refused.status, refused.code) == (401, "SESSION_EXPIRED")


async def test_a_session_that_nobody_uses_ends_after_two_hours(api: Any) -> None:
    token = await session(api)
    api.clock.shift(1.99 * HOUR)
    assert (await api.get("/v2/organization", token=token)).status == 200
    api.clock.shift(2.01 * HOUR)

    assert (await api.get("/v2/organization", token=token)).code == "SESSION_EXPIRED"


async def test_unknown_and_malformed_tokens_are_refused_alike(api: Any) -> None:
    token = await session(api)
    for wrong in (token[:-1] + ("0" if token[-1] != "0" else "1"), "svcs_test_" + "0" * 43, "svcs_test_"):
        refused = await api.get("/v2/organization", token=wrong)
        assert (refused.status, refused.code) == (401, "UNAUTHORIZED")


async def test_only_the_right_password_of_an_active_account_opens_a_session(api: Any) -> None:
    active = await signer(api)
    owner = await session(api)
    await api.post("/v2/accounts", {"name": "Bo", "email": "bo@example.com", "role": "analyst"}, token=owner)
    gone = await signer(api, email="gone@example.com")
    await api.delete(f"/v2/accounts/{gone['id']}", token=owner)

    answers = [
        await sign_in(api, "wrong password"),
        await sign_in(api, PASSWORD + " "),
        await sign_in(api, email="nobody@example.com"),
        await sign_in(api, email="bo@example.com"),
        await sign_in(api, email="gone@example.com"),
    ]

    told = [(answer.status, answer.code, answer.body["detail"]) for answer in answers]
    assert told == [(401, "INVALID_LOGIN", answers[0].body["detail"])] * 5
    assert all(answer.headers["WWW-Authenticate"] == "Bearer" for answer in answers)
    assert (await sign_in(api)).body["account"]["id"] == active["id"]


@pytest.mark.parametrize("email", ["ana@example.com", "nobody@example.com"])
async def test_after_five_failures_nobody_gets_in_for_fifteen_minutes(api: Any, email: str) -> None:
    await signer(api)
    for _ in range(5):
        assert (await sign_in(api, "a wrong password", email)).status == 401

    locked = await sign_in(api, PASSWORD, email.upper())

    assert (locked.status, locked.code) == (429, "TOO_MANY_ATTEMPTS")
    assert 880 <= int(locked.headers["Retry-After"]) <= 900
    api.clock.shift(890)
    assert (await sign_in(api, PASSWORD, email)).status == 429
    api.clock.shift(11)
    assert (await sign_in(api, PASSWORD, email)).status == (201 if email == "ana@example.com" else 401)


async def test_a_right_password_forgets_the_failures_before_it(api: Any) -> None:
    await signer(api)
    for _ in range(2):
        for _ in range(4):
            assert (await sign_in(api, "a wrong password")).status == 401
        assert (await sign_in(api)).status == 201


async def test_an_attempt_that_found_no_turn_is_no_failure(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await signer(api)
    with monkeypatch.context() as full:
        full.setattr(passwords, "MOST_WAITING", 0)
        for _ in range(6):
            busy = await sign_in(api)
            assert (busy.status, busy.code, busy.headers["Retry-After"]) == (503, "SERVICE_UNAVAILABLE", "5")
    assert (await sign_in(api)).status == 201


async def test_signing_in_and_failing_to_is_in_the_audit_and_no_secret_is(api: Any) -> None:
    account = await signer(api)
    with capture_logs() as logs:
        tokens = (await sign_in(api)).body["tokens"]
        await sign_in(api, "a wrong password")
        await api.delete("/v2/sessions/current", token=tokens["test"])

    entries = (await api.get(f"/v2/audit?targetId={account['id']}")).body["items"]

    assert [(entry["action"], entry["actor"]["type"]) for entry in entries[:3]] == [
        ("session.end", "account"),
        ("session.refuse", "system"),
        ("session.create", "account"),
    ]
    assert all(entry["ip"] == "127.0.0.1" for entry in entries)
    dump = str(await api.database.fetch("select to_jsonb(s) from sessions s")) + str(
        await api.database.fetch("select to_jsonb(a) from audit a")
    )
    for secret in (*tokens.values(), PASSWORD, "a wrong password"):
        assert secret not in dump
        assert secret not in str(logs)
    assert "ana@example.com" not in str(logs).lower()


@pytest.mark.parametrize(("role", "scopes"), [("owner", ALL_SCOPES), ("admin", ALL_SCOPES)])
async def test_a_session_counts_as_its_account(api: Any, role: str, scopes: frozenset[str]) -> None:
    account = await person(api, role)
    token = await session(api, account)

    made = await api.post("/v2/api-keys", {"name": "by a person", "scopes": ["org:read"]}, token=token)

    assert made.body["createdById"] == account.id
    assert account.scopes == scopes
    assert "RateLimit" in made.headers


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, ["/email", "/password"]),
        ({"email": "", "password": ""}, ["/email", "/password"]),
        ({"email": "a@b", "password": "x" * 1025}, ["/password"]),
        ({"email": 5, "password": None}, ["/email", "/password"]),
    ],
)
async def test_a_body_that_is_none_is_pointed_at(api: Any, body: Any, paths: list[str]) -> None:
    refused = await api.post("/v2/sessions", body, token="")
    assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (422, paths)
