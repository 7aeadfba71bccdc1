"""Organizations with something in every table, so that there is something to find, to confuse and to protect."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from tests.media_files import PNG
from tests.program import Api
from tests.waiting import until

from recado.domain.core.ids import (
    ACCOUNT,
    API_KEY,
    BATCH,
    COMPANY,
    CONTACT,
    CONTACT_IMPORT,
    DELIVERY,
    EMAIL_SENDER,
    EMAIL_SUPPRESSION,
    EMAIL_TEMPLATE,
    EXECUTION,
    FLOW,
    JOURNEY,
    LIST,
    MEDIA,
    MESSAGE,
    NUMBER,
    ORGANIZATION,
    ORIGIN_LINK,
    PUSH_APP,
    PUSH_DISPATCH,
    PUSH_MESSAGE,
    SEGMENT,
    SOCIAL_ACCOUNT,
    TEMPLATE,
    TOP_UP,
    WEBHOOK,
)
from recado.http.api.route import Route

CAMPAIGN = "campaign"  # the callers' own tag: no id of the service, and so without a prefix
CUSTOMER = "+5511987650000"
"""The sandbox delivers to this phone, and reads."""
PASSWORD = "the owner's password"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One organization in test. `live`: the token of its key of the other environment. `sessions`: tokens of its owner,
    by environment. `ids`: one of each kind it owns. `others`: by operation, the path of another record with a list
    under it.

    What `ids` names stays as it is; what an operation consumes is made for it.
    """

    organization_id: str
    token: str
    live: str
    sessions: Mapping[str, str]
    ids: Mapping[str, str]
    others: Mapping[str, Mapping[str, str]]

    def credential(self, route: Route, env: str = "test") -> str:
        """The token with which it calls an operation: a session's where a key would not do."""
        if route.session_only:
            return self.sessions[env]
        return self.token if env == "test" else self.live


