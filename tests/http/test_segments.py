"""Segments over HTTP (C13): kept, changed, previewed, and who matches."""

import asyncio
from typing import Any

import pytest
from tests.people import contact_id, insert_people

from recado.domain.core.ids import SEGMENT, is_id
from recado.domain.core.timestamps import format_timestamp

VIP = {"field": "tag", "operator": "is", "value": "VIP"}
GRANTED = {"field": "optIn", "operator": "is", "value": "granted"}


def leaf(condition: Any) -> Any:
    return {"kind": "leaf", "filter": condition}


EITHER = {"kind": "or", "children": [leaf(VIP), leaf(GRANTED)]}


@pytest.fixture
async def people(api: Any) -> Any:
    """Thirty contacts: every third a VIP, every fifth with consent."""
    organization_id = api.organizations[0].organization.id
    await insert_people(
        api.database,
        organization_id,
        "test",
        [
            {"tags": ["Vip"] if n % 3 == 0 else [], "opt_in_status": "granted" if n % 5 == 0 else "unknown"}
            for n in range(1, 31)
        ],
    )
    return api


async def make(api: Any, name: str = "VIPs", **fields: Any) -> Any:
    answer = await api.post("/v2/segments", {"name": name, "filters": [VIP], **fields})
    assert answer.status == 200, answer.body
    return answer.body


async def test_a_segment_is_kept_with_its_size_and_always_has_a_tree(people: Any) -> None:
    answer = await people.post("/v2/segments", {"name": " VIPs ", "description": "Best", "filters": [VIP, GRANTED]})
    made = answer.body
    assert (answer.status, answer.etag) == (200, '"1"')
    assert is_id(SEGMENT, made["id"])
    expected = {
        "name": "VIPs",
        "description": "Best",
        "filters": [VIP, GRANTED],
        "filterTree": {"kind": "and", "children": [leaf(VIP), leaf(GRANTED)]},
        "size": 2,
        "organizationId": people.organizations[0].organization.id,
        "createdById": people.organizations[0].keys["test"][0].id,
    }
    assert expected.items() <= made.items()
    assert made["sizeAt"] == made["updatedAt"]
    path = f"/v2/segments/{made['id']}"
    read = await people.get(path)
    assert (read.body, read.etag) == (made, '"1"')
    assert (await people.get(path, headers={"If-None-Match": '"1"'})).status == 304
    assert (await people.get("/v2/segments?q=vip")).body == {"items": [made], "total": 1}
    assert (await people.get("/v2/segments?q=other")).body["total"] == 0
    assert (await people.get(path, env="live")).status == 404
    assert (await people.get(path, organization=1)).status == 404
    assert (await people.delete(path, headers={"If-Match": '"2"'})).status == 412
    assert (await people.delete(path)).status == 204
    assert (await people.get(path)).status == 404
    entries = (await people.get(f"/v2/audit?targetId={made['id']}")).body["items"]
    assert [entry["action"] for entry in entries] == ["segment.delete"]


async def test_a_tree_says_what_matches_when_both_are_given(people: Any) -> None:
    made = await make(people, filters=[VIP], filterTree=EITHER)
    assert (made["filters"], made["filterTree"], made["size"]) == ([VIP], EITHER, 14)
    alone = await people.post("/v2/segments", {"name": "Tree", "filterTree": EITHER, "filters": []})
    assert (alone.body["filters"], alone.body["filterTree"]) == ([], EITHER)


async def test_a_change_leaves_alone_what_it_does_not_name(people: Any) -> None:
    path = f"/v2/segments/{(await make(people, filterTree=EITHER, description='Best'))['id']}"
    renamed = (await people.patch(path, {"name": "Friends"})).body
    assert (renamed["name"], renamed["description"], renamed["filterTree"], renamed["size"]) == (
        "Friends",
        "Best",
        EITHER,
        14,
    )
    filtered = await people.patch(path, {"filters": [GRANTED], "description": None}, headers={"If-Match": '"2"'})
    assert (filtered.status, filtered.etag) == (200, '"3"')
    assert filtered.body["filterTree"] == {"kind": "and", "children": [leaf(GRANTED)]}
    assert filtered.body["size"] == 6
    assert "description" not in filtered.body
    both = (await people.patch(path, {"filters": [VIP], "filterTree": leaf(GRANTED)})).body
    assert (both["filters"], both["filterTree"], both["size"]) == ([VIP], leaf(GRANTED), 6)
    again = (await people.patch(path, {"filterTree": None})).body
    assert (again["filterTree"], again["size"]) == ({"kind": "and", "children": [leaf(VIP)]}, 10)
    assert (await people.patch(path, {"filterTree": EITHER, "filters": []})).body["filters"] == []
    assert (await people.patch(path, {"filters": [VIP]}, headers={"If-Match": '"1"'})).code == "VERSION_MISMATCH"
    assert (await people.patch(path, {})).etag == '"6"'


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/filters"),
        ({"filters": None}, "/filters"),
        ({"filters": []}, "/filters"),
        ({"filterTree": None}, "/filters"),
        ({"filters": [VIP, {**VIP, "operator": "like"}]}, "/filters/1/operator"),
        ({"filters": [VIP], "filterTree": {"kind": "and", "children": []}}, "/filterTree/children"),
        ({"filterTree": {"kind": "not", "child": leaf({"field": "tag"})}}, "/filterTree/child/filter/operator"),
    ],
)
async def test_a_filter_that_is_none_is_pointed_at(people: Any, body: Any, pointer: str) -> None:
    path = f"/v2/segments/{(await make(people))['id']}"
    named = {"name": "Other", **body}
    asked = [people.post("/v2/segments", named), people.post("/v2/segments/preview", body)]
    if body and body != {"filterTree": None}:  # those change nothing
        asked.append(people.patch(path, body))
    for refused in await asyncio.gather(*asked):
        assert (refused.status, refused.code) == (422, "FILTER_INVALID")
        assert [error["path"] for error in refused.body["errors"]] == [pointer]
    assert (await people.get("/v2/segments")).body["total"] == 1


