"""Records of every kind that the console shows, named by somebody who wants markup to run in it."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.console.conftest import HOSTILE, Shown
from tests.acceptance.tenants import waiting_journey
from tests.media_files import PNG
from tests.program import Api
from tests.waiting import until

SHORT = "<img src=x onerror=hacked=1>"
"""Where there is not room for more."""

SUPPRESSED = 51  # one more than a page of a list has
REFUSED = "+5511987659001"  # the sandbox refuses to send there
TAKEN = "+5511987650102"
WITHOUT_RCS, REFUSED_RCS, SILENT_RCS = "+5511987659010", "+5511987659011", "+5511987659003"
"""An SMS takes the place at the first; the second has none; no report ever comes of the third."""
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
        await _push(api, ids)
        await _social(api, ids)
        await _rcs(api, ids)
        await _media(api, ids, shown.number_id)
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

    await until(reported, "one e-mail is delivered, and one has bounced", every=0.05)
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

    await until(one_failed, "a message of the batch has failed")


async def _push(api: Api, ids: dict[str, str]) -> None:
    """A message to two devices, of which one is gone, and one for later."""
    app = await api.call("POST", "/v2/push/apps", {"name": named("app"), "platforms": ["ios", "android"]})
    device: dict[str, Any] = {
        "appId": app["id"], "contactId": ids["other"], "deviceName": named("device"), "userName": named("user"),
        "externalId": named("device id"), "topics": [named("topic")],
    }  # fmt: skip
    for token, platform in (("console", "android"), ("console-unregistered", "ios")):
        await api.call("POST", "/v2/push/tokens", {**device, "token": token, "platform": platform})
    push: dict[str, Any] = {
        "platforms": ["ios", "android"], "tokenIds": ["console", "console-unregistered"], "title": named("push"),
        "body": named("notice"), "deepLink": f"shop://{SHORT}", "metadata": {"note": named("push note")},
        "actions": [{"label": SHORT, "link": "intent://open"}],
    }  # fmt: skip
    ids["app"] = app["id"]
    ids["push"] = (await api.call("POST", "/v2/push/messages", push, key="push"))["id"]
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    for_later = {**push, "title": named("later"), "tokenIds": ["console"], "scheduledAt": later}
    ids["later"] = (await api.call("POST", "/v2/push/messages", for_later, key="later"))["id"]

    async def completed() -> bool:
        return (await api.call("GET", f"/v2/push/messages/{ids['push']}"))["status"] == "completed"

    await until(completed, "the push message is completed")


async def _social(api: Api, ids: dict[str, str]) -> None:
    """An account to which somebody wrote, who was answered."""
    account = {"platform": "page", "externalAccountId": named("page"), "displayName": named("account")}
    ids["account"] = account_id = (await api.call("POST", "/v2/social/accounts", account))["id"]
    await api.call("POST", f"/v2/social/accounts/{account_id}/connect")
    person = named("person 1")
    wrote = {"channel": "social", "socialAccountId": account_id, "from": person, "text": named("asks")}
    ids["wrote"] = (await api.call("POST", "/v2/sandbox/inbound", wrote))["messageId"]
    answer = {
        "channel": "social", "socialAccountId": account_id, "to": person, "type": "text",
        "payload": {"text": {"body": named("answer")}},
    }  # fmt: skip
    ids["answer"] = (await api.call("POST", "/messages", answer))["id"]


async def _rcs(api: Api, ids: dict[str, str]) -> None:
    """One that an SMS took the place of, one that was refused, and one that may leave as an SMS yet."""
    fallback = {"text": named("by sms")}
    content = {
        "text": named("rcs"),
        "card": {
            "title": named("card"),
            "description": HOSTILE,
            "mediaUrl": f"https://elsewhere.invalid/{SHORT.replace(' ', '+')}",
            "suggestions": [{"type": "reply", "text": "<b>Yes</b>", "value": named("yes")}],
        },
    }
    rcs: dict[str, Any] = {"content": content, "transactional": True, "campaignId": named("campaign")}
    for name, to, more in (
        ("by sms", WITHOUT_RCS, {"fallback": fallback}),
        ("refused", REFUSED_RCS, {}),
        ("silent", SILENT_RCS, {"fallback": {**fallback, "afterSeconds": 86_400}}),
    ):
        ids[name] = (await api.call("POST", "/v2/rcs/messages", {**rcs, "to": to, **more}))["id"]

    async def there() -> bool:
        found = [await api.call("GET", f"/v2/rcs/messages/{ids[each]}") for each in ("by sms", "refused", "silent")]
        return [each["status"] for each in found] == ["delivered", "failed", "sent"]

    await until(there, "one went by SMS, one was refused, and one is sent", every=0.05)


async def _media(api: Api, ids: dict[str, str], number_id: str) -> None:
    """A file that a person sent, which is copied, and one that was uploaded and sent to them."""
    person, content = "+5511987650199", base64.b64encode(PNG).decode()
    media = {"mimeType": "image/png", "dataBase64": content, "filename": named("file")}
    came = await api.call("POST", "/v2/sandbox/inbound", {"numberId": number_id, "from": person, "media": media})
    ids["file"] = came["messageId"]
    upload = {"filename": named("upload"), "mimeType": "image/png", "dataBase64": content}
    ids["upload"] = (await api.call("POST", f"/numbers/{number_id}/media", upload))["mediaId"]
    payload = {"kind": "image", "media": {"id": ids["upload"], "filename": named("sent"), "caption": HOSTILE}}
    body = {"numberId": number_id, "to": person, "type": "media", "payload": payload}
    ids["sent file"] = (await api.call("POST", "/messages", body))["id"]

    async def copied() -> bool:
        return "mediaStorage" in await api.call("GET", f"/messages/{ids['file']}")

    await until(copied, "the file is copied", every=0.05)
