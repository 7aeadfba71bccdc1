"""The numbers of steps over HTTP (C9.10)."""

from typing import Any

from tests.http.test_executions import active, contact, entered, moved, passed
from tests.http.test_journeys import JOURNEYS, journey
from tests.storage.journeys.rows import NOW

NOBODY = {"entraram": 0, "aguardando": 0, "concluiram": 0, "pulados": 0, "erros": 0}
NO_MESSAGES = {
    "enviadas": 0, "entregues": 0, "lidas": 0, "clicadas": 0, "respondidas": 0, "falhas": 0, "conversoes": 0,
}  # fmt: skip
STEPS = [
    {"id": "hello", "tipo": "enviar", "canal": "sms", "texto": "Hi", "proximo": "ask"},
    {"id": "ask", "tipo": "condicao", "campo": "name", "operador": "existe", "sim": "split", "nao": "end"},
    {
        "id": "split",
        "tipo": "dividir",
        "ramos": [{"nome": "a", "peso": 1, "proximo": "call"}, {"nome": "b", "peso": 1, "proximo": "end"}],
    },
    {"id": "call", "tipo": "webhook", "webhookId": "whk_" + "0" * 21, "proximo": "wait"},
    {"id": "wait", "tipo": "esperar", "minutos": 60, "proximo": "end"},
    {"id": "end", "tipo": "fim"},
]


async def steps(api: Any, journey_id: str) -> Any:
    answer = await api.get(f"{JOURNEYS}/{journey_id}/steps")
    assert answer.status == 200, answer.body
    return answer.body


async def test_each_step_has_the_numbers_of_its_kind(api: Any) -> None:
    draft = await api.post(f"{JOURNEYS}?permitirProblemas=true", journey(passos=STEPS, inicio="hello"))
    body = await steps(api, draft.body["id"])
    assert body == {
        "items": [
            {"passo": "hello", "tipo": "enviar", "canal": "sms", **NOBODY, "mensagens": NO_MESSAGES},
            {"passo": "ask", "tipo": "condicao", **NOBODY, "sim": 0, "nao": 0},
            {
                "passo": "split",
                "tipo": "dividir",
                **NOBODY,
                "ramos": [{"nome": "a", "total": 0}, {"nome": "b", "total": 0}],
            },
            {"passo": "call", "tipo": "webhook", **NOBODY, "sucesso": 0, "falha": 0},
            {"passo": "wait", "tipo": "esperar", **NOBODY},
            {"passo": "end", "tipo": "fim", **NOBODY},
        ],
        "versao": 1,
        "atualizadoEm": body["atualizadoEm"],
    }


async def test_the_numbers_follow_executions(api: Any) -> None:
    journey_id = await active(api)
    ids = [await entered(api, journey_id, await contact(api, phone=f"+551198765000{n}")) for n in range(2)]

    from_steps = {item["passo"]: item for item in (await steps(api, journey_id))["items"]}
    assert from_steps["wait"] == {"passo": "wait", "tipo": "esperar", **NOBODY, "entraram": 2, "aguardando": 2}
    waited = passed(api, ids[0], NOW, 0, step_id="wait", kind="esperar", result="esperou")
    await moved(api, journey_id, ids[0], lambda it: it.moved_to("end", NOW), waited)
    body = await steps(api, journey_id)
    found = {item["passo"]: item for item in body["items"]}
    assert found["wait"] == {**from_steps["wait"], "aguardando": 1, "concluiram": 1}
    assert found["end"] == {"passo": "end", "tipo": "fim", **NOBODY, "entraram": 1, "aguardando": 1}


async def test_a_journey_that_is_not_there_has_no_steps(api: Any) -> None:
    answer = await api.get(f"{JOURNEYS}/jrn_{'0' * 21}/steps")
    assert (answer.status, answer.code) == (404, "NOT_FOUND")
