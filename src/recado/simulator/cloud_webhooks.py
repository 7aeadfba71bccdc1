"""What the simulated hosted API reports: one entry of a callback for each event, as JSON objects. Pure."""

from datetime import datetime, timedelta
from typing import Any

from recado.channels.chatapp.cloud_messages import PRODUCT
from recado.domain.channels.address import is_user_id
from recado.simulator.record import Request, recipient_hash

Entry = dict[str, Any]

# Our failure codes in the words of the API, for receipts and refusals alike.
CODES = {
    "recipient_unreachable": 131026,
    "policy_blocked": 131049,
    "media_invalid": 131053,
    "template_unavailable": 132001,
}


def user_id(recipient: str) -> str:
    """The id of a person within the business, from the hash of the recipient: the same before and after a restart."""
    return f"BR.{int(recipient, 16)}"


def named(sender: str) -> dict[str, str]:
    """How a message tells its sender: the digits of a phone, with the user id besides; or a user id alone."""
    if is_user_id(sender):
        return {"from_user_id": sender}
    return {"from": sender, "from_user_id": user_id(recipient_hash(sender))}


def entry(business_account: str, at: datetime, field: str, value: dict[str, Any]) -> Entry:
    return {"id": business_account, "time": int(at.timestamp()), "changes": [{"field": field, "value": value}]}


def status(request: Request, place: int, business_account: str, metadata: dict[str, Any], to: str | None) -> Entry:
    """A report. The recipient stands in it as long as it is known: the record holds only its hash."""
    at = request.at + timedelta(seconds=request.delays[place])
    phone = None if to is None or is_user_id(to) else to
    named = to if to is not None and phone is None else user_id(request.recipient)
    person = {"user_id": named, **({"wa_id": phone} if phone else {})}
    report: dict[str, Any] = {
        "id": request.provider_message_id,
        "status": request.receipts[place],
        "timestamp": str(int(at.timestamp())),
        "recipient_user_id": person["user_id"],
    }
    if phone:
        report["recipient_id"] = phone
    if request.referenced and request.id != request.provider_message_id:
        report["biz_opaque_callback_data"] = request.id
    if report["status"] == "failed":
        report["errors"] = [error(CODES.get(request.code or "", 131000))]
    value = {"messaging_product": PRODUCT, "metadata": metadata, "contacts": [person], "statuses": [report]}
    return entry(business_account, at, "messages", value)


def inbound(business_account: str, metadata: dict[str, Any], at: datetime, message: dict[str, Any], name: str) -> Entry:
    phone = {"wa_id": message["from"]} if "from" in message else {}
    person = {"profile": {"name": name}, **phone, "user_id": message["from_user_id"]}
    value = {"messaging_product": PRODUCT, "metadata": metadata, "contacts": [person], "messages": [message]}
    return entry(business_account, at, "messages", value)


def preference(
    business_account: str, metadata: dict[str, Any], at: datetime, sender: dict[str, str], choice: str
) -> Entry:
    """`sender`: as `named`."""
    person = {"wa_id": sender["from"]} if "from" in sender else {}
    person["user_id"] = sender["from_user_id"]
    item = {
        **person,
        "detail": f"User requested to {choice} marketing messages",
        "category": "marketing_messages",
        "value": choice,
        "timestamp": int(at.timestamp()),
    }
    contacts = [{"profile": {"name": "?"}, **person}]
    value = {"messaging_product": PRODUCT, "metadata": metadata, "contacts": contacts, "user_preferences": [item]}
    return entry(business_account, at, "user_preferences", value)


def template(business_account: str, at: datetime, field: str, held: dict[str, Any], **more: Any) -> Entry:
    """`held`: the template as it is listed."""
    value = {
        "message_template_id": int(held["id"]),
        "message_template_name": held["name"],
        "message_template_language": held["language"],
        "message_template_category": held["category"],
        **more,
    }
    return entry(business_account, at, field, value)


def template_status(business_account: str, at: datetime, held: dict[str, Any], event: str, reason: str) -> Entry:
    return template(business_account, at, "message_template_status_update", held, event=event, reason=reason)


def flow_status(business_account: str, at: datetime, held: dict[str, Any], old_status: str) -> Entry:
    """`held`: the flow in its new state."""
    value = {
        "event": "FLOW_STATUS_CHANGE",
        "message": f"The flow {held['name']} is {held['status']}",
        "flow_id": held["id"],
        "old_status": old_status,
        "new_status": held["status"],
    }
    return entry(business_account, at, "flows", value)


def error(code: int, details: str = "as the simulation has it") -> dict[str, Any]:
    """The object that explains a failure, in receipts and in answers."""
    return {
        "code": code,
        "title": "Simulated",
        "message": f"(#{code}) Simulated",
        "error_data": {"messaging_product": PRODUCT, "details": details},
    }
