"""An organization whose every record is named by somebody who wants markup to run in the console."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.tenants import PASSWORD
from tests.program import Api
from tests.waiting import until

MARKUP = '"><img src=x onerror=alert(1)>'
"""What would call for a file, and open a dialog, if it became markup."""

REFUSED = "+5511987659001"  # the sandbox refuses to send there
TAKEN = "+5511987650102"
MAIL = """<html><head>
<style>.big { font-size: 40px } @import url(http://elsewhere.invalid/a.css);</style>
<link rel="stylesheet" href="http://elsewhere.invalid/b.css"><script>alert(2)</script></head>
<body style="background: rgb(1, 2, 3) url(http://elsewhere.invalid/c.png)" onload="alert(3)">
<p class="big" style="color: rgb(4, 5, 6)">Order {{order}}</p><img src="http://elsewhere.invalid/d.png" alt="a picture">
<a href="http://elsewhere.invalid/">a link</a><form action="http://elsewhere.invalid/"><button>send</button></form>
<iframe src="http://elsewhere.invalid/"></iframe></body></html>"""


def named(what: str) -> str:
    return f"{what} {MARKUP}"


@dataclass(slots=True)
class Records:
    """What the organization has. `ids`: of one record of each kind. `email`: of its owner, whose password is `PASSWORD`."""

    email: str
    session: str
    ids: dict[str, str] = field(default_factory=dict)


async def make_records(url: str, admin_token: str, email: str) -> Records:
    """In test."""
    async with Api(url, admin_token) as administrator:
        made = await administrator.call(
            "POST", "/v2/admin/organizations", {"name": named("organization"), "ownerEmail": email}
        )
    async with Api(url, made["keys"]["test"]["token"]) as api:
        await api.call("POST", "/v2/accounts/accept-invite", {"token": made["inviteToken"], "password": PASSWORD})
        signed_in = await api.call("POST", "/v2/sessions", {"email": email, "password": PASSWORD})
        records = Records(email, signed_in["tokens"]["test"])
        await _people(api, records)
        await _contents(api, records)
        await _journey(api, records)
        await _batches(api, records)
    return records


async def _people(api: Api, records: Records) -> None:
    body: dict[str, Any] = {
        "phone": TAKEN, "name": named("contact"), "email": "ana@example.com", "tags": [named("tag")],
        "attributes": {"note": named("attribute")}, "externalId": named("external"), "cpf": "529.982.247-25",
    }  # fmt: skip
    records.ids["contact"] = (await api.call("POST", "/contacts", body))["id"]
    refusal = {"status": "denied", "source": named("source"), "revokedReason": named("reason"), "userAgent": named("agent")}
    for consent in (refusal, {"status": "granted", "source": "form"}):
        await api.call("PATCH", f"/contacts/{records.ids['contact']}", {"optIn": consent})
    person = {"name": named("person"), "email": f"invited.{records.email}", "role": "analyst"}
    await api.call("POST", "/v2/accounts", person, token=records.session)
    key = await api.call("POST", "/v2/api-keys", {"name": named("key"), "scopes": ["messages:read"]})
    records.ids["key"] = key["id"]


async def _contents(api: Api, records: Records) -> None:
    number = (await api.call("GET", "/numbers"))["items"][0]
    template = {
        "numberId": number["id"], "name": named("template"), "language": "pt-BR", "category": "utility",
        "components": [
            {"type": "BODY", "payload": {"text": named("text"), "example": [named("example")]}},
            {"type": "FOOTER", "payload": {"text": {"type": "script", "props": named("no text")}}},
            {"type": "BUTTONS", "payload": {"buttons": [{"type": "URL", "text": named("button"), "url": "javascript:alert(1)"}, 7]}},
        ],
    }  # fmt: skip
    records.ids["template"] = (await api.call("POST", "/v2/templates", template))["id"]
    mail = {
        "name": named("mail"), "subject": named("subject {{order}}"), "html": MAIL, "text": named("plain {{order}}"),
        "variables": [{"name": "order", "example": named("value")}],
    }  # fmt: skip
    records.ids["mail"] = (await api.call("POST", "/v2/email/templates", mail))["id"]
    await api.call("POST", "/v2/email/senders", {"domain": "mail.example.com", "displayName": named("sender")})
    await api.call("POST", "/v2/email/suppressions", {"email": "gone@example.com"})


async def _journey(api: Api, records: Records) -> None:
    passos = [
        {"id": "split", "tipo": "dividir", "ramos": [
            {"nome": named("a"), "peso": 1, "proximo": "send"}, {"nome": "b", "peso": 1, "proximo": "wait"},
        ]},
        {"id": "send", "tipo": "enviar", "canal": "sms", "texto": named("say"), "proximo": "asked"},
        {"id": "asked", "tipo": "condicao", "sobre": "send", "sinal": "entregue", "janelaMinutos": 60, "sim": "end", "nao": "wait"},
        {"id": "wait", "tipo": "esperar", "minutos": 1_440, "proximo": "end"},
        {"id": "end", "tipo": "fim"},
    ]  # fmt: skip
    body = {"name": named("journey"), "descricao": named("about"), "gatilho": {"tipo": "api"}, "inicio": "split", "passos": passos}
    journey_id = (await api.call("POST", "/v2/journeys", body))["id"]
    await api.call("POST", f"/v2/journeys/{journey_id}/activate")
    entry = {"contato": {"contactId": records.ids["contact"]}, "dados": {"order": named("entry")}}
    execution = await api.call("POST", f"/v2/journeys/{journey_id}/entries", entry)
    records.ids |= {"journey": journey_id, "execution": execution["executionId"]}


async def _batches(api: Api, records: Records) -> None:
    """One that stays queued, and one of which a message fails."""
    sms = {"channel": "sms", "text": named("good morning")}
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    held = {**sms, "name": named("held"), "recipients": [{"to": TAKEN}], "scheduledAt": later}
    records.ids["held"] = (await api.call("POST", "/messages/bulk", held))["id"]
    recipients = [{"to": REFUSED}, {"to": TAKEN}, {"to": "no phone"}]
    failed = {**sms, "name": named("failed"), "recipients": recipients, "campaignId": named("campaign")}
    records.ids["failed"] = batch_id = (await api.call("POST", "/messages/bulk", failed))["id"]

    async def one_failed() -> bool:
        return (await api.call("GET", f"/v2/batches/{batch_id}"))["totals"]["failed"] == 1

    await until(one_failed, 30, "a message of the batch has failed")
