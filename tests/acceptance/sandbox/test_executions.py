"""Contacts go their way through a journey, and each step is done once, whatever dies (C9)."""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.program import Api, Service, running
from tests.waiting import until

PEOPLE = 300
ARRIVED = {"sobre": "first", "sinal": "entregue"}
NAMELESS = {"campo": "name", "operador": "nao_existe"}  # a message that is in hand at a kill may be told of by nobody


def journey(name: str, condition: dict[str, Any]) -> dict[str, Any]:
    """An SMS, and another one where a condition holds."""
    return {
        "name": name,
        "gatilho": {"tipo": "api"},
        "inicio": "first",
        "passos": [
            {
                "id": "first", "tipo": "enviar", "canal": "sms", "texto": "Hello {{1}}",
                "variaveis": {"1": {"de": "entrada", "campo": "name", "padrao": "you"}}, "proximo": "ask",
            },
            {"id": "ask", "tipo": "condicao", **condition, "sim": "second", "nao": "end"},
            {"id": "second", "tipo": "enviar", "canal": "sms", "texto": "There you are", "proximo": "end"},
            {"id": "end", "tipo": "fim"},
        ],
    }  # fmt: skip


async def active(api: Api, name: str, condition: dict[str, Any]) -> str:
    made = await api.call("POST", "/v2/journeys", journey(name, condition))
    await api.call("POST", f"/v2/journeys/{made['id']}/activate")
    return str(made["id"])


async def test_a_contact_goes_its_way_with_the_outcomes_of_its_messages(api: Api) -> None:
    journey_id = await active(api, "a way to its end", ARRIVED)
    contact = await api.call("POST", "/contacts", {"phone": "+5511987659900"})
    entry = {"contato": {"contactId": contact["id"]}, "dados": {"name": "Ana"}}
    entered = await api.call("POST", f"/v2/journeys/{journey_id}/entries", entry)
    path = f"/v2/journeys/{journey_id}/executions/{entered['executionId']}"

    async def over() -> Any:
        found = await api.call("GET", path)
        return found if found["status"] != "ativa" else None

    execution = await until(over, "the execution is over")
    assert (execution["status"], execution["motivo"]) == ("concluida", "fim")
    assert [(step["passo"], step["resultado"]) for step in execution["passos"]] == [
        ("first", "enviado"), ("ask", "sim"), ("second", "enviado"), ("end", "fim"),
    ]  # fmt: skip
    message = await api.call("GET", f"/v2/sms/messages/{execution['passos'][0]['messageId']}")
    assert message["status"] == "delivered"
    assert message["metadata"] == {
        "journeyId": journey_id,
        "journeyStepId": "first",
        "journeyRunId": entered["executionId"],
    }


async def test_a_draft_is_tried_without_its_waits(api: Api) -> None:
    slow = journey("a way that is tried", ARRIVED)
    slow["passos"][0]["proximo"] = "wait"
    slow["passos"].append({"id": "wait", "tipo": "esperar", "minutos": 90_000, "proximo": "ask"})
    made = await api.call("POST", "/v2/journeys", slow)
    contact = await api.call("POST", "/contacts", {"phone": "+5511987659901"})
    test = await api.call("POST", f"/v2/journeys/{made['id']}/test", {"contactId": contact["id"]})

    async def over() -> Any:
        found = await api.call("GET", f"/v2/journeys/{made['id']}/executions/{test['id']}")
        return found if found["status"] != "ativa" else None

    execution = await until(over, "the test is over")
    assert [(step["passo"], step["resultado"]) for step in execution["passos"]] == [
        ("first", "enviado"), ("wait", "esperou"), ("ask", "sim"), ("second", "enviado"), ("end", "fim"),
    ]  # fmt: skip
    assert (await api.call("GET", f"/v2/journeys/{made['id']}"))["status"] == "rascunho"


async def test_the_members_of_a_list_go_their_way_and_who_joins_it_later(api: Api) -> None:
    people = [await api.call("POST", "/contacts", {"phone": f"+551198765990{n}"}) for n in range(2, 5)]
    members = await api.call("POST", "/v2/lists", {"name": "a list of a journey"})
    path = f"/v2/lists/{members['id']}/members"
    await api.call("POST", path, {"contactIds": [person["id"] for person in people[:2]]})
    by_list = {**journey("a way for a list", NAMELESS), "gatilho": {"tipo": "lista", "listId": members["id"]}}
    made = await api.call("POST", "/v2/journeys", by_list)
    await api.call("POST", f"/v2/journeys/{made['id']}/activate")

    async def concluded(count: int) -> bool:
        return bool((await api.call("GET", f"/v2/journeys/{made['id']}"))["execucoes"]["concluida"] == count)

    await until(lambda: concluded(2), "both members are at the end")
    await api.call("POST", path, {"contactIds": [person["id"] for person in people]})
    await until(lambda: concluded(3), "who joined is at the end")


@pytest.mark.long
async def test_each_step_is_done_once_though_the_service_is_killed_again_and_again(tmp_path: Path) -> None:
    async with running(Service(tmp_path, SANDBOX_TIME_SCALE="0")) as service:
        token = await asyncio.to_thread(service.key, "test")
        async with Api(service.url, token) as api:
            journey_id = await active(api, "a way with crashes", NAMELESS)
            phones = [f"+5511987{n:06}" for n in range(PEOPLE)]
            people = await asyncio.gather(*[api.call("POST", "/contacts", {"phone": phone}) for phone in phones])

            async def enter(contact_id: str) -> None:
                entry = {"contato": {"contactId": contact_id}}
                await api.call("POST", f"/v2/journeys/{journey_id}/entries", entry)

            async def concluded() -> int:
                found = api.pages(f"/v2/journeys/{journey_id}/executions", status="concluida")
                return len([None async for _ in found])

            for part in range(3):
                await asyncio.gather(*[enter(person["id"]) for person in people[part::3]])
                service.end(signal.SIGKILL)  # while their steps are taken
                await service.start()

            async def all_concluded() -> bool:
                return await concluded() == PEOPLE

            await until(all_concluded, "all executions are over", every=0.2)
            found = [each async for each in api.pages(f"/v2/journeys/{journey_id}/executions")]
            assert len({each["contactId"] for each in found}) == len(found) == PEOPLE
            for each in found[::20]:
                read = await api.call("GET", f"/v2/journeys/{journey_id}/executions/{each['id']}")
                assert [step["passo"] for step in read["passos"]] == ["first", "ask", "second", "end"]
            messages = [message["metadata"] async for message in api.pages("/v2/sms/messages")]
            made = Counter((told["journeyRunId"], told["journeyStepId"]) for told in messages)
            assert made == Counter((each["id"], step) for each in found for step in ("first", "second"))
