"""Static lists over HTTP (C7): names, members, preconditions, and what two callers at once get."""

import asyncio
from typing import Any

import pytest
from tests.people import contact_id, insert_people, phone

from recado.domain.core.ids import LIST, is_id


async def make(api: Any, name: str = "VIPs", **fields: Any) -> Any:
    answer = await api.post("/v2/lists", {"name": name, **fields})
    assert answer.status == 201, answer.body
    return answer.body


@pytest.fixture
async def people(api: Any) -> Any:
    """Five contacts of the first organization in test."""
    organization_id = api.organizations[0].organization.id
    await insert_people(api.database, organization_id, "test", [{"external_id": f"x{n}"} for n in range(1, 6)])
    return api


async def test_a_list_is_made_read_changed_and_deleted(api: Any) -> None:
    answer = await api.post("/v2/lists", {"name": "  VIP  customers ", "description": " The best "})
    made = answer.body
    assert (answer.status, answer.etag) == (201, '"1"')
    assert is_id(LIST, made["id"])
    assert made == {
        "id": made["id"],
        "name": "VIP  customers",
        "description": "The best",
        "size": 0,
        "createdAt": made["createdAt"],
        "updatedAt": made["updatedAt"],
    }
    path = f"/v2/lists/{made['id']}"
    assert (await api.get(path)).body == made
    assert (await api.get("/v2/lists")).body == {"items": [made], "total": 1}
    assert (await api.get(path, headers={"If-None-Match": '"1"'})).status == 304
    changed = await api.patch(path, {"name": "Friends", "description": None}, headers={"If-Match": '"1"'})
    assert (changed.status, changed.etag, changed.body["name"]) == (200, '"2"', "Friends")
    assert "description" not in changed.body
    assert (await api.patch(path, {"name": "Friends"})).etag == '"2"'
    assert (await api.patch(path, {"name": "X"}, headers={"If-Match": '"1"'})).code == "VERSION_MISMATCH"
    assert (await api.delete(path, headers={"If-Match": '"1"'})).status == 412
    assert (await api.delete(path)).status == 204
    assert [(await call(path)).status for call in (api.get, api.delete)] == [404, 404]
    entries = (await api.get(f"/v2/audit?targetId={made['id']}")).body["items"]
    assert [entry["action"] for entry in entries] == ["list.delete"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "   "}, "/name"),
        ({"name": "x" * 121}, "/name"),
        ({"name": None}, "/name"),
        ({"name": "x", "description": "y" * 501}, "/description"),
    ],
)
async def test_what_no_list_can_be_is_refused(api: Any, body: Any, pointer: str) -> None:
    refused = await api.post("/v2/lists", body)
    assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (422, [pointer])


@pytest.mark.parametrize("other", ["VIPS", " vips ", "ViPs"])
async def test_a_name_is_taken_whatever_its_case_and_spaces(api: Any, other: str) -> None:
    holder = {"listId": (await make(api))["id"]}
    taken = await api.post("/v2/lists", {"name": other})
    assert (taken.code, taken.body["meta"]) == ("LIST_NAME_TAKEN", holder)
    await make(api, "My  list")
    assert (await api.post("/v2/lists", {"name": "my list"})).code == "LIST_NAME_TAKEN"
    assert (await api.post("/v2/lists", {"name": other}, env="live")).status == 201
    assert (await api.post("/v2/lists", {"name": other}, organization=1)).status == 201
    second = await make(api, "Second")
    renamed = await api.patch(f"/v2/lists/{second['id']}", {"name": other})
    assert (renamed.status, renamed.code, renamed.body["meta"]) == (409, "LIST_NAME_TAKEN", holder)
    writer = await api.key("contacts:write")
    assert holder["listId"] not in str((await api.post("/v2/lists", {"name": other}, token=writer)).body)
    assert (await api.patch(f"/v2/lists/{second['id']}", {"name": "SECOND"})).status == 200


async def test_of_two_at_once_with_one_name_one_is_made(api: Any) -> None:
    for turn in range(5):
        answers = await asyncio.gather(*(api.post("/v2/lists", {"name": f"Race {turn}"}) for _ in range(6)))
        assert sorted(answer.status for answer in answers) == [201, 409, 409, 409, 409, 409]
    pair = [await make(api, "one"), await make(api, "two")]
    answers = await asyncio.gather(*(api.patch(f"/v2/lists/{each['id']}", {"name": "Same"}) for each in pair))
    assert sorted(answer.status for answer in answers) == [200, 409]


async def test_lists_are_found_by_a_part_of_their_name(api: Any) -> None:
    made = [await make(api, name) for name in ("Spring 100%", "Summer_sale", "SPRING sale")]

    async def ids(query: str) -> list[str]:
        return [item["id"] for item in (await api.get(f"/v2/lists{query}")).body["items"]]

    assert await ids("?q=spring") == [made[2]["id"], made[0]["id"]]
    assert await ids("?q=0%25") == [made[0]["id"]]
    assert await ids("?q=r_s") == [made[1]["id"]]
    assert await ids("") == [each["id"] for each in reversed(made)]
    assert (await api.get("/v2/lists?limit=1&skip=1")).body == {"items": [made[1]], "total": 3}


