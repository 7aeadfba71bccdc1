"""A journey that welcomes people by e-mail, and goes on by whether they opened it (C9.6, C10.2.5)."""

import asyncio
import base64
import json
from typing import Any

import aiohttp
from tests.program import Api, Service
from tests.waiting import until

from recado.domain.email.public_tokens import EmailKey, PublicTokens

HTML = '<p>Olá, {{nome}}! <a href="https://example.com/primeiros-passos">Primeiros passos</a></p>'
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"}


async def welcome(api: Api) -> str:
    """The id of an active journey: an e-mail, and another one to those who opened the first within five minutes."""
    template = await api.call(
        "POST",
        "/v2/email/templates",
        {"name": "boas-vindas", "subject": "Olá, {{nome}}", "html": HTML, "variables": [{"name": "nome"}]},
    )
    send = {
        "tipo": "enviar", "canal": "email", "templateId": template["id"],
        "variaveis": {"nome": {"de": "contato", "campo": "name"}},
    }  # fmt: skip
    body = {
        "name": "boas-vindas",
        "gatilho": {"tipo": "api"},
        "inicio": "ola",
        "passos": [
            {"id": "ola", **send, "proximo": "leu"},
            {
                "id": "leu", "tipo": "condicao", "sobre": "ola", "sinal": "lido", "janelaMinutos": 5, "sim": "mais",
                "nao": "fim",
            },
            {"id": "mais", **send, "proximo": "fim"},
            {"id": "fim", "tipo": "fim"},
        ],
    }  # fmt: skip
    made = await api.call("POST", "/v2/journeys", body)
    assert made["problemas"] == []
    await api.call("POST", f"/v2/journeys/{made['id']}/activate")
    return str(made["id"])


async def open_image(service: Service, message: Any) -> None:
    """As the program of a reader loads the image of the e-mail."""
    kept = json.loads(await asyncio.to_thread((service.data_dir / "keys.json").read_text))
    tokens = PublicTokens(base64.b64decode(kept["index_key"]))
    token = tokens.of_open(EmailKey(message["organizationId"], "test", message["id"]))
    async with aiohttp.ClientSession() as session, session.get(f"{service.url}/o/{token}.gif", headers=BROWSER) as seen:
        assert seen.status == 200


async def test_who_opens_the_welcome_gets_the_next_email(api: Api, service: Service) -> None:
    journey_id = await welcome(api)
    contact = await api.call(
        "POST", "/contacts", {"phone": "+5511987659950", "name": "Ana", "email": "ana@example.com"}
    )
    entered = await api.call("POST", f"/v2/journeys/{journey_id}/entries", {"contato": {"contactId": contact["id"]}})
    path = f"/v2/journeys/{journey_id}/executions/{entered['executionId']}"

    async def delivered() -> Any:
        steps = (await api.call("GET", path))["passos"]
        if not steps:
            return None
        found = await api.call("GET", f"/v2/email/messages/{steps[0]['messageId']}")
        return found if found["status"] == "delivered" else None

    message = await until(delivered, "the e-mail is delivered")
    assert (message["subject"], message["from"]) == ("Olá, Ana", "Sandbox <no-reply@sandbox.test>")
    assert message["metadata"] == {
        "journeyId": journey_id, "journeyStepId": "ola", "journeyRunId": entered["executionId"],
    }  # fmt: skip
    await open_image(service, message)

    async def over() -> Any:
        found = await api.call("GET", path)
        return found if found["status"] != "ativa" else None

    execution = await until(over, "the execution is over")
    assert (execution["status"], execution["motivo"]) == ("concluida", "fim")
    assert [(step["passo"], step["resultado"]) for step in execution["passos"]] == [
        ("ola", "enviado"), ("leu", "sim"), ("mais", "enviado"), ("fim", "fim"),
    ]  # fmt: skip
