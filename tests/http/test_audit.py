"""The audit log over HTTP (C24.5)."""

from datetime import timedelta
from typing import Any

import pytest

from recado.domain.core.ids import AUDIT, lowest_id
from recado.domain.core.retention import AUDIT_MONTHS, months_before
from recado.domain.core.timestamps import format_timestamp


async def write(api: Any, count: int) -> None:
    for index in range(count):
        assert (await api.patch("/v2/organization", {"name": f"Name {index}"})).status == 200


async def test_entries_come_newest_first_page_by_page(api: Any) -> None:
    await write(api, 5)
    seen, cursor, pages = [], "", 0
    while True:
        page = (await api.get(f"/v2/audit?limit=2{cursor}")).body
        seen += [entry["id"] for entry in page["items"]]
        pages += 1
        if "nextCursor" not in page:
            break
        await write(api, 1)  # what comes later is on no later page
        cursor = f"&cursor={page['nextCursor']}"
    assert pages == 3
    assert len(seen) == 5
    assert seen == sorted(seen, reverse=True)


async def test_filters_narrow_the_list(api: Any) -> None:
    await write(api, 1)
    key = await api.post("/v2/api-keys", {"name": "A", "scopes": ["org:write"]})
    await api.patch("/v2/organization", {"name": "By another"}, token=key.body["token"])

    async def actions(query: str) -> list[str]:
        return [entry["action"] for entry in (await api.get(f"/v2/audit?{query}")).body["items"]]

    assert await actions("action=api_key.create") == ["api_key.create"]
    assert await actions(f"actorId={key.body['id']}") == ["organization.update"]
    assert await actions(f"targetId={key.body['id']}") == ["api_key.create"]
    assert await actions("action=none") == []


async def test_a_period_includes_its_start_and_not_its_end(api: Any) -> None:
    await write(api, 1)
    at = (await api.get("/v2/audit")).body["items"][0]["at"]

    async def count(query: str) -> int:
        return len((await api.get(f"/v2/audit?{query}")).body["items"])

    later = format_timestamp(api.clock.now() + timedelta(hours=1))
    assert await count(f"from={at}") == 1
    assert await count(f"to={at}") == 0
    assert await count(f"from={at}&to={later}") == 1
    assert await count(f"from={later}") == 0


async def test_nothing_beyond_five_years_is_listed(api: Any) -> None:
    organization_id = api.organizations[0].organization.id
    kept_from = months_before(api.clock.now(), AUDIT_MONTHS)
    for at in (kept_from - timedelta(minutes=1), kept_from + timedelta(minutes=1)):
        await api.database.execute(
            "insert into audit (organization_id, id, actor_type, actor_id, action, details) "
            "values ($1, $2, 'system', 'system', 'number.age', '{}')",
            organization_id, lowest_id(AUDIT, at),
        )  # fmt: skip
    for query in ("", "&from=2015-01-01T00:00:00Z"):
        (item,) = (await api.get(f"/v2/audit?action=number.age{query}")).body["items"]
        assert item["at"] >= format_timestamp(kept_from)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "INVALID_PARAMETER"),
        ("limit=201", "INVALID_PARAMETER"),
        ("limit=two", "INVALID_PARAMETER"),
        ("from=yesterday", "INVALID_PARAMETER"),
        ("from=2026-01-01T00:00:00", "INVALID_PARAMETER"),
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "INVALID_PERIOD"),
        ("cursor=rubbish", "INVALID_CURSOR"),
        ("cursor=", "INVALID_PARAMETER"),
    ],
)
async def test_a_query_that_is_not_valid_is_refused(api: Any, query: str, code: str) -> None:
    answer = await api.get(f"/v2/audit?{query}")
    assert (answer.status, answer.code) == (400, code)


async def test_a_cursor_belongs_to_its_filters_organization_and_environment(api: Any) -> None:
    await write(api, 2)
    cursor = (await api.get("/v2/audit?limit=1")).body["nextCursor"]
    assert (await api.get(f"/v2/audit?limit=200&cursor={cursor}")).status == 200
    for refused in (
        api.get(f"/v2/audit?cursor={cursor}&action=organization.update"),
        api.get(f"/v2/audit?cursor={cursor}", env="live"),
        api.get(f"/v2/audit?cursor={cursor}", organization=1),
    ):
        assert (await refused).code == "INVALID_CURSOR"


async def test_nobody_reads_the_audit_of_another_organization_or_environment(api: Any) -> None:
    await write(api, 1)
    await api.post("/v2/api-keys", {"name": "A", "scopes": ["org:read"]})
    assert [e["action"] for e in (await api.get("/v2/audit", env="live")).body["items"]] == ["organization.update"]
    assert (await api.get("/v2/audit", organization=1)).body["items"] == []
