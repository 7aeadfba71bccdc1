"""Lists of large records over HTTP: whole by `skip`, ended early by cursor, and nothing comes twice (C5.7)."""

import secrets
from typing import Any

import pytest
from tests.http.template_drafts import create
from tests.people import insert_people

PAGE = 2**20


def text(size: int) -> str:
    """What does not pack."""
    return secrets.token_urlsafe(size)[:size]


def attributes(size: int) -> dict[str, str]:
    return {f"a{n}": text(1000) for n in range(size // 1000)}


async def add_contacts(api: Any) -> str:
    organization_id = api.organizations[0].organization.id
    company = (await api.post("/v2/companies", {"nome": "All of them"})).body["id"]
    people = [{"attributes": attributes(90_000), "company_id": company} for _ in range(30)]
    await insert_people(api.database, organization_id, "test", people)
    return str(company)


async def walked(api: Any, path: str) -> list[list[str]]:
    """The ids of each page by cursor."""
    pages: list[list[str]] = []
    cursor = ""
    while True:
        body = (await api.get(f"{path}{cursor}")).body
        pages.append([item["id"] for item in body["items"]])
        if "nextCursor" not in body:
            return pages
        cursor = f"&cursor={body['nextCursor']}"


async def test_contacts_come_whole_by_skip_and_in_parts_by_cursor(api: Any) -> None:
    company = await add_contacts(api)
    whole = (await api.get("/contacts?limit=200")).body
    ids = [item["id"] for item in whole["items"]]
    assert (ids, whole["total"]) == (sorted(ids, reverse=True), 30)
    assert len(set(ids)) == 30
    assert "nextCursor" not in whole
    assert [item["id"] for item in (await api.get("/contacts?limit=20&skip=5")).body["items"]] == ids[5:25]
    of_company = (await api.get(f"/v2/companies/{company}/contacts?limit=100")).body
    assert [item["id"] for item in of_company["items"]] == ids

    pages = await walked(api, "/contacts?limit=15")
    assert [each for page in pages for each in page] == ids
    assert len(pages[0]) == 15
    assert max(map(len, pages[1:])) < 15  # 15 of them are more than one page

    changed = await walked(api, "/contacts?limit=15&updatedSince=2020-01-01T00:00:00Z")
    assert [each for page in changed for each in page] == ids[::-1]


async def test_contacts_of_a_segment_and_of_a_list_come_each_once(api: Any) -> None:
    await add_contacts(api)
    ids = [item["id"] for item in (await api.get("/contacts?limit=200")).body["items"]]
    everybody = [{"field": "optIn", "operator": "is", "value": "unknown"}]
    segment = (await api.post("/v2/segments", {"name": "All", "filters": everybody})).body["id"]
    pages = await walked(api, f"/v2/segments/{segment}/contacts?limit=200")
    assert [each for page in pages for each in page] == ids
    assert len(pages) > 1
    members = (await api.post("/v2/lists", {"name": "All"})).body["id"]
    await api.post(f"/v2/lists/{members}/members", {"contactIds": ids})
    listed = (await api.get(f"/contacts?limit=200&listId={members}")).body
    assert ([item["id"] for item in listed["items"]], listed["total"]) == (ids, 30)


@pytest.mark.long
async def test_segments_companies_and_templates_come_whole(api: Any) -> None:
    values = [text(190) for _ in range(100)]
    condition = {"field": "attribute", "key": "k", "operator": "in", "value": values}
    for n in range(4):
        assert (await api.post("/v2/segments", {"name": f"s{n}", "filters": [condition] * 20})).status == 200
        assert (await api.post("/v2/companies", {"nome": f"c{n}", "atributos": attributes(100_000)})).status == 201
        await create(api, name=f"t{n}", components=[{"type": "BODY", "payload": {"text": text(600_000)}}])
    # Larger than callers may make them in one call, and as large as they may become in several.
    await api.database.execute("update companies set attributes = attributes || $1", {"more": text(600_000)})
    for path, name, order in (
        ("/v2/segments", "name", ["s3", "s2", "s1", "s0"]),
        ("/v2/companies", "nome", ["c0", "c1", "c2", "c3"]),
        ("/v2/templates", "name", ["t3", "t2", "t1", "t0"]),
    ):
        body = (await api.get(f"{path}?limit=100")).body
        assert ([item[name] for item in body["items"]], body["total"]) == (order, 4), path
        assert [item[name] for item in (await api.get(f"{path}?limit=2&skip=1")).body["items"]] == order[1:3], path


@pytest.mark.parametrize("path", ["/contacts?limit=200", "/contacts?limit=200&tag=some&q=nobody"])
async def test_a_list_of_nobody_is_empty(api: Any, path: str) -> None:
    assert (await api.get(path)).body == {"items": [], "total": 0}
