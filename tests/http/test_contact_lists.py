"""Lists of contacts through the interface: filters, search, order and pages (C5, C12.1, C12.8, C12.9)."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from tests.http.conftest import Api
from tests.http.people import session
from tests.people import insert_people

from recado.storage.contacts import contact_fields


async def made(api: Api, serial: int = 0, **fields: Any) -> str:
    answer = await api.post("/contacts", {"phone": f"+551198765{serial:04}", **fields})
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def found(api: Api, query: str, **how: Any) -> list[str]:
    answer = await api.get(f"/contacts?{query}", **how)
    assert answer.status == 200, answer.body
    return [item["id"] for item in answer.body["items"]]


@pytest.mark.parametrize(
    "q",
    [
        "maria", "MÁRIA", "conc", "da conceicao", "joao", "example", "m.souza", "souza maria", "+55 (11) 98765-0007",
        "5511987", "0007", "87650007", "maria 0007",
    ],
)  # fmt: skip
async def test_a_search_finds_beginnings_of_words_and_ends_of_phones(api: Api, q: str) -> None:
    wanted = await made(api, 7, name="Maria da Conceição", email="m.souza@example.com")
    # What else a search finds of this one: the profile name.
    await api.database.execute("update contacts set chatapp_profile_name = 'João' where id = $1", wanted)
    await api.patch(f"/contacts/{wanted}", {"attributes": {"touched": True}})
    other = await api.post("/contacts", {"phone": "+442071234567", "name": "Ana Lima", "email": "ana@host.org"})
    assert other.status == 201
    assert await found(api, f"q={quote(q)}") == [wanted]


@pytest.mark.parametrize("q", ["aria", "xample", "98765", "maria ana", "...", "'", "\\", "& | !", "0008"])
async def test_a_search_finds_nothing_else(api: Api, q: str) -> None:
    await made(api, 7, name="Maria da Conceição", email="m.souza@example.com")
    assert await found(api, f"q={quote(q)}") == []


async def test_a_search_sees_no_other_environment_and_no_other_organization(api: Api) -> None:
    await made(api, name="Maria")
    assert await found(api, "q=maria", env="live") == []
    assert await found(api, "q=maria", organization=1) == []


async def test_a_search_follows_a_change(api: Api) -> None:
    contact = await made(api, name="Maria")
    await api.patch(f"/contacts/{contact}", {"name": "Ana"})
    assert (await found(api, "q=maria"), await found(api, "q=ana")) == ([], [contact])


async def test_without_the_scope_a_search_is_dropped_and_the_answer_says_so(api: Api) -> None:
    contact = await made(api, name="Maria")
    key = await api.key("contacts:read")
    answer = await api.get("/contacts?q=nobody", token=key)
    assert [item["id"] for item in answer.body["items"]] == [contact]
    assert [(warning["code"], warning["parameter"]) for warning in answer.body["warnings"]] == [("FILTER_DROPPED", "q")]
    assert "warnings" not in (await api.get("/contacts?q=nobody")).body


async def test_each_filter_narrows_the_list(api: Api) -> None:
    plain = await made(api, 1)
    tagged = await made(api, 2, tags=["Cliente VIP"])
    granted = await made(api, 3, optIn={"status": "granted"})
    named = await made(api, 4, externalId="crm-4", source="api")
    assert await found(api, "") == [named, granted, tagged, plain]
    assert await found(api, "tag=cliente%20vip") == [tagged]
    assert await found(api, "optInStatus=granted") == [granted]
    assert await found(api, "source=api") == [named]
    assert await found(api, "externalId=crm-4") == [named]
    assert await found(api, "externalId=crm-4&source=manual") == []
    static = (await api.post("/v2/lists", {"name": "one"})).body["id"]
    await api.post(f"/v2/lists/{static}/members", {"contactIds": [plain, granted]})
    assert await found(api, f"listId={static}") == [granted, plain]
    assert await found(api, f"listId={static}&optInStatus=unknown") == [plain]
    assert await found(api, f"listId={static}&q=0003") == [granted]
    assert await found(api, "listId=lst_nobody") == []


async def test_documents_are_looked_for_by_sessions_with_the_scope_only(api: Api) -> None:
    contact = await made(api, 1, cpf="52998224725")
    company = await made(api, 2, cnpj="12ABC34501DE35")
    owner = await session(api)
    assert await found(api, "documento=529.982.247-25", token=owner) == [contact]
    assert await found(api, "documento=12.abc.345/01de-35", token=owner) == [company]
    assert await found(api, "documento=111.444.777-35", token=owner) == []
    assert await found(api, "documento=none", token=owner) == []
    assert await found(api, "documento=529.982.247-25", token=await session(api, env="live")) == []
    query = "/contacts?documento=529.982.247-25"
    by_key, by_operator = await api.get(query), await api.get(query, token=await session(api, "operator"))
    assert (by_key.status, by_key.code) == (403, "SESSION_ONLY")
    assert (by_operator.status, by_operator.code) == (403, "SCOPE_REQUIRED")
    assert by_operator.body["meta"] == {"requiredScope": "contacts:pii"}


@pytest.mark.parametrize(
    "query", ["", "q=client", "tag=all", "optInStatus=unknown", "updatedSince=2020-01-01T00:00:00Z"]
)
async def test_pages_by_cursor_show_everyone_once(api: Api, query: str) -> None:
    everyone = [await made(api, n, name=f"Client {n}", tags=["all"]) for n in range(7)]
    await api.patch(f"/contacts/{everyone[2]}", {"name": "Client changed"})
    whole = await found(api, query)
    assert sorted(whole) == sorted(everyone)
    seen, cursor = [], ""
    while True:
        answer = (await api.get(f"/contacts?{query}&limit=3{cursor}")).body
        assert answer["total"] == 7
        seen += [item["id"] for item in answer["items"]]
        if "nextCursor" not in answer:
            break
        cursor = f"&cursor={answer['nextCursor']}"
    assert seen == whole
    assert await found(api, f"{query}&limit=3&skip=5") == whole[5:]


async def test_pages_of_a_static_list_show_its_members_once_and_nobody_else(api: Api) -> None:
    everyone = [await made(api, n) for n in range(7)]
    await made(api, 8)
    static = (await api.post("/v2/lists", {"name": "one"})).body["id"]
    await api.post(f"/v2/lists/{static}/members", {"contactIds": everyone})
    query, whole = f"listId={static}", everyone[::-1]
    assert await found(api, query) == whole
    answer = (await api.get(f"/contacts?{query}&limit=3")).body
    assert (answer["total"], [item["id"] for item in answer["items"]]) == (7, whole[:3])
    after = f"{query}&cursor={answer['nextCursor']}"
    assert await found(api, after) == whole[3:]
    assert [await found(api, f"{query}&limit=2&skip={skip}") for skip in (2, 6, 7)] == [whole[2:4], whole[6:], []]
    for stranger in ({"env": "live"}, {"organization": 1}):
        answer = (await api.get(f"/contacts?{query}", **stranger)).body
        assert (answer["total"], answer["items"]) == (0, [])
    await api.delete(f"/contacts/{whole[0]}")
    assert (await api.get(f"/contacts?{query}")).body["total"] == 6
    assert await found(api, query) == whole[1:]


async def test_the_total_of_a_long_static_list_is_its_size_and_called_an_estimate(api: Api) -> None:
    contact = await made(api)
    static = (await api.post("/v2/lists", {"name": "long"})).body["id"]
    await api.post(f"/v2/lists/{static}/members", {"contactIds": [contact]})
    await api.database.execute("update static_lists set size = 10000 where id = $1", static)
    answer = (await api.get(f"/contacts?listId={static}&skip=1")).body
    assert (answer["total"], "totalEstimated" in answer) == (10_000, False)
    await api.database.execute("update static_lists set size = 25000 where id = $1", static)
    answer = (await api.get(f"/contacts?listId={static}&skip=1")).body
    assert (answer["total"], answer["totalEstimated"]) == (25_000, True)


async def test_a_page_deep_in_a_static_list_is_read_from_where_an_earlier_one_came_by(api: Api) -> None:
    organization_id = api.organizations[0].organization.id
    people = await insert_people(api.database, organization_id, "test", [{}] * 1_004)
    static = (await api.post("/v2/lists", {"name": "long"})).body["id"]
    await api.post(f"/v2/lists/{static}/members", {"contactIds": people[:1_002]})
    query = f"listId={static}&skip=1000"
    assert await found(api, query) == [people[1], people[0]]
    # One that joins past the list's row, as nothing does, is not seen in front of the page.
    await api.database.execute(
        "insert into static_list_members values ($1, $2, $3, now())", organization_id, static, people[1_003]
    )
    assert await found(api, query) == [people[1], people[0]]
    await api.post(f"/v2/lists/{static}/members", {"contactIds": [people[1_002]]})
    assert await found(api, query) == people[3::-1]


async def test_changes_are_listed_oldest_first_from_their_moment_on(api: Api) -> None:
    first, second, third = [await made(api, n) for n in range(3)]
    at = (await api.get(f"/contacts/{second}")).body["updatedAt"]
    await api.patch(f"/contacts/{first}", {"name": "later"})
    assert await found(api, f"updatedSince={at}") == [second, third, first]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "skip=100001", "optInStatus=yes", "q=", "updatedSince=2020", "cursor=x", "source=x"],
)
async def test_a_parameter_out_of_its_range_is_refused(api: Api, query: str) -> None:
    assert (await api.get(f"/contacts?{query}")).status == 400


async def test_debt_groups_are_listed_by_state_company_and_contact(api: Api) -> None:
    groups = [
        {"company": "Loja Ágil", "phones": ["+5511987650000"], "status": "vencida", "amountCents": 5},
        {"company": "Banco", "phones": ["+5511987650000"], "reference": "contrato"},
    ]
    one = await made(api, 1, debtorGroups=groups)
    two = await made(api, 2, debtorGroups=groups[1:])
    listed = (await api.get("/v2/debtor-groups")).body
    assert [(item["company"], item["contactId"]) for item in listed["items"]] == [
        ("Banco", two), ("Banco", one), ("Loja Ágil", one),
    ]  # fmt: skip
    assert listed["total"] == 3
    for query, total in (("company=agil", 1), ("status=vencida", 1), (f"contactId={one}", 2), ("company=%25", 0)):
        assert (await api.get(f"/v2/debtor-groups?{query}")).body["total"] == total
    assert (await api.get("/v2/debtor-groups", env="live")).body["total"] == 0


async def test_the_catalogue_names_standard_fields_and_the_attributes_in_use(api: Api) -> None:
    await made(api, 1, attributes={"cidade": "Recife", "pontos": 1, "nada": None})
    await made(api, 2, attributes={"cidade": "Olinda", "pontos": "muitos", "lista": ["a"]})
    await made(api, 3, attributes={"cidade": "Olinda"})
    await contact_fields.refresh(api.database, api.clock.now())
    items = (await api.get("/contacts/fields")).body["items"]
    attributes = [(item["key"], item["type"]) for item in items if item["origin"] == "attribute"]
    assert attributes == [("cidade", "text"), ("pontos", "mixed"), ("lista", "list"), ("nada", "text")]
    by_key = {item["key"]: item for item in items}
    assert by_key["tags"]["operators"] == ["is", "is_not", "in", "not_in", "exists", "not_exists"]
    assert by_key["cidade"]["journeyVariable"] == "attributes.cidade"
    await api.patch(f"/contacts/{(await found(api, 'q=0002'))[0]}", {"removeAttributes": ["lista"]})
    await contact_fields.refresh(api.database, api.clock.now())
    items = (await api.get("/contacts/fields")).body["items"]
    assert "lista" not in {item["key"] for item in items}
    assert (await api.get("/contacts/fields", env="live")).body["items"][-1]["origin"] == "standard"


async def test_an_attribute_of_a_change_that_was_committed_while_keys_were_counted_is_found_at_the_next_count(
    api: Api,
) -> None:
    contact_id = await made(api, 1)
    counted_at = api.clock.now() + timedelta(hours=1)
    await contact_fields.refresh(api.database, counted_at)
    await api.database.execute(
        "update contacts set attributes = $1, updated_at = $2 where id = $3",
        {"late": 1},
        counted_at - timedelta(seconds=1),
        contact_id,
    )
    await contact_fields.refresh(api.database, counted_at + timedelta(hours=1))
    items = (await api.get("/contacts/fields")).body["items"]
    assert "late" in {item["key"] for item in items}
