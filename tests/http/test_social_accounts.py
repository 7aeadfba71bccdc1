"""Social accounts over HTTP: registered, connected, changed, deleted (C26), and whom contacts are there (C12.3)."""

from typing import Any

import pytest
from tests.http.conftest import ADMIN_TOKEN
from tests.http.registering import AWAY, REFUSED

from recado.channels.social.account import social_details
from recado.domain.core.ids import SOCIAL_ACCOUNT
from recado.domain.messages.changes import SocialAccountChanged

ACCOUNTS = "/v2/social/accounts"
NEW = {"platform": "page", "externalAccountId": "17841400", "displayName": "Padaria"}


async def account(api: Any, env: str = "live", organization: int = 0, **fields: Any) -> Any:
    made = await api.post(ACCOUNTS, NEW | fields, env=env, organization=organization)
    assert made.status == 201, made.body
    return made.body


async def connected(api: Any, env: str = "live", **fields: Any) -> Any:
    made = await account(api, env, **fields)
    answer = await api.post(f"{ACCOUNTS}/{made['id']}/connect", env=env)
    assert answer.status == 200, answer.body
    return answer.body


async def test_an_account_is_registered_pending_and_its_token_is_nowhere_in_clear(api: Any) -> None:
    made = await account(api, accessToken="s3cret-token")
    assert made["id"].startswith(SOCIAL_ACCOUNT)
    assert made | {"id": "", "createdAt": "", "updatedAt": ""} == {
        "id": "", "organizationId": api.organizations[0].organization.id, "env": "live", "status": "pending", **NEW,
        "createdAt": "", "updatedAt": "",
    }  # fmt: skip
    assert (await api.get(f"{ACCOUNTS}/{made['id']}", env="live")).body == made
    stored = await api.database.fetchval("select access_token_cipher from social_accounts where id = $1", made["id"])
    assert stored.startswith("v1.")
    assert "s3cret" not in stored
    assert api.changes == [SocialAccountChanged(made["organizationId"], "live", made["id"])]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"platform": "other"}, "/platform"),
        ({"platform": None}, "/platform"),
        ({"externalAccountId": " "}, "/externalAccountId"),
        ({"externalAccountId": "x" * 129}, "/externalAccountId"),
        ({"displayName": ""}, "/displayName"),
        ({"accessToken": 5}, "/accessToken"),
    ],
)
async def test_an_account_that_is_not_well_formed_is_refused(api: Any, change: Any, path: str) -> None:
    answer = await api.post(ACCOUNTS, NEW | change, env="live")
    assert (answer.status, [each["path"] for each in answer.body["errors"]]) == (422, [path])


async def test_an_environment_holds_a_thousand(api: Any) -> None:
    await account(api)
    await api.database.execute(
        "insert into social_accounts select (jsonb_populate_record(s, jsonb_build_object("
        "'id', 'soc_' || g, 'external_account_id', 'page ' || g))).* from social_accounts s, generate_series(1, 999) g"
    )
    full = await api.post(ACCOUNTS, NEW | {"externalAccountId": "one more"}, env="live")
    assert (full.status, full.code, full.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 1_000})


async def test_an_id_of_the_platform_belongs_to_one_organization(api: Any) -> None:
    made = await account(api)
    taken = await api.post(ACCOUNTS, NEW, env="live")
    assert (taken.status, taken.code, taken.body["meta"]) == (
        409, "SOCIAL_ACCOUNT_TAKEN", {"field": "externalAccountId", "socialAccountId": made["id"]},
    )  # fmt: skip
    elsewhere = await api.post(ACCOUNTS, NEW, env="live", organization=1)
    assert (elsewhere.code, elsewhere.body["meta"]) == ("SOCIAL_ACCOUNT_TAKEN", {"field": "externalAccountId"})
    await account(api, env="test")  # another environment, another account
    assert (await api.delete(f"{ACCOUNTS}/{made['id']}", env="live")).status == 204
    assert (await api.get(f"{ACCOUNTS}/{made['id']}", env="live")).status == 404
    await account(api, organization=1)


