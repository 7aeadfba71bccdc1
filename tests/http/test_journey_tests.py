"""One contact goes through a journey to try it (C9.9)."""

from typing import Any

import pytest
from tests.http.test_executions import active, contact, read
from tests.http.test_journey_states import made
from tests.http.test_journeys import JOURNEYS, journey

NOBODY = "cnt_" + "0" * 21


async def tried(api: Any, journey_id: str, contact_id: str, **fields: Any) -> Any:
    return await api.post(f"{JOURNEYS}/{journey_id}/test", {"contactId": contact_id, **fields})


async def test_a_draft_is_tried_by_one_contact(api: Any) -> None:
    contact_id = await contact(api, externalId="e-1")
    journey_id = (await api.post(JOURNEYS, journey())).body["id"]
    answer = await tried(api, journey_id, contact_id, dados={"order": "A-1"})
    assert answer.status == 201, answer.body
    assert answer.body == {
        "id": answer.body["id"],
        "journeyId": journey_id,
        "versao": 1,
        "contactId": contact_id,
        "contactExternalId": "e-1",
        "status": "ativa",
        "origem": "teste",
        "teste": True,
        "entrada": {"order": "A-1"},
        "passoAtual": "wait",
        "iniciadaEm": answer.body["iniciadaEm"],
    }
    assert (await read(api, journey_id, answer.body["id"])).body == {**answer.body, "passos": []}
    hurried = "select hurried from executions where id = $1"
    assert await api.database.fetchval(hurried, answer.body["id"]) is True
    slow = await tried(api, journey_id, contact_id, pularEsperas=False)
    assert await api.database.fetchval(hurried, slow.body["id"]) is False
    assert (await api.get(f"{JOURNEYS}/{journey_id}")).body["execucoes"]["ativa"] == 0
    (_, entry) = (await api.get(f"/v2/audit?targetId={journey_id}&action=journey.test")).body["items"]
    assert entry["details"] == {"executionId": answer.body["id"]}


async def test_a_repeat_under_a_key_begins_no_second_one(api: Any) -> None:
    contact_id, journey_id = await contact(api), await active(api)
    path, body = f"{JOURNEYS}/{journey_id}/test", {"contactId": contact_id}
    first, second = [await api.post(path, body, headers={"Idempotency-Key": "t-1"}) for _ in range(2)]
    assert (second.status, second.body) == (201, first.body)
    assert await api.database.fetchval("select count(*) from executions") == 1


async def test_a_journey_is_tried_so_many_times_an_hour(api: Any) -> None:
    contact_id, journey_id, other = await contact(api), await active(api), await active(api)
    for _ in range(20):
        assert (await tried(api, journey_id, contact_id)).status == 201
    refused = await tried(api, journey_id, contact_id)
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 20})
    assert (await tried(api, other, contact_id)).status == 201
    api.clock.shift(3_601)
    assert (await tried(api, journey_id, contact_id)).status == 201


async def test_who_may_be_tried_on(api: Any) -> None:
    contact_id, journey_id = await contact(api), await active(api)
    unknown = await tried(api, journey_id, NOBODY)
    assert (unknown.status, unknown.code, unknown.body["errors"][0]["path"]) == (
        422, "REFERENCE_NOT_FOUND", "/contactId",
    )  # fmt: skip
    denied = await contact(api, phone="+5511987650002")
    for refusing in (contact_id, denied):
        await api.post("/contacts/opt-out", {"contactId": refusing})
    only_registered = "update contacts set opt_in_status = 'unknown' where id = $1"
    await api.database.execute(only_registered, contact_id)
    for refusing in (contact_id, denied):
        answer = await tried(api, journey_id, refusing)
        assert (answer.status, answer.code, answer.body["errors"][0]["path"]) == (
            422, "CONTACT_OPTED_OUT", "/contactId",
        )  # fmt: skip
    assert await api.database.fetchval("select count(*) from executions") == 0


async def test_which_journeys_are_tried(api: Any) -> None:
    contact_id = await contact(api)
    lacking = await made(api, passos=[{"id": "end", "tipo": "esperar"}])
    answer = await tried(api, lacking, contact_id)
    assert (answer.status, answer.code) == (422, "JORNADA_COM_PROBLEMAS")
    archived = await made(api)
    await api.post(f"{JOURNEYS}/{archived}/archive")
    answer = await tried(api, archived, contact_id)
    assert (answer.status, answer.code) == (409, "JORNADA_ARQUIVADA")
    clients = (await api.post("/v2/lists", {"name": "Clients"})).body["id"]
    by_list = await made(api, gatilho={"tipo": "lista", "listId": clients})  # nobody has to enter
    assert (await tried(api, by_list, contact_id)).status == 201
    for state in ("activate", "pause"):
        going = await made(api)
        await api.post(f"{JOURNEYS}/{going}/activate")
        await api.post(f"{JOURNEYS}/{going}/{state}")
        assert (await tried(api, going, contact_id)).status == 201
    missing = await tried(api, "jrn_" + "0" * 21, contact_id)
    assert (missing.status, missing.code) == (404, "NOT_FOUND")


async def test_whoever_tries_one_sends_messages(api: Any) -> None:
    contact_id, journey_id = await contact(api), await active(api)
    path, body = f"{JOURNEYS}/{journey_id}/test", {"contactId": contact_id}
    for scopes, missing in ((["campaigns:write"], "messages:send"), (["messages:send"], "campaigns:write")):
        answer = await api.post(path, body, token=await api.key(*scopes))
        assert (answer.status, answer.body["meta"]) == (403, {"requiredScope": missing})
    allowed = await api.post(path, body, token=await api.key("campaigns:write", "messages:send"))
    assert allowed.status == 201


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "VALIDATION_ERROR", "/contactId"),
        ({"contactId": NOBODY, "pularEsperas": "yes"}, "VALIDATION_ERROR", "/pularEsperas"),
        ({"contactId": NOBODY, "dados": {"a": None}}, "METADATA_INVALID", "/dados/a"),
    ],
)
async def test_a_body_that_is_not_valid_is_refused_where_it_is_wrong(
    api: Any, body: Any, code: str, field: str
) -> None:
    answer = await api.post(f"{JOURNEYS}/{await active(api)}/test", body)
    assert (answer.status, answer.code) == (422, code)
    assert field in [error["path"] for error in answer.body["errors"]]
