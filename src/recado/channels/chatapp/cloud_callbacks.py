"""The hosted API's callbacks: signature, and `entry[].changes[]` to events (C29.5). Pure.

Reading is strict in what it reads and passes over the rest: changes of other fields, and kinds that it does not know.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, get_args

from pydantic import Field

from recado.channels.chatapp.cloud_answers import NAME_STATES, TIERS_READ
from recado.channels.chatapp.cloud_codes import reported_code
from recado.channels.chatapp.cloud_flows import STATES_READ
from recado.channels.chatapp.cloud_inbound import inbound, profile_names
from recado.channels.chatapp.cloud_templates import CATEGORIES_READ, Language, Reason
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import (
    Category,
    Event,
    FlowNews,
    NumberNews,
    NumberState,
    Preference,
    Removal,
    ReportStatus,
    Status,
    TemplateVerdict,
    Verdict,
)
from recado.channels.core.fields import Id64, Id128, Seconds, Text128, Text256, Text512, known, object_in, text_or_none
from recado.channels.core.reading import Readings, Shape, field, json_object, read_body, record, word
from recado.domain.messages.message import FailureCode

SIGNATURE: Final = "X-Hub-Signature-256"
OBJECT: Final = "whatsapp_business_account"

_REPORTS: Final[Mapping[str, ReportStatus]] = {
    **{status: status for status in get_args(ReportStatus)},
    "played": "read",  # a voice message was heard
}
_VERDICTS: Final[Mapping[str, Verdict]] = {
    **{verdict.upper(): verdict for verdict in get_args(Verdict)},
    "REINSTATED": "approved",
    "UNPAUSED": "approved",
    "ARCHIVED": "paused",  # nobody used it for long; it comes back as it was, or is deleted after four weeks
    "UNARCHIVED": "approved",
    "DELETED": "disabled",
    "PENDING_DELETION": "disabled",
}
_FLAGS: Final[Mapping[str, NumberState]] = {"FLAGGED": "flagged", "UNFLAGGED": "connected"}
_REMOVALS: Final[Mapping[str, Removal]] = {removal: removal for removal in get_args(Removal)}
_LOSSES: Final = frozenset({"ACCOUNT_DELETED", "ACCOUNT_OFFBOARDED"})


def is_signed(given: str | None, secret: bytes, body: bytes) -> bool:
    """Whether the header is `sha256=` and the hex HMAC-SHA256 of the body with the application's secret."""
    if given is None or len(given) > 256:
        return False
    return hmac.compare_digest(given.encode(errors="replace"), signature(secret, body).encode())


def challenge(query: Mapping[str, str], verify_token: str | None) -> str | None:
    """What the API wants to hear when somebody enters our address there; None for whoever does not know the token."""
    known = hmac.compare_digest(query["hub.verify_token"].encode(), (verify_token or "").encode())
    return query["hub.challenge"] if known and verify_token and query["hub.mode"] == "subscribe" else None


def signature(secret: bytes, body: bytes) -> str:
    """The header's value."""
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def events(body: bytes) -> list[Event]:
    """All events, in their order; raises `MalformedCallback` with those that could be read when one could not."""
    return read_body(body, "entry", _entry)


Value = Mapping[str, Any]

_ENTRY = record({"id": Id128, "time": Seconds})
_OF_NUMBER = record({"metadata": record({"phone_number_id": Text128}).of})
_REPORT = record({"id": Text256, "timestamp": Seconds})
_PREFERENCE = record({"timestamp": Seconds}, {"wa_id": Text128 | None})
_TEMPLATE = record(
    {"message_template_id": Id128},
    {
        "message_template_name": Text512 | None,
        "message_template_language": Language | None,
        "message_template_category": Annotated[Category, known(CATEGORIES_READ)] | None,
        "reason": Reason,
    },
)
_OWNER = record({"waba_id": Id128})
_ID, _USER_ID, _RECIPIENT = Shape[str](Id128), Shape[str](Text128), Shape[str | None](Text128 | None)
_NUMBER, _ANY_NUMBER = Shape[str](Id64), Shape[str | None](Id64 | None)
_ERRORS = Shape[list[Any]](Annotated[list[Any], Field(max_length=100)])


def _entry(entry: Any) -> list[Event]:
    readings = Readings[Event]()
    readings.each(json_object(entry), "changes", partial(_change, entry))
    return readings.all()


def _change(entry: Value, change: Any) -> list[Event]:
    name = word(change, "field", 128)
    of = _ENTRY.read(entry) if name in _NEWS else {}
    try:
        if name in _LISTS:
            return _LISTS[name](json_object(change.get("value")))
        news = _NEWS[name](of, json_object(change.get("value"))) if name in _NEWS else None
    except MalformedCallback as error:
        raise error.within("value") from None
    return [] if news is None else [news]


def _messages(value: Value) -> list[Event]:
    account = _OF_NUMBER.read(value)["metadata"]["phone_number_id"]
    readings = Readings[Event]()
    readings.each(value, "statuses", partial(_status, account))
    readings.each(value, "messages", partial(inbound, account, profile_names(value)))
    return readings.all()


