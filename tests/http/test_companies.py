"""Companies over HTTP (C20): records, their contacts, and the search that knows a CNPJ from a name."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.waiting import until_locked_out

from recado.storage.contacts import companies

CNPJ = "11222333000181"
NOBODY = "0" * 21


async def create(api: Any, nome: str = "Padaria São João", **fields: Any) -> Any:
    answer = await api.post("/v2/companies", {"nome": nome, **fields})
    assert answer.status == 201, answer.body
    return answer.body


async def contact(api: Any, serial: int, company: Any = None, *, seen: datetime | None = None, org: int = 0) -> str:
    """A contact of the environment, as it is stored."""
    contact_id = f"cnt_{serial:021}"
    await api.database.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at, "
        "company_id, company_role, last_interaction_at) "
        "values ($1, 'test', $2, $3, '', 'api', 'unknown', '', $4, $5::text, "
        "case when $5::text is not null then 'outro' end, $6)",
        api.organizations[org].organization.id,
        contact_id,
        f"+55119{serial:08}",
        api.clock.now(),
        None if company is None else company["id"],
        seen,
    )
    return contact_id


async def contacts(api: Any, count: int, company: Any) -> None:
    """Contacts of a company, as they are stored."""
    await api.database.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at, "
        "company_id, company_role) select $1, 'test', 'cnt_' || lpad(i::text, 21, '0'), "
        "'+55119' || lpad(i::text, 8, '0'), '', 'api', 'unknown', '', $2, $3, 'outro' "
        "from generate_series(1, $4::integer) i",
        company["organizationId"],
        api.clock.now(),
        company["id"],
        count,
    )


async def left(api: Any) -> dict[tuple[str | None, int], int]:
    """How many contacts belong to which company, by the revision that they have now."""
    rows = await api.database.fetch("select company_id, revision, count(*) from contacts group by 1, 2")
    return {(row["company_id"], row["revision"]): row["count"] for row in rows}


def minutes(past: timedelta) -> int:
    """Whole ones: the clock of these tests goes on while they run."""
    return past // timedelta(minutes=1)


async def of_contact(api: Any, contact_id: str) -> Any:
    return await api.database.fetchrow("select * from contacts where id = $1", contact_id)


async def account(api: Any, org: int = 0) -> str:
    """An account of an organization, as it is stored."""
    organization_id = api.organizations[org].organization.id
    account_id = f"acc_{org:021}"
    await api.database.execute(
        "insert into accounts (organization_id, id, name, email, email_key, role, extra_scopes, status, updated_at) "
        "values ($1, $2::text, 'Ana', $2::text, $2::text, 'operator', '{}', 'active', $3)",
        organization_id,
        account_id,
        api.clock.now(),
    )
    return account_id


async def names(api: Any, query: str = "") -> list[str]:
    answer = await api.get(f"/v2/companies{query}")
    assert answer.status == 200, answer.body
    return [item["nome"] for item in answer.body["items"]]


async def test_a_company_is_stored_as_it_was_given(api: Any) -> None:
    responsible, main = await account(api), await contact(api, 1)
    given = {
        "nome": " Padaria São João ",
        "cnpj": "12.abc.345/01DE-35",
        "segmento": "alimentos",
        "site": "https://padaria.example/pedidos?de=hoje",
        "endereco": "Rua das Flores, 1",
        "responsavelId": responsible,
        "contatoPrincipalId": main,
        "atributos": {"porte": "ME", "lojas": 3, "ativa": True, "obs": None, "bairros": ["Centro", "Sé"]},
    }
    answer = await api.post("/v2/companies", given)
    assert (answer.status, answer.etag) == (201, '"1"')
    company = answer.body
    assert company | {"id": "", "createdAt": "", "updatedAt": "", "createdById": ""} == given | {
        "id": "",
        "organizationId": api.organizations[0].organization.id,
        "nome": "Padaria São João",
        "cnpj": "12ABC34501DE35",
        "createdById": "",
        "createdAt": "",
        "updatedAt": "",
        "contagens": {"contatos": 1, "negociosAbertos": 0, "valorAberto": 0, "ultimaInteracao": None},
    }
    assert company["id"].startswith("emp_")
    assert company["createdById"].startswith("key_")
    again = await api.get(f"/v2/companies/{company['id']}")
    assert (again.body, again.etag) == (company, '"1"')


async def test_only_the_name_is_required(api: Any) -> None:
    company = await create(api, "Só o nome")
    assert set(company) == {
        "id", "organizationId", "nome", "atributos", "createdById", "createdAt", "updatedAt", "contagens",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"nome": " "}, "/nome", "VALIDATION_ERROR"),
        ({"nome": "x" * 201}, "/nome", "VALIDATION_ERROR"),
        ({"cnpj": "1122233300018"}, "/cnpj", "CNPJ_INVALID"),
        ({"cnpj": "1122233300018A"}, "/cnpj", "CNPJ_INVALID"),
        ({"site": "ftp://padaria.example"}, "/site", "VALIDATION_ERROR"),
        ({"site": "https://" + "x" * 2041}, "/site", "VALIDATION_ERROR"),
        ({"segmento": "x" * 101}, "/segmento", "VALIDATION_ERROR"),
        ({"endereco": "x" * 501}, "/endereco", "VALIDATION_ERROR"),
        ({"atributos": {"1a": 1}}, "/atributos", "VALIDATION_ERROR"),
        ({"atributos": {"a": {"b": 1}}}, "/atributos/a", "VALIDATION_ERROR"),
        ({"atributos": {"a": ["x" * 201]}}, "/atributos/a/0", "VALIDATION_ERROR"),
        ({"atributos": {f"a{n}": n for n in range(101)}}, "/atributos", "VALIDATION_ERROR"),
    ],
)
async def test_what_is_not_valid_is_neither_made_nor_changed(api: Any, change: Any, path: str, code: str) -> None:
    company = await create(api)
    for answer in (
        await api.post("/v2/companies", {"nome": "Outra"} | change),
        await api.patch(f"/v2/companies/{company['id']}", change),
    ):
        assert (answer.status, answer.code) == (422, code)
        assert [error["path"] for error in answer.body["errors"]] == [path]
    assert (await api.get("/v2/companies")).body["items"] == [company]


async def test_a_cnpj_with_wrong_check_digits_is_kept_and_found_only_by_name(api: Any) -> None:
    await create(api, "Errada", cnpj="11222333000199")
    assert await names(api, "?q=11222333000199") == []
    await create(api, "Filial 11222333000199")
    assert await names(api, "?q=11222333000199") == ["Filial 11222333000199"]


async def test_a_cnpj_belongs_to_one_company_of_an_environment(api: Any) -> None:
    first = await create(api, cnpj=CNPJ)
    other = await create(api, "Outra")
    for answer in (
        await api.post("/v2/companies", {"nome": "Terceira", "cnpj": "11.222.333/0001-81"}),
        await api.patch(f"/v2/companies/{other['id']}", {"cnpj": CNPJ}),
    ):
        assert (answer.status, answer.code, answer.body["meta"]) == (
            409, "CNPJ_JA_CADASTRADO", {"companyId": first["id"]},
        )  # fmt: skip
    writer = await api.key("crm:write")
    for answer in (
        await api.post("/v2/companies", {"nome": "Terceira", "cnpj": CNPJ}, token=writer),
        await api.patch(f"/v2/companies/{other['id']}", {"cnpj": CNPJ}, token=writer),
    ):
        assert (answer.code, first["id"] in str(answer.body)) == ("CNPJ_JA_CADASTRADO", False)
    for how in ({"env": "live"}, {"organization": 1}):
        assert (await api.post("/v2/companies", {"nome": "Lá", "cnpj": CNPJ}, **how)).status == 201
    assert (await api.patch(f"/v2/companies/{first['id']}", {"cnpj": CNPJ})).status == 200
    await api.patch(f"/v2/companies/{first['id']}", {"cnpj": None})
    assert (await api.patch(f"/v2/companies/{other['id']}", {"cnpj": CNPJ})).body["cnpj"] == CNPJ


async def test_of_many_who_take_a_cnpj_at_once_one_gets_it(api: Any) -> None:
    others = [await create(api, f"Empresa {n}") for n in range(3)]
    answers = await asyncio.gather(
        *(api.post("/v2/companies", {"nome": f"Nova {n}", "cnpj": CNPJ}) for n in range(4)),
        *(api.patch(f"/v2/companies/{other['id']}", {"cnpj": CNPJ}) for other in others),
    )
    refused = [answer for answer in answers if answer.status == 409]
    assert len(refused) == len(answers) - 1
    assert {answer.code for answer in refused} == {"CNPJ_JA_CADASTRADO"}
    assert (await api.get(f"/v2/companies?q={CNPJ}")).body["total"] == 1


async def test_the_list_is_by_name_without_case_and_accents(api: Any) -> None:
    for nome in ("zebra", "Água", "abacate", "Éden", "eco", "Árvore", "ZEBRA"):
        await create(api, nome)
    assert await names(api) == ["abacate", "Água", "Árvore", "eco", "Éden", "zebra", "ZEBRA"]
    assert await names(api, "?limit=3&skip=4") == ["Éden", "zebra", "ZEBRA"]
    assert (await api.get("/v2/companies?limit=1")).body["total"] == 7


async def test_pages_hold_25_and_at_most_100(api: Any) -> None:
    for n in range(26):
        await create(api, f"Empresa {n:02}")
    assert len(await names(api)) == 25
    assert len(await names(api, "?limit=100")) == 26
    for query in ("?limit=0", "?limit=101", "?skip=-1", "?q=", "?limit=a"):
        assert (await api.get(f"/v2/companies{query}")).status == 400


async def test_a_search_finds_parts_of_names_and_whole_cnpjs(api: Any) -> None:
    await create(api, "Padaria São João", cnpj=CNPJ)
    await create(api, "Mercado do João_100%")
    assert await names(api, "?q=JOAO") == ["Mercado do João_100%", "Padaria São João"]
    assert await names(api, "?q=o_1") == ["Mercado do João_100%"]
    assert await names(api, "?q=100%25") == ["Mercado do João_100%"]
    assert await names(api, "?q=%25") == ["Mercado do João_100%"]
    assert await names(api, "?q=11.222.333/0001-81") == ["Padaria São João"]
    assert await names(api, f"?q={CNPJ[:13]}") == []


async def test_the_list_can_be_of_one_responsible_account(api: Any) -> None:
    responsible = await account(api)
    await create(api, "Dela", responsavelId=responsible)
    await create(api, "De ninguém")
    assert await names(api, f"?responsavelId={responsible}") == ["Dela"]
    assert await names(api, f"?responsavelId=acc_{NOBODY[:-1]}9") == []


@pytest.mark.parametrize("field", ["responsavelId", "contatoPrincipalId"])
async def test_references_must_be_of_this_organization(api: Any, field: str) -> None:
    prefix, foreign = {
        "responsavelId": ("acc_", await account(api, org=1)),
        "contatoPrincipalId": ("cnt_", await contact(api, 7, org=1)),
    }[field]
    company = await create(api)
    for value in (foreign, prefix + NOBODY[:-1] + "9", "nothing", ""):
        for answer in (
            await api.post("/v2/companies", {"nome": "Outra", field: value}),
            await api.patch(f"/v2/companies/{company['id']}", {field: value}),
        ):
            assert (answer.status, answer.code) == (422, "REFERENCE_NOT_FOUND")
            assert answer.body["meta"] == {"field": field}
    assert (await api.get("/v2/companies")).body["items"] == [company]


async def test_a_main_contact_joins_the_company_unless_it_has_one(api: Any) -> None:
    free = await contact(api, 1)
    company = await create(api, contatoPrincipalId=free)
    joined = await of_contact(api, free)
    assert (joined["company_id"], joined["revision"]) == (company["id"], 2)
    other = await create(api, "Outra", contatoPrincipalId=free)
    assert (await of_contact(api, free))["company_id"] == company["id"]
    assert other["contagens"]["contatos"] == 0
    second = await contact(api, 2)
    await api.patch(f"/v2/companies/{other['id']}", {"contatoPrincipalId": second})
    assert (await of_contact(api, second))["company_id"] == other["id"]


async def test_a_main_contact_that_is_gone_is_not_shown(api: Any) -> None:
    main = await contact(api, 1)
    company = await create(api, contatoPrincipalId=main)
    await api.database.execute("delete from contacts where id = $1", main)
    assert "contatoPrincipalId" not in (await api.get(f"/v2/companies/{company['id']}")).body
    assert "contatoPrincipalId" not in (await api.get("/v2/companies")).body["items"][0]


Ask = Callable[[Any, str, str], Awaitable[Any]]


async def moves_the_contact(api: Any, contact_id: str, company_id: str) -> Any:
    return await api.patch(f"/contacts/{contact_id}", {"companyId": company_id})


async def makes_a_company(api: Any, contact_id: str, company_id: str) -> Any:
    return await api.post("/v2/companies", {"nome": "Nova", "contatoPrincipalId": contact_id})


async def changes_the_company(api: Any, contact_id: str, company_id: str) -> Any:
    return await api.patch(f"/v2/companies/{company_id}", {"contatoPrincipalId": contact_id})


async def imports_the_contact(api: Any, contact_id: str, company_id: str) -> Any:
    """In two turns: the first changes the contact, and only the second names the company."""
    row = {"phone": "+5511900000001", "optIn": {"status": "granted"}}
    return await api.post("/contacts/import", {"contacts": [row | {"name": "Ana"}, row | {"companyId": company_id}]})


@pytest.mark.parametrize("ask", [moves_the_contact, imports_the_contact, makes_a_company, changes_the_company])
async def test_who_waits_for_a_company_has_no_contact_that_its_deletion_wants(api: Any, ask: Ask) -> None:
    company, contact_id = await create(api), await contact(api, 1)

    async with api.database.transaction() as deletion:
        assert await companies.get_to_delete(deletion, company["organizationId"], "test", company["id"])
        asked = asyncio.ensure_future(ask(api, contact_id, company["id"]))
        await until_locked_out(api.database)  # the request waits for the deletion
        free = await deletion.fetch("select id from contacts where id = $1 for update skip locked", contact_id)
        assert [row["id"] for row in free] == [contact_id]
        await deletion.execute("update company_counts set companies = companies + 1")  # it is left undone
    assert (await asked).status in (200, 201)


async def test_contacts_are_counted_with_their_latest_interaction(api: Any) -> None:
    company, other = await create(api), await create(api, "Outra")
    late = datetime(2026, 11, 20, 12, tzinfo=UTC)
    for serial, seen in enumerate((late - timedelta(days=1), late, None)):
        await contact(api, serial, company, seen=seen)
    items = {item["id"]: item["contagens"] for item in (await api.get("/v2/companies")).body["items"]}
    assert items[company["id"]] == {
        "contatos": 3, "negociosAbertos": 0, "valorAberto": 0, "ultimaInteracao": "2026-11-20T12:00:00.000Z",
    }  # fmt: skip
    assert items[other["id"]]["contatos"] == 0


async def test_the_contacts_of_a_company_need_both_scopes_and_are_masked(api: Any) -> None:
    company, other = await create(api), await create(api, "Outra")
    mine = [await contact(api, serial, company) for serial in (1, 2, 3)]
    await contact(api, 4, other)
    path = f"/v2/companies/{company['id']}/contacts"
    first = (await api.get(f"{path}?limit=2")).body
    rest = (await api.get(f"{path}?limit=2&skip=2")).body
    assert [item["id"] for item in first["items"] + rest["items"]] == mine[::-1]
    assert (first["total"], first["items"][0]["phone"]) == (3, "+5511900000003")
    masked = await api.get(path, token=await api.key("crm:read", "contacts:read"))
    assert masked.body["items"][0]["phone"] == "+55*******0003"
    for scope, missing in (("crm:read", "contacts:read"), ("contacts:read", "crm:read")):
        refused = await api.get(path, token=await api.key(scope))
        assert (refused.status, refused.body["meta"]) == (403, {"requiredScope": missing})


async def test_a_patch_changes_what_it_names_and_merges_attributes(api: Any) -> None:
    company = await create(api, segmento="alimentos", endereco="Rua A", atributos={"a": 1, "b": "x", "c": True})
    path = f"/v2/companies/{company['id']}"
    answer = await api.patch(
        path, {"endereco": None, "atributos": {"a": 2, "d": None}, "removerAtributos": ["b", "nothing"]}
    )
    assert (answer.status, answer.etag) == (200, '"2"')
    assert answer.body["atributos"] == {"a": 2, "c": True, "d": None}
    assert answer.body["segmento"] == "alimentos"
    assert "endereco" not in answer.body
    assert (await api.patch(path, {"atributos": None})).body["atributos"] == {}
    assert (await api.patch(path, {"nome": None})).body["errors"][0]["path"] == "/nome"


async def test_a_patch_that_changes_nothing_makes_no_version(api: Any) -> None:
    company = await create(api, atributos={"a": 1})
    answer = await api.patch(f"/v2/companies/{company['id']}", {"nome": company["nome"], "atributos": {"a": 1}})
    assert (answer.status, answer.etag, answer.body) == (200, '"1"', company)


async def test_a_version_that_is_no_more_is_neither_changed_nor_deleted(api: Any) -> None:
    company = await create(api)
    path = f"/v2/companies/{company['id']}"
    await api.patch(path, {"nome": "Nova"})
    stale = {"headers": {"If-Match": '"1"'}}
    for answer in (await api.patch(path, {"nome": "Velha"}, **stale), await api.delete(path, **stale)):
        assert (answer.status, answer.code) == (412, "VERSION_MISMATCH")
        assert answer.body["meta"] == {"currentETag": '"2"'}
    assert (await api.get(path)).body["nome"] == "Nova"
    assert (await api.delete(path, headers={"If-Match": '"2"'})).status == 204


@pytest.mark.parametrize("count", [1, companies.RELEASED_AT_ONCE + 1])
async def test_a_company_that_changes_while_it_is_deleted_keeps_its_contacts(
    api: Any, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    company = await create(api)
    path, read = f"/v2/companies/{company['id']}", companies.COMPANIES.get
    await contacts(api, count, company)

    async def read_before_a_change(*which: Any) -> Any:
        found = await read(*which)
        await api.database.execute("update companies set revision = 2")
        return found

    monkeypatch.setattr(companies.COMPANIES, "get", read_before_a_change)
    assert (await api.delete(path, headers={"If-Match": '"1"'})).code == "VERSION_MISMATCH"
    assert await left(api) == {(company["id"], 1): count}


async def test_a_company_whose_contacts_go_in_blocks_is_changed_by_nobody_who_knows_it_with_them(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    company, other = await create(api), await create(api, "Outra")
    path, release = f"/v2/companies/{company['id']}", companies.release_contacts
    await contacts(api, companies.RELEASED_AT_ONCE + 1, company)
    theirs = await contact(api, 0, other)
    known, seen, answers = {"headers": {"If-Match": '"1"'}}, [], []

    async def changed_between(*block: Any) -> int:
        seen.append(await left(api))
        if len(seen) == 2:
            answers.append(await api.patch(path, {"nome": "Nova"}, **known))
        return await release(*block)

    monkeypatch.setattr(companies, "release_contacts", changed_between)
    assert (await api.delete(path, **known)).status == 204
    assert [answer.code for answer in answers] == ["VERSION_MISMATCH"]
    assert seen[1][company["id"], 1] == 1
    assert await left(api) == {(None, 2): companies.RELEASED_AT_ONCE + 1, (other["id"], 1): 1}
    assert (await of_contact(api, theirs))["company_role"] == "outro"
    assert (await api.get(path)).status == 404


async def test_contacts_that_go_in_blocks_say_when_their_block_went(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    company, release = await create(api), companies.release_contacts
    await contacts(api, 2 * companies.RELEASED_AT_ONCE + 1, company)
    began = api.clock.now()

    async def slow(*block: Any) -> int:
        released = await release(*block)
        api.clock.shift(120)
        return released

    monkeypatch.setattr(companies, "release_contacts", slow)
    assert (await api.delete(f"/v2/companies/{company['id']}")).status == 204
    rows = await api.database.fetch("select updated_at, count(*) from contacts group by 1")
    assert {minutes(row["updated_at"] - began): row["count"] for row in rows} == {
        0: companies.RELEASED_AT_ONCE,
        2: companies.RELEASED_AT_ONCE,
        4: 1,
    }


async def test_contacts_that_join_a_company_while_it_is_deleted_say_when_they_left_it(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    company, release = await create(api), companies.release_in_blocks
    await contacts(api, companies.RELEASED_AT_ONCE + 1, company)
    began = api.clock.now()

    async def joined_after(*arguments: Any) -> None:
        await release(*arguments)
        await contact(api, 0, company)
        api.clock.shift(120)

    monkeypatch.setattr(companies, "release_in_blocks", joined_after)
    assert (await api.delete(f"/v2/companies/{company['id']}")).status == 204
    joined = await of_contact(api, f"cnt_{0:021}")
    assert (joined["company_id"], minutes(joined["updated_at"] - began)) == (None, 2)


async def test_a_deletion_lets_the_contacts_go(api: Any) -> None:
    company, other = await create(api, cnpj=CNPJ), await create(api, "Outra")
    mine, theirs = await contact(api, 1, company), await contact(api, 2, other)
    assert (await api.delete(f"/v2/companies/{company['id']}")).status == 204
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        assert (await api.call(method, f"/v2/companies/{company['id']}", body)).status == 404
    released = await of_contact(api, mine)
    assert (released["company_id"], released["company_role"], released["revision"]) == (None, None, 2)
    assert (await of_contact(api, theirs))["company_id"] == other["id"]
    assert (await api.post("/v2/companies", {"nome": "Nova", "cnpj": CNPJ})).status == 201
    entries = (await api.get("/v2/audit?action=company.delete")).body["items"]
    assert [entry["targetId"] for entry in entries] == [company["id"]]


async def test_an_environment_holds_a_hundred_thousand(api: Any) -> None:
    company = await create(api)
    await api.database.execute("update company_counts set companies = 100000")
    answer = await api.post("/v2/companies", {"nome": "Uma a mais"})
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 100_000})
    assert (await api.post("/v2/companies", {"nome": "Em live"}, env="live")).status == 201
    await api.delete(f"/v2/companies/{company['id']}")
    assert (await api.post("/v2/companies", {"nome": "No lugar dela"})).status == 201
