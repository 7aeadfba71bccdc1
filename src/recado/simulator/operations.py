"""The operations of the bridge protocol besides sending: enough of a provider for numbers, templates and flows."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from recado.channels.core.event_json import event_to_json
from recado.channels.core.events import TemplateVerdict
from recado.simulator.record import recipient_hash

REVIEW_SECONDS = 1.0

# What every account holds already, approved: a number in live has something to send without a person's sign-in.
OFFERED = (("order_update", "utility"), ("login_code", "authentication"), ("news", "marketing"))

Account = tuple[str, str]
"""Organization and `phoneNumberId`: what one organization submits, no other is shown."""

ReportLater = Callable[[float, str | None, bytes], None]


class Operations:
    """Numbers are connected until they are disconnected; a template or a flow whose name holds `reject` is rejected."""

    def __init__(self, report_later: ReportLater) -> None:
        self._report_later = report_later
        self._disconnected: set[Account] = set()
        self._profiles: dict[Account, dict[str, Any]] = {}
        self._templates: dict[Account, dict[str, dict[str, Any]]] = {}

    def answer(self, operation: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer; KeyError when the request lacks a field."""
        account = (str(body["organizationId"]), str(body["account"]))
        match operation:
            case "connect":
                self._disconnected.discard(account)
                return 200, {}
            case "disconnect":
                self._disconnected.add(account)
                return 200, {}
            case "number_health":
                return 200, self._health(account)
            case "update_profile":
                self._profiles.setdefault(account, {}).update(body["profile"])
                return 200, {}
            case "submit_template":
                return 200, self._submit(account, body)
            case "delete_template":
                templates = self._held(account)
                for template_id in [key for key, known in templates.items() if known["name"] == body["name"]]:
                    del templates[template_id]
                return 200, {}
            case "list_templates":
                return 200, {"templates": list(self._held(account).values())}
            case "create_flow" if "reject" in body["name"]:
                return 422, {"code": "provider_error", "message": "its name asks for it"}
            case "create_flow":
                return 200, {"providerFlowId": f"sim_{recipient_hash(body['name'])}"}
            case "publish_flow" | "deprecate_flow" if body["providerFlowId"]:
                return 200, {}
        return 404, {"code": "provider_error", "message": "no such operation"}

    def _health(self, account: Account) -> dict[str, Any]:
        return {
            "status": "disconnected" if account in self._disconnected else "connected",
            "quality": "green",
            "tier": "unlimited",
            "nameStatus": "approved",
            "profile": self._profiles.get(account, {}),
        }

    def _held(self, account: Account) -> dict[str, dict[str, Any]]:
        """The account's templates by the provider's id."""
        if account not in self._templates:
            self._templates[account] = {f"sim_{name}": _offered(name, category) for name, category in OFFERED}
        return self._templates[account]

    def _submit(self, account: Account, body: dict[str, Any]) -> dict[str, Any]:
        template_id = f"sim_{body['id']}"
        verdict = "rejected" if "reject" in body["name"] else "approved"
        template = {name: body[name] for name in ("name", "language", "category", "components")}
        self._held(account)[template_id] = {
            "providerTemplateId": template_id,
            "status": verdict,
            **template,
        }
        event = TemplateVerdict(
            "rejected" if verdict == "rejected" else "approved",
            datetime.now(UTC) + timedelta(seconds=REVIEW_SECONDS),
            template_id,
            account[1],
            reason="its name asks for it" if verdict == "rejected" else None,
        )
        self._report_later(REVIEW_SECONDS, body.get("callbackUrl"), orjson.dumps(event_to_json(event)))
        return {"providerTemplateId": template_id}


def _offered(name: str, category: str) -> dict[str, Any]:
    body = {"text": "For you: {{1}}.", "example": ["something"]}
    return {
        "providerTemplateId": f"sim_{name}",
        "status": "approved",
        "name": name,
        "language": "en-US",
        "category": category,
        "components": [{"type": "BODY", "payload": body}],
    }