def _status(account: str, item: Any) -> Sequence[Event]:
    status = _REPORTS.get(word(item, "status"))
    if status is None:  # "deleted", "warning" and what else may come move no message
        return ()
    read = _REPORT.read(item)
    # Another application may send with this number, under words of its own.
    reference = text_or_none(item.get("biz_opaque_callback_data"), 64)
    code = _failure(item) if status == "failed" else None
    report = Status(status, read["timestamp"], read["id"], reference, code, account)
    if code != FailureCode.OPTED_OUT:
        return (report,)
    try:  # a message that failed because the person stopped marketing tells so, too (C28.4)
        person = field(_RECIPIENT, item, "recipient_id") or field(_RECIPIENT, item, "recipient_user_id")
    except MalformedCallback as error:
        raise MalformedCallback(error.where, (report,)) from None
    return (report,) if person is None else (report, Preference(account, person, True, read["timestamp"]))


def _failure(item: Value) -> str:
    """Our code of a failure."""
    errors = field(_ERRORS, item, "errors") if "errors" in item else ()
    code = object_in(errors[0]).get("code") if errors else None
    return reported_code(code if isinstance(code, int) else None)


def _preferences(value: Value) -> list[Event]:
    account = _OF_NUMBER.read(value)["metadata"]["phone_number_id"]
    readings = Readings[Event]()
    readings.each(value, "user_preferences", partial(_preference, account))
    return readings.all()


def _preference(account: str, item: Any) -> Sequence[Event]:
    choice = word(item, "value").lower()
    if word(item, "category").lower() != "marketing_messages" or choice not in ("stop", "resume"):
        return ()
    read = _PREFERENCE.read(item)
    phone = read.get("wa_id") or field(_USER_ID, item, "user_id")
    return (Preference(account, phone, choice == "stop", read["timestamp"]),)


# News of templates, numbers and accounts; `of`: the id of the business account, and the time.


def _template_status(of: Value, value: Value) -> Event | None:
    verdict = _VERDICTS.get(word(value, "event"))
    if verdict is None:
        return None
    read = _TEMPLATE.read(value)
    return TemplateVerdict(
        verdict,
        of["time"],
        read["message_template_id"],
        category=read.get("message_template_category"),
        reason=read.get("reason"),
        business_account=of["id"],
        name=read.get("message_template_name"),
        language=read.get("message_template_language"),
    )


def _template_category(of: Value, value: Value) -> Event | None:
    """With `correct_category` it is a notice of a change to come, and nothing yet."""
    category = CATEGORIES_READ.get(word(value, "new_category"))
    if category is None or value.get("correct_category") is not None:
        return None
    template_id = field(_ID, value, "message_template_id")
    return TemplateVerdict(None, of["time"], template_id, category=category, business_account=of["id"])


def _flow(of: Value, value: Value) -> Event | None:
    """Its other events tell of endpoints, which no flow has here, and of versions that end."""
    state = STATES_READ.get(word(value, "new_status")) if word(value, "event") == "FLOW_STATUS_CHANGE" else None
    if state is None:
        return None
    return FlowNews(state, of["time"], field(_ID, value, "flow_id"), business_account=of["id"])


def _number_quality(of: Value, value: Value) -> Event:
    event = word(value, "event")
    limit = value.get("max_daily_conversations_per_business")
    if limit is None and event != "THROUGHPUT_UPGRADE":  # there, the other field speaks of messages a second
        limit = value.get("current_limit")
    tier = TIERS_READ.get(limit) if isinstance(limit, str) else None
    phone = field(_NUMBER, value, "display_phone_number")
    return NumberNews(None, of["time"], _FLAGS.get(event), tier=tier, business_account=of["id"], phone=phone)


def _number_name(of: Value, value: Value) -> Event:
    state, phone = NAME_STATES.get(word(value, "decision")), field(_NUMBER, value, "display_phone_number")
    return NumberNews(None, of["time"], name_status=state, business_account=of["id"], phone=phone)


def _account(of: Value, value: Value) -> Event | None:
    event = word(value, "event", 128)
    banned = event == "DISABLED_UPDATE" and object_in(value.get("ban_info")).get("waba_ban_state") == "DISABLE"
    status: NumberState | None = "disconnected" if banned or event in _LOSSES else None
    removal = _REMOVALS.get(event)
    if removal is None and status is None:
        return None
    # Where access is taken away the entry may be ours, not the customer's: then the value names the account.
    ours = not isinstance(value.get("waba_info"), dict)
    owner = of["id"] if ours else field(_OWNER, value, "waba_info")["waba_id"]
    phone = field(_ANY_NUMBER, value, "phone_number")
    return NumberNews(None, of["time"], status, partner_removed=removal, business_account=owner, phone=phone)


_LISTS: Mapping[str, Callable[[Value], list[Event]]] = {"messages": _messages, "user_preferences": _preferences}

# Template quality, account alerts and other fields change nothing that this service keeps.
_NEWS: Mapping[str, Callable[[Value, Value], Event | None]] = {
    "message_template_status_update": _template_status,
    "template_category_update": _template_category,
    "flows": _flow,
    "phone_number_quality_update": _number_quality,
    "phone_number_name_update": _number_name,
    "account_update": _account,
}