async def settle(url: str, admin_token: str, name: str) -> Tenant:
    """A new organization, with at least two of everything that is listed, when nothing of it moves any more."""
    async with Api(url, admin_token) as administrator:
        body = {"name": name, "ownerEmail": f"{quote(name)}@example.com"}
        made = await administrator.call("POST", "/v2/admin/organizations", body)
    keys = made["keys"]
    async with Api(url, keys["test"]["token"]) as api:
        await api.call("POST", "/v2/accounts/accept-invite", {"token": made["inviteToken"], "password": PASSWORD})
        sign_in = {"email": body["ownerEmail"], "password": PASSWORD}
        sessions = (await api.call("POST", "/v2/sessions", sign_in))["tokens"]
        person = {"name": "Invited", "email": f"invited.{sign_in['email']}", "role": "analyst"}
        invited = await api.call("POST", "/v2/accounts", person, token=sessions["test"])
        number = (await api.call("GET", "/numbers"))["items"][0]
        await api.number(f"another of {name}")
        templates = [await api.call("POST", "/v2/templates", template(number["id"], f"first{n}")) for n in range(2)]
        key = await api.call("POST", "/v2/api-keys", {"name": "another", "scopes": ["messages:read"]})
        await api.call(
            "POST", "/v2/sandbox/inbound", {"numberId": number["id"], "from": CUSTOMER, "text": "good morning"}
        )
        campaigns = [f"campaign {n} of {name}" for n in range(2)]
        messages = [
            await api.call("POST", "/messages", {**text(number["id"]), "campaignId": campaign})
            for campaign in campaigns
        ]
        for _ in range(2):
            await api.call("POST", "/v2/sms/messages", {"to": CUSTOMER, "text": "Good morning"})
        for _ in range(2):
            await api.call("POST", "/v2/rcs/messages", {"to": CUSTOMER, "content": {"text": "Good morning"}})
        for serial in range(2):
            await api.call("POST", "/v2/email/messages", email(), key=f"e-mail {serial}")
        hooks = [await api.call("POST", "/webhooks", webhook(f"of {name}")) for _ in range(2)]
        deliveries = [await api.call("POST", f"/webhooks/{hooks[0]['id']}/test") for _ in range(2)]
        for hook in hooks:  # or their deliveries would go on changing the database while the walk compares it
            await api.call("PATCH", f"/webhooks/{hook['id']}", {"status": "paused"})
        top_ups = [await api.call("POST", "/v2/wallet/top-ups", {"coins": 1_000}) for _ in range(2)]
        content = {name: value for name, value in later(number["id"]).items() if name != "to"}
        batches = [
            await api.call("POST", "/messages/bulk", {**content, "recipients": [{"to": CUSTOMER}]}) for _ in range(2)
        ]
        companies = [await api.call("POST", "/v2/companies", {"nome": f"{n} of {name}"}) for n in range(2)]
        of_all = {"cpf": "529.982.247-25", "companyId": companies[0]["id"]}
        contacts = [
            await api.call("POST", "/contacts", {"phone": f"+551198765100{n}", "debtorGroups": [debt(n)], **of_all})
            for n in range(2)
        ]
        for consent in ({"status": "denied"}, {"status": "granted", "source": "form"}):
            await api.call("PATCH", f"/contacts/{contacts[0]['id']}", {"optIn": consent})
        static_lists = [await api.call("POST", "/v2/lists", {"name": f"{n} of {name}"}) for n in range(2)]
        segments = [
            await api.call("POST", "/v2/segments", {"name": f"{n} of {name}", "filters": [SEEN]}) for n in range(2)
        ]
        links = [
            await api.call("POST", "/v2/origin-links", origin_link(number["id"], f"{n} of {name}")) for n in range(2)
        ]
        mails = [await api.call("POST", "/v2/email/templates", email_template(f"{n} of {name}")) for n in range(2)]
        sender = await api.call("POST", "/v2/email/senders", {"domain": "mail.example.com"})
        social = [await api.call("POST", "/v2/social/accounts", social_account(f"{n} of {name}")) for n in range(2)]
        suppressed = [
            await api.call("POST", "/v2/email/suppressions", {"email": f"{n}.{quote(name)}@example.com"})
            for n in range(2)
        ]
        flows = [await api.call("POST", "/v2/flows", flow(number["id"], f"{n} of {name}")) for n in range(2)]
        app = await api.call("POST", "/v2/push/apps", {"name": f"App of {name}", "platforms": ["android"]})
        for n in range(2):
            await api.call("POST", "/v2/push/tokens", {"appId": app["id"], "token": f"{n}", "platform": "android"})
        pushed = [
            await api.call("POST", "/v2/push/messages", push_message(), key=f"push {n} of {name}") for n in range(2)
        ]
        dispatched = await api.call("GET", f"/v2/push/messages/{pushed[0]['id']}/dispatches")
        for serial in range(2):
            await api.call("POST", "/v2/events", customer_event(f"{serial} of {name}", contacts[0]["id"]))
        journeys = [await api.call("POST", "/v2/journeys", journey(f"{n} of {name}")) for n in range(2)]
        under_way = await api.call("POST", "/v2/journeys", waiting_journey(f"under way of {name}"))
        await api.call("POST", f"/v2/journeys/{under_way['id']}/activate")
        executions = [
            await api.call("POST", f"/v2/journeys/{under_way['id']}/entries", {"contato": {"contactId": contact["id"]}})
            for contact in contacts
        ]
        imported = await api.call("POST", "/contacts/import", {"contacts": []})
        held = await api.call("POST", "/messages", later(number["id"]))
        file = {"filename": "dot.png", "mimeType": "image/png", "dataBase64": base64.b64encode(PNG).decode()}
        media = await api.call("POST", f"/numbers/{number['id']}/media", file)

        async def all_read() -> bool:
            found = [await api.call("GET", f"/messages/{message['id']}") for message in messages]
            return all(message["status"] == "read" for message in found)

        await until(all_read, "the first messages are read")
    ids = {
        CAMPAIGN: campaigns[0],
        BATCH: batches[0]["id"],
        ORGANIZATION: made["id"],
        ACCOUNT: invited["id"],
        CONTACT: contacts[0]["id"],
        CONTACT_IMPORT: imported["id"],
        COMPANY: companies[0]["id"],
        JOURNEY: under_way["id"],
        EXECUTION: executions[0]["executionId"],
        LIST: static_lists[0]["id"],
        ORIGIN_LINK: links[0]["id"],
        EMAIL_TEMPLATE: mails[0]["id"],
        EMAIL_SENDER: sender["id"],
        EMAIL_SUPPRESSION: suppressed[0]["id"],
        PUSH_APP: app["id"],
        PUSH_MESSAGE: pushed[0]["id"],
        PUSH_DISPATCH: dispatched["items"][0]["id"],
        FLOW: flows[0]["id"],
        SEGMENT: segments[0]["id"],
        SOCIAL_ACCOUNT: social[0]["id"],
        API_KEY: key["id"],
        NUMBER: number["id"],
        TEMPLATE: templates[0]["id"],
        MEDIA: media["mediaId"],
        MESSAGE: held["id"],
        TOP_UP: top_ups[0]["id"],
        WEBHOOK: hooks[0]["id"],
        DELIVERY: deliveries[0]["deliveryId"],
    }
    others = {
        "listWebhookDeliveries": {"id": hooks[1]["id"]},
        "listSegmentContacts": {"segmentId": segments[1]["id"]},
        "listContactConsents": {"id": contacts[1]["id"]},
        "listExecutions": {"id": journeys[0]["id"]},
        "listPushDispatches": {"id": pushed[1]["id"]},
    }
    return Tenant(made["id"], keys["test"]["token"], keys["live"]["token"], sessions, ids, others)


