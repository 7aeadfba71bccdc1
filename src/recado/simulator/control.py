"""What a test or an operator makes the simulated provider do: `POST /control/…`, each with a JSON body.

Changes of the hosted API's numbers, templates, flows and accounts come with the webhooks that announce them there.
"""

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from recado.channels.core.event_json import event_to_json
from recado.channels.core.events import Inbound
from recado.domain.channels.address import is_user_id
from recado.domain.core.timestamps import format_timestamp
from recado.simulator import cloud_webhooks
from recado.simulator.cloud_api import CloudApi, Later, Tell
from recado.simulator.cloud_state import CloudState, SimulatedNumber

MOST_AT_ONCE = 1_000_000

_TIERS = ("TIER_50", "TIER_250", "TIER_1K", "TIER_2K", "TIER_10K", "TIER_100K", "TIER_UNLIMITED")
_CHANGEABLE = frozenset(
    {
        "business_account",
        "display_phone_number",
        "status",
        "quality_rating",
        "messaging_limit",
        "name_status",
        "verified_name",
        "throughput",
        "code_verification_status",
    }
)

TellBridge = Callable[[dict[str, Any]], None]


class Control:
    """KeyError, TypeError or ValueError for a request that makes no sense."""

    def __init__(
        self,
        state: CloudState,
        api: CloudApi,
        *,
        tell: Tell,
        tell_bridge: TellBridge,
        later: Later,
        new_id: Callable[[], str],
    ) -> None:
        self._state = state
        self._api = api
        self._tell = tell
        self._tell_bridge = tell_bridge
        self._later = later
        self._new_id = new_id
        self._errors: dict[str | None, deque[int]] = {}

    def error_for(self, number_id: str) -> int | None:
        """The error code that the next send of this number was told to meet."""
        for key in (number_id, None):
            waiting = self._errors.get(key)
            if waiting:
                return waiting.popleft()
        return None

    def handle(self, what: str, which: str, body: dict[str, Any]) -> dict[str, Any]:
        """Do as told; the answer's body."""
        match what:
            case "numbers":
                self._change_number(self._state.number(which), body)
            case "templates":
                self._change_template(which, body)
            case "flows":
                self._change_flow(which, body)
            case "accounts":
                self._tell(cloud_webhooks.entry(which, _now(), "account_update", body))
            case "preferences":
                named = cloud_webhooks.named(_sender(body["from"]))
                account, metadata = self._state.metadata_of(str(body["number"]))
                self._tell(cloud_webhooks.preference(account, metadata, _now(), named, str(body.get("value", "stop"))))
            case "inbound":
                return {"success": True, "id": self._inbound(body)}
            case "inbound-rate":
                return {"success": True, "count": self._inbound_rate(body)}
            case "errors":
                number = body.get("number")
                times = min(int(body.get("times", 1)), MOST_AT_ONCE)
                key = None if number is None else str(number)
                self._errors.setdefault(key, deque()).extend([int(body["code"])] * times)
            case _:
                raise KeyError(what)
        return {"success": True}

    # Numbers and templates --------------------------------------------------------------------------------------------

    def _change_number(self, number: SimulatedNumber, body: dict[str, Any]) -> None:
        if unknown := set(body) - _CHANGEABLE:
            raise ValueError(f"a number has no {min(unknown)}")
        if body.get("messaging_limit", _TIERS[0]) not in _TIERS:
            raise ValueError(f"messaging_limit is one of {', '.join(_TIERS)}")
        before = {name: getattr(number, name) for name in body}
        for name, value in body.items():
            setattr(number, name, str(value))
        flagged = number.quality_rating == "RED"
        if "status" not in body and "quality_rating" in body:
            number.status = "FLAGGED" if flagged else "CONNECTED"
        self._state.changed(number)
        if "quality_rating" in body and flagged != (before["quality_rating"] == "RED"):
            self._announce(number, "phone_number_quality_update", event="FLAGGED" if flagged else "UNFLAGGED")
        if "messaging_limit" in body and body["messaging_limit"] != before["messaging_limit"]:
            rises = _TIERS.index(number.messaging_limit) > _TIERS.index(before["messaging_limit"])
            self._announce(
                number,
                "phone_number_quality_update",
                event="UPGRADE" if rises else "DOWNGRADE",
                old_limit=before["messaging_limit"],
            )
        if "name_status" in body:
            self._announce(
                number,
                "phone_number_name_update",
                decision=number.name_status,
                requested_verified_name=number.verified_name,
            )

    def _announce(self, number: SimulatedNumber, field: str, **value: str) -> None:
        if field == "phone_number_quality_update":
            value |= {
                "current_limit": number.messaging_limit,
                "max_daily_conversations_per_business": number.messaging_limit,
            }
        value["display_phone_number"] = number.display_phone_number
        self._tell(cloud_webhooks.entry(number.business_account, _now(), field, dict(value)))

    def _change_template(self, template_id: str, body: dict[str, Any]) -> None:
        found = self._state.template_by_id(template_id)
        if found is None:
            raise KeyError(template_id)
        account, before = found
        after = dict(before)
        after |= {name: str(body[name]) for name in ("status", "category") if name in body}
        self._state.store_template(account, after)
        if "status" in body:
            reason = str(body.get("reason", "NONE"))
            self._tell(cloud_webhooks.template_status(account, _now(), after, after["status"], reason))
        if "category" in body:
            self._tell(
                cloud_webhooks.template(
                    account,
                    _now(),
                    "template_category_update",
                    after,
                    previous_category=before["category"],
                    new_category=after["category"],
                )
            )
        if "quality" in body:
            self._tell(
                cloud_webhooks.template(
                    account,
                    _now(),
                    "message_template_quality_update",
                    after,
                    previous_quality_score=str(body.get("previous_quality", "UNKNOWN")),
                    new_quality_score=str(body["quality"]),
                )
            )

    def _change_flow(self, flow_id: str, body: dict[str, Any]) -> None:
        status = str(body["status"])
        if body.get("protocol") == "bridge":
            news = {"kind": "flow", "status": status.lower(), "at": format_timestamp(_now()), "providerFlowId": flow_id}
            self._tell_bridge(news)
            return
        found = self._state.flow(flow_id)
        if found is None:
            raise KeyError(flow_id)
        self._api.change_flow(*found, status.upper())

    # Inbound ----------------------------------------------------------------------------------------------------------

    def _inbound(self, body: dict[str, Any]) -> str:
        """One message from a person; its id. `message`: of any type, in the form of the hosted API."""
        number_id, sender, message_id = str(body["number"]), _sender(body["from"]), self._new_id()
        text: dict[str, Any] = {"type": "text", "text": {"body": str(body.get("text", "Oi"))}}
        if body.get("protocol") == "bridge":
            payload: dict[str, Any] = {"text": text["text"]}
            person = sender if is_user_id(sender) else f"+{sender}"
            event = Inbound(number_id, person, _now(), "text", payload, message_id, body.get("quoted"))
            self._tell_bridge(event_to_json(event))
            return message_id
        given: dict[str, Any] = body.get("message") or text
        message: dict[str, Any] = {
            **cloud_webhooks.named(sender),
            "id": message_id,
            "timestamp": str(int(_now().timestamp())),
            **given,
        }
        if "quoted" in body:
            message["context"] = {"from": self._state.number(number_id).display_phone_number, "id": str(body["quoted"])}
        account, metadata = self._state.metadata_of(number_id)
        self._tell(cloud_webhooks.inbound(account, metadata, _now(), message, str(body.get("name", "Simulated"))))
        return message_id

    def _inbound_rate(self, body: dict[str, Any]) -> int:
        """`perSecond` messages for `seconds`, from as many people, whose phones count up from `from`."""
        rate, first = float(body["perSecond"]), int(_digits(body["from"]))
        count = int(rate * float(body["seconds"]))
        if rate <= 0 or count > MOST_AT_ONCE:
            raise ValueError("the rate is out of bounds")
        self._inbound_next(body, first, count, 1 / rate)
        return count

    def _inbound_next(self, body: dict[str, Any], phone: int, left: int, interval: float) -> None:
        if left <= 0:
            return
        self._inbound({**body, "from": str(phone)})
        self._later(interval, lambda: self._inbound_next(body, phone + 1, left - 1, interval))


def _sender(told: object) -> str:
    """A user id, or the digits of a phone."""
    return str(told) if is_user_id(str(told)) else _digits(told)


def _digits(phone: object) -> str:
    digits = str(phone).removeprefix("+")
    if not digits.isascii() or not digits.isdigit():
        raise ValueError("a phone is made of digits")
    return digits


def _now() -> datetime:
    return datetime.now(UTC)
