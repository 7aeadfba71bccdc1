"""What journeys use is not deleted while one that is not archived does (C7.1, C11.1, C13.1, C14.1)."""

import asyncio
from typing import Any

import pytest
from tests.http.conftest import Answer, Api
from tests.http.template_drafts import create, submitted_live
from tests.waiting import until_locked_out

JOURNEYS = "/v2/journeys"
KEPT = "?permitirProblemas=true"
KINDS = ("list", "segment", "number", "template", "email template")
TABLES = {
    "list": "static_lists", "segment": "segments", "number": "numbers", "template": "templates",
    "email template": "email_templates",
}  # fmt: skip
GONE = {
    "list": "delete from {}", "segment": "delete from {}", "number": "update {} set deleted_at = now()",
    "template": "update {} set deleted_at = now()", "email template": "update {} set status = 'archived'",
}  # fmt: skip
END = {"id": "end", "tipo": "fim"}


async def record(api: Api, kind: str) -> tuple[str, dict[str, Any]]:
    """The path of a new record of that kind, and what a journey that uses it says."""
    match kind:
        case "list":
            found = (await api.post("/v2/lists", {"name": "Clients"})).body["id"]
            return f"/v2/lists/{found}", {"gatilho": {"tipo": "lista", "listId": found}}
        case "segment":
            filters = [{"field": "tag", "operator": "is", "value": "vip"}]
            found = (await api.post("/v2/segments", {"name": "Recent", "filters": filters})).body["id"]
            return f"/v2/segments/{found}", {"gatilho": {"tipo": "segmento", "segmentId": found}}
        case "number":
            return f"/numbers/{api.organizations[0].number.id}", chat(numberId=api.organizations[0].number.id)
        case "email template":
            mail = {"name": "Order", "subject": "Order", "html": "<p>Order</p>"}
            found = (await api.post("/v2/email/templates", mail)).body["id"]
            return f"/v2/email/templates/{found}", chat(canal="email", templateId=found)
        case _:
            found = (await create(api))["id"]
            return f"/v2/templates/{found}", chat(templateId=found)


def chat(**fields: Any) -> dict[str, Any]:
    send = {"id": "send", "tipo": "enviar", "canal": "chatapp", "proximo": "end", **fields}
    return {"inicio": "send", "passos": [send, END]}


def journey(**fields: Any) -> dict[str, Any]:
    return {"name": "Welcome", "gatilho": {"tipo": "api"}, "inicio": "end", "passos": [END], **fields}


async def made(api: Api, **fields: Any) -> str:
    answer = await api.post(JOURNEYS + KEPT, journey(**fields))
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


def refused(answer: Answer, journey_id: str) -> bool:
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "RESOURCE_IN_USE", {"journeyId": journey_id})
    return True


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_draft_uses_is_not_deleted(api: Api, kind: str) -> None:
    path, using = await record(api, kind)
    first, second = await made(api, **using), await made(api, **using)
    assert refused(await api.delete(path), first)
    assert (await api.get(path)).status == 200
    writer = await api.key("contacts:write", "templates:write", "numbers:write", "email:write")
    unnamed = await api.delete(path, token=writer)
    assert (unnamed.code, first in str(unnamed.body)) == ("RESOURCE_IN_USE", False)
    await api.post(f"{JOURNEYS}/{first}/archive")
    assert refused(await api.delete(path), second)
    await api.post(f"{JOURNEYS}/{second}/archive")
    assert (await api.delete(path)).status == 204


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_draft_uses_no_more_is_deleted(api: Api, kind: str) -> None:
    path, using = await record(api, kind)
    found = await made(api, **using)
    assert (await api.call("PUT", f"{JOURNEYS}/{found}", journey())).status == 200
    assert (await api.call("PUT", f"{JOURNEYS}/{found}{KEPT}", journey(**using))).status == 200
    assert refused(await api.delete(path), found)
    assert (await api.call("PUT", f"{JOURNEYS}/{found}", journey())).status == 200
    assert (await api.delete(path)).status == 204


async def test_copies_and_versions_use_what_their_source_does(api: Api) -> None:
    path, using = await record(api, "list")
    source = await made(api, **using)
    copy = (await api.post(f"{JOURNEYS}/{source}/duplicate")).body["id"]
    await api.post(f"{JOURNEYS}/{source}/archive")
    assert refused(await api.delete(path), copy)
    await api.post(f"{JOURNEYS}/{copy}/archive")
    version = (await api.post(f"{JOURNEYS}/{source}/versao")).body["id"]
    assert refused(await api.delete(path), version)


