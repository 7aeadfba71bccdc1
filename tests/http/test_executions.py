"""Entries and executions of journeys over HTTP (C9.7.1, C9.10)."""

from datetime import timedelta
from typing import Any

import pytest
from tests.http.test_journeys import END, JOURNEYS, journey

from recado.domain.core.retention import EXECUTIONS_MONTHS, months_before
from recado.domain.journeys.execution import Awaited, EndReason
from recado.storage.journeys import executions
from recado.storage.journeys.executions import PassedStep

PHONE = "+5511987650001"
HOUR = timedelta(hours=1)


async def active(api: Any, **fields: Any) -> str:
    """The id of a journey that takes entries."""
    answer = await api.post(JOURNEYS, journey(**fields))
    assert answer.status == 201, answer.body
    await api.database.execute("update journeys set status = 'ativa' where id = $1", answer.body["id"])
    return str(answer.body["id"])


async def contact(api: Any, **fields: Any) -> str:
    answer = await api.post("/contacts", {"phone": PHONE, **fields})
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


def entries(journey_id: str) -> str:
    return f"{JOURNEYS}/{journey_id}/entries"


async def entered(api: Any, journey_id: str, contact_id: str, **dados: Any) -> str:
    answer = await api.post(entries(journey_id), {"contato": {"contactId": contact_id}, "dados": dados})
    assert answer.status == 201, answer.body
    return str(answer.body["executionId"])


async def read(api: Any, journey_id: str, execution_id: str) -> Any:
    return await api.get(f"{JOURNEYS}/{journey_id}/executions/{execution_id}")


async def moved(api: Any, journey_id: str, execution_id: str, change: Any, *passed: PassedStep) -> None:
    """What a turn does to an execution."""
    key = (api.organizations[0].organization.id, "test", journey_id, execution_id)
    async with api.database.transaction() as connection:
        execution = await executions.lock(connection, key)
        assert execution is not None
        await executions.save(connection, [change(execution)], list(passed))


async def test_a_contact_enters_and_its_execution_is_read(api: Any) -> None:
    journey_id, contact_id = await active(api), await contact(api, externalId="e-1")
    answer = await api.post(entries(journey_id), {"contato": {"phone": "+55 11 98765-0001"}, "dados": {"order": "A-1"}})
    execution_id = answer.body["executionId"]
    assert (answer.status, answer.body) == (201, {"entrou": True, "executionId": execution_id})
    shown = await read(api, journey_id, execution_id)
    assert (shown.status, "ETag" in shown.headers) == (200, False)
    assert shown.body == {
        "id": execution_id,
        "journeyId": journey_id,
        "versao": 1,
        "contactId": contact_id,
        "contactExternalId": "e-1",
        "status": "ativa",
        "origem": "api",
        "teste": False,
        "entrada": {"order": "A-1"},
        "passoAtual": "wait",
        "iniciadaEm": shown.body["iniciadaEm"],
        "passos": [],
    }
    refused = await api.post(entries(journey_id), {"contato": {"contactId": contact_id}})
    assert (refused.status, refused.body) == (200, {"entrou": False, "motivo": "ja_entrou"})


