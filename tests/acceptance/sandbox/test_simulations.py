"""What a dry run predicts is what the journey then does, when the rates are those of the sandbox (C9.17, C29.4)."""

import asyncio
import secrets
from typing import Any

import pytest
from tests.acceptance.sandbox.conftest import Newcomer
from tests.program import Api
from tests.waiting import until

EACH = 1_200  # contacts of a group
CHATAPP = {"9004": 10, "9007": 10, "9002": 6, "9003": 4, "9008": 5}  # of a hundred; the rest is read
SMS = {"9007": 10, "9008": 5, "9002": 3}  # fewer fail again than what pauses a journey (C9.8.4)
NEAR = 0.02
COUNTED = ("entraram", "concluiram", "pulados", "sim", "nao")
OF_MESSAGES = ("enviadas", "entregues", "lidas", "falhas")


def phones(prefix: str, endings: dict[str, int]) -> list[str]:
    """Phones whose last digits are so many in a hundred of each."""
    found = []
    for n in range(EACH):
        place, ending = n % 100, "0000"
        for each, share in endings.items():
            if 0 <= place < share:
                ending = each
            place -= share
        found.append(f"+55{prefix}9{n:04}{ending}")
    return found


def steps(number_id: str, template_id: str) -> list[dict[str, Any]]:
    template = {"canal": "chatapp", "numberId": number_id, "templateId": template_id}
    name = {"1": {"de": "contato", "campo": "name", "padrao": "you"}}
    soon = {"janelaMinutos": 1}
    return [
        {"id": "group", "tipo": "condicao", "campo": "attributes.group", "operador": "igual", "valor": "chatapp",
            "sim": "hello", "nao": "text"},
        {"id": "hello", "tipo": "enviar", **template, "variaveis": name, "proximo": "read"},
        {"id": "read", "tipo": "condicao", "sobre": "hello", "sinal": "lido", **soon, "sim": "talks", "nao": "there"},
        {"id": "talks", "tipo": "condicao", "sobre": "hello", "sinal": "respondeu", **soon, "sim": "end", "nao": "end"},
        {"id": "there", "tipo": "condicao", "sobre": "hello", "sinal": "entregue", **soon, "sim": "again",
            "nao": "end"},
        {"id": "again", "tipo": "enviar", "canal": "sms", "texto": "Are you there?", "proximo": "end"},
        {"id": "text", "tipo": "enviar", "canal": "sms", "texto": "Hello", "proximo": "answers"},
        {"id": "answers", "tipo": "condicao", "sobre": "text", "sinal": "respondeu", **soon, "sim": "end",
            "nao": "arrived"},
        {"id": "arrived", "tipo": "condicao", "sobre": "text", "sinal": "entregue", **soon, "sim": "end",
            "nao": "repeat"},
        {"id": "repeat", "tipo": "enviar", "canal": "sms", "texto": "Hello again", "proximo": "end"},
        {"id": "end", "tipo": "fim"},
    ]  # fmt: skip


RATES = {
    "hello": {"entregue": 0.90, "falha": 0.06, "lido": 0.75 / 0.90, "respondeu": 0.10 / 0.90, "optOut": 0.05 / 0.90},
    "text": {"entregue": 0.97, "falha": 0.03, "respondeu": 0.10 / 0.97, "optOut": 0.05 / 0.97},
    "repeat": {"entregue": 0, "falha": 1},  # of those alone to whom the first one failed
}


async def people(api: Api, group: str, numbers: list[str], tag: str) -> None:
    contacts = [{"phone": phone, "attributes": {"group": group}, "tags": [tag]} for phone in numbers]
    for start in range(0, len(contacts), 400):
        await api.call("POST", "/contacts/import", {"contacts": contacts[start : start + 400]})


@pytest.mark.long
async def test_a_dry_run_of_a_segment_predicts_what_the_journey_does(newcomer: Newcomer) -> None:
    _, customer = await newcomer()
    api, tag = customer.api, secrets.token_hex(6)
    await api.call("PATCH", f"/numbers/{customer.number_id}", {"rateLimit": {"perSecond": 500, "perDay": 100_000}})
    await api.call("POST", "/v2/wallet/top-ups", {"coins": 100_000_000})
    before = (await api.call("GET", "/v2/wallet"))["balanceCoins"]
    await asyncio.gather(people(api, "chatapp", phones("11", CHATAPP), tag), people(api, "sms", phones("21", SMS), tag))
    filters = [{"field": "tag", "operator": "is", "value": tag}]
    segment = await api.call("POST", "/v2/segments", {"name": tag, "filters": filters})
    made = await api.call("POST", "/v2/journeys", {
        "name": tag, "gatilho": {"tipo": "segmento", "segmentId": segment["id"]}, "inicio": "group",
        "passos": steps(customer.number_id, customer.template_id),
    })  # fmt: skip
    path = f"/v2/journeys/{made['id']}"
    assumed = {step: {"taxas": rates} for step, rates in RATES.items()}
    predicted = await api.call("POST", f"{path}/simulate", {"passos": assumed})
    assert predicted["contatos"]["entraram"] == 2 * EACH
    await api.call("POST", f"{path}/activate")

    async def over() -> bool:
        runs = (await api.call("GET", path))["execucoes"]
        return bool(runs["ativa"] == 0 and sum(runs.values()) == 2 * EACH)

    await until(over, "all executions are over", limit=600, every=1.0)
    runs = (await api.call("GET", path))["execucoes"]
    ends = predicted["resultados"]
    assert runs["concluida"] == pytest.approx(ends["fim"], rel=NEAR)
    assert runs["cancelada"] == pytest.approx(ends["opt_out"], rel=NEAR, abs=2)

    async def counted() -> bool:
        found = (await api.call("GET", f"{path}/steps"))["items"]
        return all(told(step) == pytest.approx(told(each), rel=NEAR, abs=2)
                   for step, each in zip(found, predicted["passos"], strict=True))  # fmt: skip

    try:
        await until(counted, "the numbers of the steps are those that were predicted", every=1.0)
    except AssertionError:
        found = (await api.call("GET", f"{path}/steps"))["items"]
        wrong = [(told(step), told(each)) for step, each in zip(found, predicted["passos"], strict=True)]
        raise AssertionError(f"counted and predicted: {wrong}") from None
    left = (await api.call("GET", "/v2/wallet"))["balanceCoins"]
    assert before - left == pytest.approx(predicted["custo"]["moedas"], rel=NEAR)


def told(step: dict[str, Any]) -> dict[str, int]:
    """What is compared of a step."""
    messages = step.get("mensagens", {})
    return {name: step[name] for name in COUNTED if name in step} | {
        name: messages[name] for name in OF_MESSAGES if name in messages
    }