async def test_the_provider_gets_the_token_when_an_account_is_connected(api: Any) -> None:
    found = await connected(api, accessToken="first")
    assert found["status"] == "connected"
    (asked,) = api.providers["live"].asked_for("connect")
    assert (asked.provider_id, social_details(asked).access_token, social_details(asked).platform) == (
        "17841400", "first", "page",
    )  # fmt: skip
    again = await api.post(f"{ACCOUNTS}/{found['id']}/connect", env="live")
    assert (again.status, again.code, again.body["meta"]) == (409, "INVALID_STATE", {"status": "connected"})


async def test_an_account_that_the_provider_does_not_take_stays_pending(api: Any) -> None:
    made = await account(api)
    api.providers["live"].failures["connect"] = REFUSED
    assert (await api.post(f"{ACCOUNTS}/{made['id']}/connect", env="live")).code == "DEPENDENCY_FAILED"
    assert (await api.get(f"{ACCOUNTS}/{made['id']}", env="live")).body["status"] == "pending"


async def test_the_new_token_of_a_connected_account_goes_to_the_provider_first(api: Any) -> None:
    found = await connected(api, accessToken="first")
    path = f"{ACCOUNTS}/{found['id']}"
    api.providers["live"].failures["connect"] = REFUSED
    assert (await api.patch(path, {"accessToken": "second"}, env="live")).code == "DEPENDENCY_FAILED"
    del api.providers["live"].failures["connect"]
    changed = await api.patch(path, {"accessToken": "third", "displayName": "Confeitaria"}, env="live")
    assert (changed.status, changed.body["displayName"]) == (200, "Confeitaria")
    tokens = [social_details(each).access_token for each in api.providers["live"].asked_for("connect")]
    assert tokens == ["first", "second", "third"]


async def test_an_account_is_taken_out_of_service_whatever_the_provider_says(api: Any) -> None:
    found = await connected(api)
    api.providers["live"].failures["disconnect"] = AWAY
    path = f"{ACCOUNTS}/{found['id']}"
    assert (await api.post(f"{path}/disconnect", env="live")).body["status"] == "disconnected"
    assert (await api.post(f"{path}/disconnect", env="live")).code == "INVALID_STATE"
    assert (await api.post(f"{path}/connect", env="live")).body["status"] == "connected"


async def test_accounts_are_listed_by_state_and_kind(api: Any) -> None:
    first = await connected(api)
    await account(api, externalAccountId="2", platform="direct")
    found = await api.get(f"{ACCOUNTS}?status=connected&platform=page", env="live")
    assert ([each["id"] for each in found.body["items"]], found.body["total"]) == ([first["id"]], 1)
    assert (await api.get(f"{ACCOUNTS}?platform=page&status=pending", env="live")).body["total"] == 0


async def test_a_change_names_the_version_that_it_knows(api: Any) -> None:
    made = await account(api)
    path = f"{ACCOUNTS}/{made['id']}"
    stale = await api.patch(path, {"displayName": "Other"}, env="live", headers={"If-Match": '"7"'})
    assert (stale.status, stale.code) == (412, "VERSION_MISMATCH")


async def test_a_new_organization_has_a_connected_account_in_test(api: Any) -> None:
    body = {"name": "Third", "ownerEmail": "third@example.com"}
    made = (await api.post("/v2/admin/organizations", body, token=ADMIN_TOKEN)).body
    row = await api.database.fetchrow(
        "select env, status, platform from social_accounts where organization_id = $1", made["id"]
    )
    assert dict(row) == {"env": "test", "status": "connected", "platform": "page"}


# Identities -----------------------------------------------------------------------------------------------------------


async def contact(api: Any, phone: str = "+5511987650001") -> Any:
    return (await api.post("/contacts", {"phone": phone})).body


