"""Records of every kind that the console shows, named by somebody who wants markup to run in it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.console.conftest import HOSTILE, Shown
from tests.acceptance.tenants import waiting_journey
from tests.program import Api
from tests.waiting import until

SHORT = "<img src=x onerror=hacked=1>"
"""Where there is not room for more."""

SUPPRESSED = 51  # one more than a page of a list has
REFUSED = "+5511987659001"  # the sandbox refuses to send there
TAKEN = "+5511987650102"
ARRIVED, BOUNCED = "success+console@simulator.test", "bounce+console@simulator.test"
"""The mailbox simulator decides what becomes of e-mail there."""
ODD = [
    {"id": "round", "tipo": "esperar", "minutos": 5, "proximo": "trip"},
    {
        "id": "trip",
        "tipo": "condicao",
        "campo": "tags",
        "operador": "igual",
        "valor": True,
        "sim": "round",
        "nao": "none",
    },
    {"id": "round", "tipo": "webhook", "webhookId": "wbh_none", "proximo": "trip", "seFalhar": "alone"},
    {"id": "alone", "tipo": "esperar", "hora": "08:00", "dias": [1, 9]},
    {"id": "empty", "tipo": "dividir", "ramos": []},
]
"""Steps of a draft: two of one name, a circle, ways that lead nowhere, a day that no week has."""

MAIL = """<html><head><base href="http://elsewhere.invalid/"><title>none</title>
<!--[if mso]><style>p { color: red !important }</style><![endif]-->
<style>.big { font-size: 40px } @import url(http://elsewhere.invalid/a.css);</style>
<link rel="stylesheet" href="http://elsewhere.invalid/b.css"><script>hacked=1</script></head>
<body style="background: rgb(1, 2, 3) url(http://elsewhere.invalid/c.png)" onload="parent.hacked=1">
<p class="big" style="color: rgb(4, 5, 6)">Order {{order}}</p><img src="http://elsewhere.invalid/d.png" alt="a picture">
<a href="http://elsewhere.invalid/">a link</a><form action="http://elsewhere.invalid/"><button>send</button></form>
<iframe src="http://elsewhere.invalid/"></iframe></body></html>"""


def named(what: str) -> str:
    return f"{what} {SHORT}"


async def make_records(shown: Shown) -> dict[str, str]:
    """In test; answers the id of one of each kind."""
    ids: dict[str, str] = {}
    async with Api(shown.url, shown.token) as api:
        signed_in = await api.call("POST", "/v2/sessions", {"email": shown.email, "password": shown.password})
        await _people(api, ids, signed_in["tokens"]["test"])
        await _contents(api, ids, shown.number_id)
        await _journey(api, ids)
        await _emails(api, ids)
        await _batches(api, ids)
    return ids


async def _people(api: Api, ids: dict[str, str], session: str) -> None:
    body: dict[str, Any] = {
        "phone": TAKEN, "name": HOSTILE, "email": "ana@example.com", "tags": [named("tag")],
        "attributes": {"note": named("attribute")}, "externalId": named("external"), "cpf": "529.982.247-25",
    }  # fmt: skip
    ids["contact"] = (await api.call("POST", "/contacts", body))["id"]
    ids["other"] = (await api.call("POST", "/contacts", {"phone": "+5511987650103"}))["id"]
    refusal = {
        "status": "denied",
        "source": named("source"),
        "revokedReason": named("reason"),
        "userAgent": named("agent"),
    }
    for consent in (refusal, {"status": "granted", "source": "form"}):
        await api.call("PATCH", f"/contacts/{ids['contact']}", {"optIn": consent})
    person = {"name": named("person"), "email": "invited@example.com", "role": "analyst"}
    await api.call("POST", "/v2/accounts", person, token=session)
    key = await api.call("POST", "/v2/api-keys", {"name": named("key"), "scopes": ["messages:read"]})
    ids["key"] = key["id"]


async def _contents(api: Api, ids: dict[str, str], number_id: str) -> None:
    template = {
        "numberId": number_id, "name": named("template"), "language": "pt-BR", "category": "utility",
        "components": [
            {"type": "BODY", "payload": {"text": named("text"), "example": [named("example")]}},
            {"type": "FOOTER", "payload": {"text": {"type": "script", "props": named("no text")}}},
            {"type": "BUTTONS", "payload": {"buttons": [
                {"type": "URL", "text": named("button"), "url": "javascript:alert(1)"}, 7,
            ]}},
        ],
    }  # fmt: skip
    ids["template"] = (await api.call("POST", "/v2/templates", template))["id"]
    mail = {
        "name": named("mail"), "subject": named("subject {{order}}"), "html": MAIL, "text": named("plain {{order}}"),
        "variables": [{"name": "order", "example": named("value")}],
    }  # fmt: skip
    ids["mail"] = (await api.call("POST", "/v2/email/templates", mail))["id"]
    await api.call("POST", "/v2/email/senders", {"domain": "mail.example.com", "displayName": named("sender")})
    for serial in range(SUPPRESSED):
        await api.call("POST", "/v2/email/suppressions", {"email": f"gone{serial}@example.com"})


async def _journey(api: Api, ids: dict[str, str]) -> None:
    passos = [
        {"id": "split", "tipo": "dividir", "ramos": [
            {"nome": named("a"), "peso": 1, "proximo": "send"}, {"nome": "b", "peso": 1, "proximo": "wait"},
        ]},
        {"id": "send", "tipo": "enviar", "canal": "sms", "texto": named("say"), "proximo": "asked"},
        {
            "id": "asked", "tipo": "condicao", "sobre": "send", "sinal": "entregue", "janelaMinutos": 60,
            "sim": "end", "nao": "wait",
        },
        {"id": "wait", "tipo": "esperar", "minutos": 1_440, "proximo": "end"},
        {"id": "end", "tipo": "fim"},
    ]  # fmt: skip
    body = {
        "name": named("journey"),
        "descricao": named("about"),
        "gatilho": {"tipo": "api"},
        "inicio": "split",
        "passos": passos,
    }
    journey_id = (await api.call("POST", "/v2/journeys", body))["id"]
    await api.call("POST", f"/v2/journeys/{journey_id}/activate")
    entry = {"contato": {"contactId": ids["contact"]}, "dados": {"order": named("entry")}}
    execution = await api.call("POST", f"/v2/journeys/{journey_id}/entries", entry)
    ids |= {"journey": journey_id, "execution": execution["executionId"]}
    waiting = (await api.call("POST", "/v2/journeys", waiting_journey(named("waiting"))))["id"]
    await api.call("POST", f"/v2/journeys/{waiting}/activate")
    standing = await api.call("POST", f"/v2/journeys/{waiting}/entries", entry)
    ids |= {"waiting": waiting, "standing": standing["executionId"]}
    draft = {**body, "name": named("draft"), "inicio": "nowhere", "passos": ODD}
    ids["draft"] = (await api.call("POST", "/v2/journeys", draft, permitirProblemas="true"))["id"]


async def _emails(api: Api, ids: dict[str, str]) -> None:
    """One that arrived, and one that came back, whose address is released again."""
    for to, status in ((ARRIVED, "delivered"), (BOUNCED, "bounced")):
        content = {"to": to, "subject": named(status), "html": MAIL, "transactional": True}
        ids[status] = (await api.call("POST", "/v2/email/messages", content, key=status))["id"]

    async def reported() -> bool:
        found = [await api.call("GET", f"/v2/email/messages/{ids[each]}") for each in ("delivered", "bounced")]
        return [each["status"] for each in found] == ["delivered", "bounced"]

    await until(reported, 30, "one e-mail is delivered, and one has bounced", every=0.05)
    (suppressed,) = (await api.call("GET", "/v2/email/suppressions", email=BOUNCED))["items"]
    await api.call("DELETE", f"/v2/email/suppressions/{suppressed['id']}")


async def _batches(api: Api, ids: dict[str, str]) -> None:
    """One that stays queued, and one of which a message fails."""
    sms = {"channel": "sms", "text": named("good morning")}
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    held = {**sms, "name": named("held"), "recipients": [{"to": TAKEN}], "scheduledAt": later}
    ids["held"] = (await api.call("POST", "/messages/bulk", held))["id"]
    recipients = [{"to": REFUSED}, {"to": TAKEN}, {"to": "no phone"}]
    failed = {**sms, "name": named("failed"), "recipients": recipients, "campaignId": named("campaign")}
    ids["failed"] = batch_id = (await api.call("POST", "/messages/bulk", failed))["id"]

    async def one_failed() -> bool:
        return (await api.call("GET", f"/v2/batches/{batch_id}"))["totals"]["failed"] == 1

    await until(one_failed, 30, "a message of the batch has failed")