async def test_what_it_waits_for_and_what_it_passed_is_shown(api: Any) -> None:
    journey_id, contact_id = await active(api), await contact(api)
    execution_id = await entered(api, journey_id, contact_id)
    began = (await read(api, journey_id, execution_id)).body["iniciadaEm"]
    now = (await executions.get(api.database, (*place(api), journey_id, execution_id))).started_at  # type: ignore[union-attr]
    await moved(api, journey_id, execution_id, lambda it: it.waiting(Awaited.TIME, now))
    shown = (await read(api, journey_id, execution_id)).body
    assert shown["aguardando"] == {"tipo": "espera", "ate": began}
    await moved(api, journey_id, execution_id, lambda it: it.waiting(Awaited.SIGNAL, None))
    assert (await read(api, journey_id, execution_id)).body["aguardando"] == {"tipo": "condicao"}
    steps = [
        passed(api, execution_id, now, 0, step_id="hello", kind="enviar", result="enviado", message_id="msg_1"),
        passed(api, execution_id, now, 1, step_id="more", kind="enviar", result="pulado", detail="sem_telefone"),
        passed(api, execution_id, now, 2, step_id="end", kind="fim", result="fim"),
    ]
    await moved(api, journey_id, execution_id, lambda it: it.ended(EndReason.FINISHED, now), *steps)
    over = (await read(api, journey_id, execution_id)).body
    assert (over["status"], over["motivo"], over["encerradaEm"]) == ("concluida", "fim", began)
    assert {"passoAtual", "aguardando"}.isdisjoint(over)
    assert over["passos"] == [
        {"passo": "hello", "tipo": "enviar", "em": began, "resultado": "enviado", "messageId": "msg_1"},
        {"passo": "more", "tipo": "enviar", "em": began, "resultado": "pulado", "detalhe": "sem_telefone"},
        {"passo": "end", "tipo": "fim", "em": began, "resultado": "fim"},
    ]


def place(api: Any) -> tuple[str, str]:
    return api.organizations[0].organization.id, "test"


def passed(api: Any, execution_id: str, at: Any, number: int, **fields: Any) -> PassedStep:
    organization_id, env = place(api)
    return PassedStep(
        organization_id=organization_id, env=env, execution_id=execution_id, at=at, place=number, **fields
    )


async def test_a_list_goes_on_by_its_cursor_and_shows_what_the_filters_say(api: Any) -> None:
    journey_id, other = await active(api), await active(api)
    contact_ids = [await contact(api, phone=f"+551198765000{n}") for n in range(3)]
    ids = [await entered(api, journey_id, contact_id) for contact_id in contact_ids]
    await entered(api, other, contact_ids[0])
    await moved(api, journey_id, ids[0], lambda it: it.ended(EndReason.FINISHED, it.started_at))
    await moved(api, journey_id, ids[1], lambda it: it.moved_to("end", it.started_at))

    async def listed(query: str = "") -> list[str]:
        answer = await api.get(f"{JOURNEYS}/{journey_id}/executions{query}")
        assert answer.status == 200, answer.body
        return [item["id"] for item in answer.body["items"]]

    assert await listed() == ids[::-1]
    first = (await api.get(f"{JOURNEYS}/{journey_id}/executions?limit=2")).body
    assert [item["id"] for item in first["items"]] == [ids[2], ids[1]]
    second = (await api.get(f"{JOURNEYS}/{journey_id}/executions?limit=2&cursor={first['nextCursor']}")).body
    assert ([item["id"] for item in second["items"]], second.get("nextCursor")) == ([ids[0]], None)
    assert await listed("?status=concluida") == [ids[0]]
    assert await listed(f"?contactId={contact_ids[1]}") == [ids[1]]
    assert await listed("?passo=end") == [ids[1]]
    assert await listed("?passo=wait") == [ids[2]]
    assert await listed("?teste=true") == []
    assert await listed("?teste=false&status=ativa") == [ids[2], ids[1]]
    assert await listed("?from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z") == []
    foreign = await api.get(f"{JOURNEYS}/{other}/executions?limit=2&cursor={first['nextCursor']}")
    assert (foreign.status, foreign.code) == (400, "INVALID_CURSOR")


async def test_a_list_shows_nothing_that_ended_beyond_what_is_kept(api: Any) -> None:
    journey_id = await active(api)
    ids = [await entered(api, journey_id, await contact(api, phone=f"+551198765000{n}")) for n in range(3)]
    kept_from = months_before(api.clock.now(), EXECUTIONS_MONTHS)
    for execution_id, ended_at in zip(ids[:2], (kept_from - HOUR, kept_from + HOUR), strict=True):
        await moved(api, journey_id, execution_id, lambda it, at=ended_at: it.ended(EndReason.FINISHED, at))
    listed = (await api.get(f"{JOURNEYS}/{journey_id}/executions")).body["items"]
    assert [each["id"] for each in listed] == [ids[2], ids[1]]