async def test_an_environment_holds_a_thousand(api: Any) -> None:
    first = await make(api)
    await api.database.execute(
        "insert into static_lists select (jsonb_populate_record(l, jsonb_build_object("
        "'id', 'lst_' || g, 'name_key', 'list ' || g))).* from static_lists l, generate_series(1, 999) g"
    )
    full = await api.post("/v2/lists", {"name": "One more"})
    assert (full.status, full.code, full.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 1_000})
    await api.delete(f"/v2/lists/{first['id']}")
    await make(api, "One more")


# Members ------------------------------------------------------------------------------------------------------------


async def test_members_are_added_replaced_and_removed(people: Any) -> None:
    made = await make(people)
    path = f"/v2/lists/{made['id']}/members"
    named = {"contactIds": [contact_id(1), "cnt_1"], "phones": [phone(2), "12"], "externalIds": ["x2", "nobody"]}
    added = await people.post(path, named)
    assert added.body == {
        "listId": made["id"],
        "matched": 2,
        "added": 2,
        "removed": 0,
        "total": 2,
        "notFoundCount": 3,
        "notFound": {"externalIds": ["nobody"], "contactIds": ["cnt_1"], "phones": ["12"]},
    }
    assert (await people.get(f"/v2/lists/{made['id']}")).body["size"] == 2
    replaced = await people.call("PUT", path, {"externalIds": ["x2", "x3"]})
    assert (replaced.body["matched"], replaced.body["added"], replaced.body["removed"]) == (2, 1, 1)
    removed = await people.post(f"{path}/remove", {"externalIds": ["x3", "x5"], "phones": [phone(3)]})
    assert (removed.body["matched"], removed.body["removed"], removed.body["total"]) == (2, 1, 1)
    assert (await people.get(f"/v2/lists/{made['id']}")).etag == '"1"'


async def test_a_call_that_names_nobody_or_too_many_is_refused(people: Any) -> None:
    path = f"/v2/lists/{(await make(people))['id']}/members"
    await people.post(path, {"externalIds": ["x1"]})
    for call in (path, f"{path}/remove"):
        for nobody in ({}, {"phones": []}, {"contactIds": [], "externalIds": []}):
            refused = await people.post(call, nobody)
            assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")
        assert (await people.post(call, {"externalIds": ["nobody"]})).body["matched"] == 0
    for nobody in ({}, {"externalIds": ["nobody"]}):
        refused = await people.call("PUT", path, nobody)
        assert (refused.status, refused.code) == (422, "NO_MEMBER_MATCHED")
    many = {"externalIds": ["x"] * 25_000, "phones": ["1"] * 25_001}
    for method, call in (("POST", path), ("PUT", path), ("POST", f"{path}/remove")):
        refused = await people.call(method, call, many)
        assert (refused.status, refused.code) == (422, "TOO_MANY_IDENTIFIERS")
    assert (await people.get(path.removesuffix("/members"))).body["size"] == 1


@pytest.mark.parametrize("body", [{"phones": "x"}, {"phones": [1]}, {"contactIds": None}, {"externalIds": [None]}, []])
async def test_identifiers_are_lists_of_texts(people: Any, body: Any) -> None:
    path = f"/v2/lists/{(await make(people))['id']}/members"
    assert (await people.post(path, body)).status == 422


async def test_members_of_another_version_or_owner_are_left_alone(people: Any) -> None:
    made = await make(people)
    path = f"/v2/lists/{made['id']}/members"
    body = {"externalIds": ["x1"]}
    assert (await people.post(path, body, headers={"If-Match": '"2"'})).status == 412
    assert (await people.post(path, body, headers={"If-Match": '"1"'})).status == 200
    for other in ({"organization": 1}, {"env": "live"}):
        for method, call in (("POST", path), ("PUT", path), ("POST", f"{path}/remove")):
            assert (await people.call(method, call, body, **other)).status == 404
    reader = await people.key("contacts:read")
    assert (await people.post(path, body, token=reader)).code == "SCOPE_REQUIRED"
    assert (await people.get(f"/v2/lists/{made['id']}", token=reader)).body["size"] == 1


async def test_fifty_thousand_identifiers_fit_into_a_call(people: Any) -> None:
    path = f"/v2/lists/{(await make(people))['id']}/members"
    answer = await people.post(path, {"phones": [phone(n) for n in range(1, 50_001)]})
    found = answer.body
    assert (answer.status, found["matched"], found["notFoundCount"]) == (200, 5, 49_995)
    assert found["notFound"]["phones"] == [phone(n) for n in range(6, 106)]
