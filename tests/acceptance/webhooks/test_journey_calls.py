"""A journey calls a receiver from other hands, which believes it (C9.13), in a test run from its welcome to its end."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.webhooks.conftest import Receiver
from tests.program import Api, Service, running
from tests.waiting import until

SENT = {"tipo": "enviar", "canal": "sms"}
STEPS = [
    {"id": "ola", **SENT, "texto": "Bem-vinda!", "proximo": "espera"},
    {"id": "espera", "tipo": "esperar", "minutos": 60, "proximo": "chegou"},
    {"id": "chegou", "tipo": "condicao", "sobre": "ola", "sinal": "entregue", "sim": "obrigado", "nao": "avisar"},
    {"id": "obrigado", **SENT, "texto": "Que bom!", "proximo": "avisar"},
    {"id": "avisar", "tipo": "webhook", "proximo": "fim", "seFalhar": "desculpe"},
    {"id": "desculpe", **SENT, "texto": "Desculpe!", "proximo": "fim"},
    {"id": "fim", "tipo": "fim"},
]
CHANCES = ["ola", "espera", "chegou", "obrigado", "avisar", "fim"]


async def journey(api: Api, webhook_id: str, *steps: dict[str, Any]) -> str:
    called = [{**step, "webhookId": webhook_id} if step["tipo"] == "webhook" else step for step in steps]
    body = {"name": "Boas-vindas", "gatilho": {"tipo": "api"}, "inicio": steps[0]["id"], "passos": called}
    return str((await api.call("POST", "/v2/journeys", body))["id"])


async def over(api: Api, journey_id: str, execution_id: str) -> Any:
    async def ended() -> Any:
        found = await api.call("GET", f"/v2/journeys/{journey_id}/executions/{execution_id}")
        return found if found["status"] != "ativa" else None

    return await until(ended, "the execution is over", every=0.1)


async def test_a_draft_is_tried_from_its_welcome_to_a_call_that_its_receiver_believes(
    api: Api, start_receiver: Callable[[str], Receiver]
) -> None:
    receiver = start_receiver("python")
    subscription = await api.call("POST", "/webhooks", {"url": await receiver.url(), "events": ["wallet.depleted"]})
    receiver.believe(subscription["secret"])
    journey_id = await journey(api, subscription["id"], *STEPS)
    contact = await api.call("POST", "/contacts", {"phone": "+5511987659910", "externalId": "crm-9910"})
    begun = await api.call(
        "POST", f"/v2/journeys/{journey_id}/test", {"contactId": contact["id"], "dados": {"order": "A-1"}}
    )
    execution = await over(api, journey_id, begun["id"])
    results = [(step["passo"], step["resultado"]) for step in execution["passos"]]
    assert results == list(zip(CHANCES, ["enviado", "esperou", "sim", "enviado", "webhook_ok", "fim"], strict=True))
    (request,) = receiver.received
    assert request["accepted"]
    assert request["headers"]["x-svc-idempotency-key"] == f"{begun['id']}:avisar"
    told = json.loads(request["body"])
    assert (told["type"], told["data"]["entrada"], told["data"]["contact"]) == (
        "journey.action",
        {"order": "A-1"},
        {"id": contact["id"], "externalId": "crm-9910"},
    )
    shown = await api.call("GET", f"/webhooks/{subscription['id']}")
    assert shown["consecutiveFailures"] == 0
    assert (await api.call("GET", f"/webhooks/{subscription['id']}/deliveries"))["items"] == []


@pytest.mark.long
async def test_a_call_under_way_at_a_kill_is_made_again_under_its_key(
    tmp_path: Path, start_receiver: Callable[[str], Receiver]
) -> None:
    receiver = start_receiver("python")
    async with running(Service(tmp_path, SSRF_ALLOW_CIDRS="127.0.0.0/8", SANDBOX_TIME_SCALE="0")) as service:
        token = await asyncio.to_thread(service.key, "test")
        async with Api(service.url, token) as api:
            made = await api.call("POST", "/webhooks", {"url": await receiver.url(), "events": ["wallet.depleted"]})
            receiver.believe(made["secret"])
            journey_id = await journey(
                api, made["id"], {"id": "avisar", "tipo": "webhook", "proximo": "fim"}, STEPS[-1]
            )
            await api.call("POST", f"/v2/journeys/{journey_id}/activate")
            contact = await api.call("POST", "/contacts", {"phone": "+5511987659911"})
            receiver.process.send_signal(signal.SIGSTOP)  # it takes connections, and answers nothing
            entry = {"contato": {"contactId": contact["id"]}}
            entered = await api.call("POST", f"/v2/journeys/{journey_id}/entries", entry)
            path = f"/v2/journeys/{journey_id}/executions/{entered['executionId']}"

            async def waits() -> bool:
                return bool((await api.call("GET", path)).get("aguardando") == {"tipo": "webhook"})

            await until(waits, "the execution waits for its call")
            service.end(signal.SIGKILL)
            receiver.process.send_signal(signal.SIGCONT)
            await service.start()
            execution = await over(api, journey_id, entered["executionId"])
            assert [step["resultado"] for step in execution["passos"]] == ["webhook_ok", "fim"]
            keys = {request["headers"]["x-svc-idempotency-key"] for request in receiver.received}
            assert keys == {f"{entered['executionId']}:avisar"}