def email() -> dict[str, Any]:
    return {"to": "bia@example.com", "subject": "Your order", "text": "It is ready.", "transactional": True}


def email_template(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "subject": "Your order {{order}}",
        "mjml": "<mjml><mj-body><mj-section><mj-column><mj-text>Hello {{name}}</mj-text></mj-column></mj-section>"
        "</mj-body></mjml>",
        "text": "Hello {{ name }}",
        "variables": [{"name": "order"}, {"name": "name", "example": "friend"}],
    }


def social_account(external_id: str) -> dict[str, Any]:
    """A page of a social platform."""
    return {"platform": "page", "externalAccountId": external_id, "displayName": "Padaria"}


def origin_link(number_id: str, name: str) -> dict[str, Any]:
    """A link to the chat of a number."""
    return {"name": name, "numberId": number_id, "text": "Good morning", "fonte": "search_ads"}


def customer_event(event_id: str, contact_id: str) -> dict[str, Any]:
    """What a customer did."""
    return {"name": "order.paid", "eventId": event_id, "contact": {"contactId": contact_id}, "value": 99.9}


def journey(name: str) -> dict[str, Any]:
    """A draft without problems."""
    send = {"id": "send", "tipo": "enviar", "canal": "sms", "texto": "Good morning", "proximo": "end"}
    return {"name": name, "gatilho": {"tipo": "api"}, "inicio": "send", "passos": [send, {"id": "end", "tipo": "fim"}]}


def waiting_journey(name: str) -> dict[str, Any]:
    """One in which whoever enters waits for longer than any test."""
    wait = {"id": "wait", "tipo": "esperar", "minutos": 1_440, "proximo": "end"}
    return {"name": name, "gatilho": {"tipo": "api"}, "inicio": "wait", "passos": [wait, {"id": "end", "tipo": "fim"}]}


def template(number_id: str, name: str) -> dict[str, Any]:
    """A template that the provider would take."""
    return {
        "numberId": number_id,
        "name": name,
        "language": "pt-BR",
        "category": "utility",
        "components": [{"type": "BODY", "payload": {"text": "Tudo certo."}}],
    }


def flow(number_id: str, name: str) -> dict[str, Any]:
    """A flow of two screens."""
    return {
        "numberId": number_id,
        "name": name,
        "providerCategories": ["SURVEY"],
        "flowJson": {
            "routing_model": {"ASK": ["END"]},
            "screens": [{"id": "ASK", "title": "How was it?"}, {"id": "END", "terminal": True}],
        },
    }


SEEN = {"field": "channel", "operator": "is", "value": "chatapp"}
"""A condition that holds for everybody."""


def debt(serial: int) -> dict[str, Any]:
    """A debt group."""
    return {"company": f"Loja {serial}", "phones": [CUSTOMER]}


def webhook(description: str) -> dict[str, Any]:
    """A subscription to what does not happen here, at a port where nobody listens."""
    return {"url": "http://127.0.0.1:1/", "events": ["wallet.depleted"], "description": description}


def text(number_id: str) -> dict[str, Any]:
    """A message to somebody who has just written."""
    return {"numberId": number_id, "to": CUSTOMER, "type": "text", "payload": {"text": {"body": "Bom dia"}}}


def later(number_id: str) -> dict[str, Any]:
    """A message that stays queued."""
    return {**text(number_id), "scheduledAt": (datetime.now(UTC) + timedelta(days=1)).isoformat()}


def push_message(**more: Any) -> dict[str, Any]:
    """A notification to every device, which leaves in a month: it can be canceled."""
    later = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    content = {"title": "Hello", "body": "There is news.", "platforms": ["android"], "scheduledAt": later}
    return {"segment": "all_opt_in", **content, **more}