async def test_a_segment_keeps_a_filter_whatever_a_change_drops(people: Any) -> None:
    tree_only = (await people.post("/v2/segments", {"name": "Tree", "filterTree": EITHER})).body
    path = f"/v2/segments/{tree_only['id']}"
    for nothing in ({"filterTree": None}, {"filters": []}, {"filters": None}):
        assert (await people.patch(path, nothing)).code == "FILTER_INVALID"
    assert (await people.get(path)).body == tree_only


async def test_a_bad_filter_is_told_before_the_version(people: Any) -> None:
    path = f"/v2/segments/{(await make(people))['id']}"
    refused = await people.patch(path, {"filterTree": {}}, headers={"If-Match": '"9"'})
    assert (refused.status, refused.code) == (422, "FILTER_INVALID")


async def test_a_name_is_taken_whatever_its_case_and_who_was_faster(people: Any) -> None:
    first = await make(people)
    taken = await people.post("/v2/segments", {"name": "vips", "filters": [VIP]})
    assert (taken.code, taken.body["meta"]) == ("SEGMENT_NAME_TAKEN", {"segmentId": first["id"]})
    second = await make(people, "Second")
    renamed = await people.patch(f"/v2/segments/{second['id']}", {"name": " VIPS"})
    assert (renamed.code, renamed.body["meta"]) == ("SEGMENT_NAME_TAKEN", {"segmentId": first["id"]})
    assert (await people.patch(f"/v2/segments/{first['id']}", {"name": "VIPS"})).status == 200
    body = {"name": "Race", "filters": [VIP]}
    answers = await asyncio.gather(*(people.post("/v2/segments", body) for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409, 409]


async def test_an_environment_holds_five_hundred(people: Any) -> None:
    await make(people)
    await people.database.execute(
        "insert into segments select (jsonb_populate_record(s, jsonb_build_object("
        "'id', 'seg_' || g, 'name_key', 'segment ' || g))).* from segments s, generate_series(1, 499) g"
    )
    full = await people.post("/v2/segments", {"name": "One more", "filters": [VIP]})
    assert (full.status, full.code, full.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 500})


async def test_a_preview_counts_and_names_some(people: Any) -> None:
    found = (await people.post("/v2/segments/preview", {"filters": [VIP]})).body
    assert (found["count"], found["sampleContactIds"]) == (10, [contact_id(n) for n in range(30, 0, -3)])
    everybody = {"filterTree": {"kind": "not", "child": leaf({"field": "optIn", "operator": "is", "value": "denied"})}}
    found = (await people.post("/v2/segments/preview", everybody)).body
    assert (found["count"], found["sampleContactIds"]) == (30, [contact_id(n) for n in range(30, 10, -1)])
    assert (await people.post("/v2/segments/preview", everybody, env="live")).body["count"] == 0
    assert (await people.get("/v2/segments")).body["total"] == 0


async def test_who_matches_is_listed_as_it_is_now(people: Any) -> None:
    path = f"/v2/segments/{(await make(people))['id']}/contacts"
    seen: list[Any] = []
    query = "?limit=4"
    while True:
        page = (await people.get(path + query)).body
        seen += page["items"]
        if "nextCursor" not in page:
            break
        query = f"?limit=4&cursor={page['nextCursor']}"
    assert [contact["id"] for contact in seen] == [contact_id(n) for n in range(30, 0, -3)]
    assert seen[0]["tags"] == ["Vip"]
    await people.database.execute("update contacts set tag_keys = '{}', tags = '{}' where id = $1", contact_id(30))
    assert (await people.get(f"{path}?limit=1")).body["items"][0]["id"] == contact_id(27)


async def test_phones_are_masked_for_who_may_not_see_them(people: Any) -> None:
    path = f"/v2/segments/{(await make(people))['id']}/contacts?limit=1"
    assert (await people.get(path)).body["items"][0]["phone"].startswith("+4915000")
    reader = await people.key("contacts:read")
    assert (await people.get(path, token=reader)).body["items"][0]["phone"] == "+49*******0030"
    assert (await people.post("/v2/segments", {"name": "x", "filters": [VIP]}, token=reader)).code == "SCOPE_REQUIRED"
    assert (await people.post("/v2/segments/preview", {"filters": [VIP]}, token=reader)).body["count"] == 10


async def test_dates_are_returned_as_timestamps(people: Any) -> None:
    condition = {"field": "lastInteraction", "operator": "before", "value": "2026-01-01T02:00:00+02:00"}
    made = await make(people, filters=[condition])
    assert made["filters"] == [{**condition, "value": "2026-01-01T00:00:00.000Z"}]
    assert format_timestamp(people.clock.now()) >= made["sizeAt"]