async def test_a_contact_is_a_user_of_an_account_and_no_other_contact_is(api: Any) -> None:
    made, first, second = await account(api, env="test"), await contact(api), await contact(api, "+5511987650002")
    identity = {"socialAccountId": made["id"], "userId": "123456789"}
    linked = await api.patch(f"/contacts/{first['id']}", {"socialIdentities": [identity, identity]})
    assert (linked.status, linked.body["socialIdentities"]) == (200, [identity])
    assert (await api.get(f"/contacts/{first['id']}")).body["socialIdentities"] == [identity]
    listed = (await api.get("/contacts")).body["items"]
    assert [each.get("socialIdentities") for each in listed] == [None, [identity]]

    taken = await api.patch(f"/contacts/{second['id']}", {"socialIdentities": [identity]})
    assert (taken.status, taken.code, taken.body["meta"]) == (
        409, "SOCIAL_IDENTITY_TAKEN", {"contactId": first["id"]},
    )  # fmt: skip
    cleared = await api.patch(f"/contacts/{first['id']}", {"socialIdentities": None})
    assert "socialIdentities" not in cleared.body
    assert (await api.patch(f"/contacts/{second['id']}", {"socialIdentities": [identity]})).status == 200
    assert (await api.delete(f"/contacts/{second['id']}")).status == 204
    assert (await api.patch(f"/contacts/{first['id']}", {"socialIdentities": [identity]})).status == 200


async def test_an_identity_is_masked_for_whoever_may_not_see_people(api: Any) -> None:
    made, person = await account(api, env="test"), await contact(api)
    identity = {"socialAccountId": made["id"], "userId": "123456789"}
    await api.patch(f"/contacts/{person['id']}", {"socialIdentities": [identity]})
    token = await api.key("contacts:read", "contacts:write")
    masked = [{"socialAccountId": made["id"], "userId": "****6789"}]
    assert (await api.get(f"/contacts/{person['id']}", token=token)).body["socialIdentities"] == masked
    patched = await api.patch(f"/contacts/{person['id']}", {"name": "Ana"}, token=token)
    assert patched.body["socialIdentities"] == masked


@pytest.mark.parametrize(
    ("identities", "code", "path"),
    [
        ("x", "WRONG_TYPE", "/socialIdentities"),
        ([{}], "REQUIRED", "/socialIdentities/0/socialAccountId"),
        ([{"socialAccountId": "num_1", "userId": "1"}], "REFERENCE_NOT_FOUND", "/socialIdentities/0/socialAccountId"),
        (
            [{"socialAccountId": f"soc_{'0' * 21}", "userId": "1"}],
            "REFERENCE_NOT_FOUND", "/socialIdentities/0/socialAccountId",
        ),
        ([{"socialAccountId": f"soc_{'0' * 21}", "userId": " "}], "TOO_SHORT", "/socialIdentities/0/userId"),
        ([{"socialAccountId": f"soc_{'0' * 21}", "userId": "1"}] * 21, "TOO_MANY", "/socialIdentities"),
    ],
)  # fmt: skip
async def test_odd_identities_are_refused(api: Any, identities: Any, code: str, path: str) -> None:
    person = await contact(api)
    refused = await api.patch(f"/contacts/{person['id']}", {"socialIdentities": identities})
    assert refused.status == 422
    assert [(each["code"], each["path"]) for each in refused.body["errors"]] == [(code, path)]


async def test_an_account_of_another_organization_is_not_there(api: Any) -> None:
    foreign, person = await account(api, env="test", organization=1), await contact(api)
    refused = await api.patch(
        f"/contacts/{person['id']}", {"socialIdentities": [{"socialAccountId": foreign["id"], "userId": "1"}]}
    )
    assert (refused.status, refused.code) == (422, "REFERENCE_NOT_FOUND")


async def test_whoever_is_a_user_of_an_account_is_reached_by_social(api: Any) -> None:
    made, person = await account(api, env="test"), await contact(api)
    await contact(api, "+5511987650002")
    identity = {"socialAccountId": made["id"], "userId": "123456789"}
    await api.patch(f"/contacts/{person['id']}", {"socialIdentities": [identity]})
    leaf = {"field": "channel", "operator": "is", "value": "social"}
    assert (await api.post("/v2/segments/preview", {"filters": [leaf]})).body["count"] == 1
