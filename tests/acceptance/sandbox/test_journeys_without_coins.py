"""A journey whose wallet is empty pauses itself, says so, and goes on by itself when coins come in (C9.7.5, C9.8.4)."""

import secrets
from typing import Any

from tests.acceptance.sandbox.customer import phone
from tests.program import Api
from tests.waiting import until

JOURNEY = {
    "name": "Welcome",
    "gatilho": {"tipo": "api"},
    "inicio": "hello",
    "passos": [
        {"id": "hello", "tipo": "enviar", "canal": "sms", "texto": "Hello", "proximo": "end"},
        {"id": "end", "tipo": "fim"},
    ],
}


async def test_a_journey_without_coins_goes_on_with_the_next_credit(admin: Api, newcomer: Any) -> None:
    organization_id, customer = await newcomer()
    api = customer.api

    async def credit(coins: int) -> None:
        body = {"env": "test", "coins": coins, "reference": secrets.token_hex(8)}
        await admin.call("POST", f"/v2/admin/organizations/{organization_id}/wallet-credits", body)

    made = await api.call("POST", "/v2/journeys", JOURNEY)
    path = f"/v2/journeys/{made['id']}"
    await api.call("POST", f"{path}/activate")
    await credit(-(await api.call("GET", "/v2/wallet"))["availableCoins"])
    contact = await api.call("POST", "/contacts", {"phone": phone()})
    entered = await api.call("POST", f"{path}/entries", {"contato": {"contactId": contact["id"]}})
    execution = f"{path}/executions/{entered['executionId']}"

    async def paused() -> Any:
        found = await api.call("GET", path)
        return found if found["status"] == "pausada" else None

    found = await until(paused, "the journey is paused")
    cause = found["pausadaPor"]
    assert cause == {"motivo": "saldo_insuficiente", "passo": "hello", "em": found["pausadaEm"]}
    listed = (await api.call("GET", "/v2/journeys"))["items"]
    assert [item["pausadaPor"] for item in listed] == [cause]
    waiting = await api.call("GET", execution)
    assert (waiting["status"], waiting["passoAtual"], waiting["aguardando"]) == ("ativa", "hello", {"tipo": "pausa"})
    await credit(1_000_000)

    async def over() -> Any:
        found = await api.call("GET", execution)
        return found if found["status"] != "ativa" else None

    assert [step["resultado"] for step in (await until(over, "it goes on"))["passos"]] == [
        "enviado",
        "fim",
    ]
    running = await api.call("GET", path)
    assert running["status"] == "ativa"
    assert {"pausadaPor", "pausadaEm"}.isdisjoint(running)