async def test_a_canceled_execution_is_over_and_the_audit_says_who_ended_it(api: Any) -> None:
    journey_id = await active(api)
    execution_id = await entered(api, journey_id, await contact(api))
    path = f"{JOURNEYS}/{journey_id}/executions/{execution_id}/cancel"
    assert await runs(api, journey_id) == {"ativa": 1, "concluida": 0, "cancelada": 0, "erro": 0}
    answer = await api.post(path)
    assert await runs(api, journey_id) == {"ativa": 0, "concluida": 0, "cancelada": 1, "erro": 0}
    assert (answer.status, answer.body["status"], answer.body["motivo"]) == (200, "cancelada", "operador")
    assert "passos" not in answer.body
    again = await api.post(path)
    assert (again.status, again.code, again.body["meta"]) == (409, "INVALID_STATE", {"status": "cancelada"})
    (entry,) = (await api.get("/v2/audit?action=journey.execution_cancel")).body["items"]
    assert (entry["targetId"], entry["details"]) == (execution_id, {"journeyId": journey_id})


async def runs(api: Any, journey_id: str) -> Any:
    """As the journey shows them, in the list too."""
    found = (await api.get(f"{JOURNEYS}/{journey_id}")).body["execucoes"]
    (item,) = [item for item in (await api.get(JOURNEYS)).body["items"] if item["id"] == journey_id]
    assert item["execucoes"] == found
    return found


async def test_an_execution_is_found_under_its_own_journey_only(api: Any) -> None:
    journey_id, other = await active(api), await active(api)
    execution_id = await entered(api, journey_id, await contact(api))
    for call in (
        await read(api, other, execution_id),
        await read(api, journey_id, "exe_" + "0" * 21),
        await read(api, journey_id, "no-id"),
        await api.post(f"{JOURNEYS}/{other}/executions/{execution_id}/cancel"),
    ):
        assert (call.status, call.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "VALIDATION_ERROR", "/contato"),
        ({"contato": {}}, "VALIDATION_ERROR", "/contato"),
        ({"contato": {"phone": "x"}}, "PHONE_INVALID", "/contato/phone"),
        ({"contato": {"phone": PHONE}}, "REFERENCE_NOT_FOUND", "/contato/phone"),
        ({"contato": {"contactId": "cnt_" + "0" * 21}}, "REFERENCE_NOT_FOUND", "/contato/contactId"),
        ({"contato": {"contactId": "me"}, "dados": {"a": None}}, "METADATA_INVALID", "/dados/a"),
        ({"contato": {"contactId": "me"}, "dados": 1}, "METADATA_INVALID", "/dados"),
    ],
)
async def test_an_entry_that_is_not_valid_is_refused_where_it_is_wrong(
    api: Any, body: Any, code: str, field: str
) -> None:
    answer = await api.post(entries(await active(api)), body)
    assert (answer.status, answer.code) == (422, code)
    assert field in [error["path"] for error in answer.body["errors"]]


async def test_a_draft_and_a_journey_with_another_trigger_take_nobody_in(api: Any) -> None:
    contact_id = await contact(api)
    draft = (await api.post(JOURNEYS, journey())).body["id"]
    by_event = await active(api, gatilho={"tipo": "evento", "nome": "paid"}, inicio="end", passos=[END])
    for journey_id, code in ((draft, "JORNADA_NAO_ATIVA"), (by_event, "GATILHO_NAO_E_API")):
        answer = await api.post(entries(journey_id), {"contato": {"contactId": contact_id}})
        assert (answer.status, answer.code) == (409, code)