async def test_what_a_definition_ignores_is_deleted(api: Api) -> None:
    """And what another organization, or the other environment, names."""
    list_path, _ = await record(api, "list")
    template_path, _ = await record(api, "template")
    list_id, template_id = (path.rpartition("/")[2] for path in (list_path, template_path))
    sms = [{"id": "end", "tipo": "enviar", "canal": "sms", "texto": "Hello", "templateId": template_id}]
    await made(api, gatilho={"tipo": "evento", "nome": "order", "listId": list_id}, passos=sms)
    foreign = {"gatilho": {"tipo": "lista", "listId": list_id}, **chat(templateId=template_id)}
    for how in ({"organization": 1}, {"env": "live"}):
        assert (await api.post(JOURNEYS + KEPT, journey(**foreign), **how)).status == 201
    assert [(await api.delete(path)).status for path in (list_path, template_path)] == [204, 204]


async def test_the_version_that_the_caller_knows_comes_first(api: Api) -> None:
    path, using = await record(api, "list")
    await made(api, **using)
    assert (await api.delete(path, headers={"If-Match": '"7"'})).code == "VERSION_MISMATCH"


async def test_a_template_that_a_journey_uses_stays_at_the_provider(api: Api) -> None:
    template = await submitted_live(api)
    await api.review.run("live")
    using = journey(**chat(templateId=template["id"]))
    found = (await api.post(JOURNEYS + KEPT, using, env="live")).body["id"]
    assert refused(await api.delete(f"/v2/templates/{template['id']}", env="live"), found)
    assert api.provider.asked_for("delete_template") == []


@pytest.mark.parametrize("kind", KINDS)
async def test_who_deletes_waits_for_who_begins_to_use(api: Api, kind: str) -> None:
    path, using = await record(api, kind)
    async with api.database.transaction() as connection:
        # The journey has what it uses already, and waits for its organization.
        await connection.execute("select from organizations for update")
        keeping = asyncio.ensure_future(api.post(JOURNEYS + KEPT, journey(**using)))
        await until_locked_out(api.database, 1)
        deleting = asyncio.ensure_future(api.delete(path))
        await until_locked_out(api.database, 2)
    kept = await keeping
    assert kept.status == 201
    assert refused(await deleting, kept.body["id"])


@pytest.mark.parametrize("kind", ["list", "segment"])
async def test_who_gives_a_new_name_and_who_begins_to_use_do_not_wait_for_each_other(api: Api, kind: str) -> None:
    """Both have the record before the organization."""
    path, using = await record(api, kind)
    async with api.database.transaction() as connection:
        await connection.execute("select from organizations for update")
        keeping = asyncio.ensure_future(api.post(JOURNEYS + KEPT, journey(**using)))
        await until_locked_out(api.database, 1)
        naming = asyncio.ensure_future(api.patch(path, {"name": "Another"}))
        await until_locked_out(api.database, 2)
    assert [answer.status for answer in await asyncio.gather(keeping, naming)] == [201, 200]


@pytest.mark.parametrize("kind", KINDS)
async def test_who_begins_to_use_waits_for_who_deletes(api: Api, kind: str) -> None:
    path, using = await record(api, kind)
    table = TABLES[kind]
    async with api.database.transaction() as connection:
        await connection.execute(f"select from {table} where id = $1 for update", path.rpartition("/")[2])
        asked = asyncio.ensure_future(api.post(JOURNEYS + KEPT, journey(**using)))
        await until_locked_out(api.database, 1)
        await connection.execute(GONE[kind].format(table) + " where id = $1", path.rpartition("/")[2])
    told = {problem.partition(":")[0].partition("[")[0] for problem in (await asked).body["problemas"]}
    assert told & {"GATILHO_INEXISTENTE", "NUMERO_INEXISTENTE", "MODELO_INEXISTENTE"}


async def test_a_list_that_is_deleted_while_a_journey_is_looked_at_is_missed(api: Api) -> None:
    """Who does not permit problems gets none, also when the list went between the first look and the commit."""
    path, using = await record(api, "list")
    found = await made(api)
    requests = [
        ("POST", JOURNEYS),
        ("PUT", f"{JOURNEYS}/{found}"),
    ]
    async with api.database.transaction() as connection:
        await connection.execute("delete from static_lists")
        asked = [asyncio.ensure_future(api.call(method, target, journey(**using))) for method, target in requests]
        await until_locked_out(api.database, 2)
    for answer in await asyncio.gather(*asked):
        assert (answer.status, answer.code) == (422, "JORNADA_COM_PROBLEMAS")
        assert answer.body["errors"][0]["code"] == "GATILHO_INEXISTENTE"
    assert (await api.get(JOURNEYS)).body["total"] == 1
    assert (await api.get(path)).status == 404
