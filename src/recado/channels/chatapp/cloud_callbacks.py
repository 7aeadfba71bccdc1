"""The hosted API's callbacks: signature, and `entry[].changes[]` to events (C29.5). Pure.

Reading is strict in what it reads and passes over the rest: changes of other fields, and kinds that it does not know.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from recado.channels.chatapp.cloud_answers import NAME_STATES, TIERS_READ
from recado.channels.chatapp.cloud_codes import reported_code
from recado.channels.chatapp.cloud_inbound import inbound, profile_names
from recado.channels.chatapp.cloud_templates import CATEGORIES_READ, service_language
from recado.channels.core.callback_json import callback_json
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import (
    LONGEST_REASON,
    LONGEST_TEMPLATE_NAME,
    Event,
    NumberState,
    NumberStatus,
    Preference,
    Removal,
    ReportStatus,
    Status,
    TemplateStatus,
    Verdict,
)
from recado.channels.core.fields import Fields
from recado.domain.messages.message import FailureCode

SIGNATURE: Final = "X-Hub-Signature-256"
OBJECT: Final = "whatsapp_business_account"
MAX_ITEMS = 50_000  # of any list; a body of 3 MiB (C29.5) holds fewer
_MAX_ID = 128
_MAX_MESSAGE_ID = 256

_REPORTS: Final[Mapping[str, ReportStatus]] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "played": "read",  # a voice message was heard
    "failed": "failed",
}
_VERDICTS: Final[Mapping[str, Verdict]] = {
    "APPROVED": "approved",
    "REINSTATED": "approved",
    "UNPAUSED": "approved",
    "REJECTED": "rejected",
    "PAUSED": "paused",
    "ARCHIVED": "paused",  # nobody used it for long; it comes back as it was, or is deleted after four weeks
    "UNARCHIVED": "approved",
    "DISABLED": "disabled",
    "DELETED": "disabled",
    "PENDING_DELETION": "disabled",
}
_FLAGS: Final[Mapping[str, NumberState]] = {"FLAGGED": "flagged", "UNFLAGGED": "connected"}
_REMOVALS: Final[Mapping[str, Removal]] = {
    "PARTNER_REMOVED": "PARTNER_REMOVED",
    "PARTNER_APP_UNINSTALLED": "PARTNER_APP_UNINSTALLED",
}
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
    document = callback_json(body)
    fields = Fields(document, "body")
    if "entry" not in document:
        raise MalformedCallback("body.entry")
    readings = _Readings()
    for index, item in enumerate(fields.items("entry", MAX_ITEMS)):
        with readings.guard():
            entry = Fields(item, f"entry[{index}]")
            for place, change in enumerate(entry.items("changes", MAX_ITEMS)):
                with readings.guard():
                    _read_change(entry, Fields(change, f"{entry.where}.changes[{place}]"), readings)
    if readings.problem is not None:
        raise MalformedCallback(readings.problem, readings.events)
    return readings.events


class _Readings:
    """What was read so far, and the first place that could not be."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.problem: str | None = None

    def add(self, event: Event | None) -> None:
        if event is not None:
            self.events.append(event)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """What is malformed inside loses itself, not its neighbours."""
        try:
            yield
        except MalformedCallback as error:
            self.problem = self.problem or error.where

    def each(self, value: Fields, name: str, read: Callable[[Fields], Event | None]) -> None:
        for index, item in enumerate(value.items(name, MAX_ITEMS)):
            with self.guard():
                self.add(read(Fields(item, f"{value.where}.{name}[{index}]")))


def _read_change(entry: Fields, change: Fields, readings: _Readings) -> None:
    field = change.text("field", _MAX_ID)
    if field == "messages":
        _messages(change.inner("value"), readings)
    elif field == "user_preferences":
        _preferences(change.inner("value"), readings)
    elif field in _READERS:
        readings.add(_READERS[field](entry, change.inner("value")))


def _messages(value: Fields, readings: _Readings) -> None:
    account = value.inner("metadata").text("phone_number_id", _MAX_ID)
    names = profile_names(value)
    before = len(readings.events)
    readings.each(value, "statuses", lambda item: _status(item, account))
    if any(isinstance(each, Status) and each.code == FailureCode.OPTED_OUT for each in readings.events[before:]):
        readings.each(value, "statuses", lambda item: _refusal(item, account))
    readings.each(value, "messages", lambda item: inbound(item, account, names))


def _status(item: Fields, account: str) -> Status | None:
    status = _REPORTS.get(item.text("status", 64))
    if status is None:  # "deleted", "warning" and what else may come move no message
        return None
    reference = item.get("biz_opaque_callback_data")
    named = isinstance(reference, str) and 0 < len(reference) <= 64 and "\0" not in reference
    return Status(
        status,
        item.moment("timestamp"),
        item.text("id", _MAX_MESSAGE_ID),
        reference if named else None,  # another application may send with this number, under words of its own
        _failure(item) if status == "failed" else None,
        account,
    )


def _refusal(item: Fields, account: str) -> Preference | None:
    """A message that failed because the person stopped marketing tells so, too (C28.4)."""
    if item.get("status") != "failed" or _failure(item) != FailureCode.OPTED_OUT:
        return None
    phone = item.optional_text("recipient_id", _MAX_ID)
    return None if phone is None else Preference(account, phone, True, item.moment("timestamp"))


def _failure(item: Fields) -> str:
    """Our code of a failure."""
    errors = item.items("errors", 100)
    given = errors[0].get("code") if errors and isinstance(errors[0], dict) else None
    return reported_code(given if isinstance(given, int) else None)


def _template_status(entry: Fields, value: Fields) -> TemplateStatus | None:
    verdict = _VERDICTS.get(value.text("event", 64))
    if verdict is None:
        return None
    reason = value.optional_text("reason", LONGEST_REASON)
    language = value.optional_text("message_template_language", 16)
    return TemplateStatus(
        verdict,
        entry.moment("time"),
        value.id("message_template_id", _MAX_ID),
        category=CATEGORIES_READ.get(value.optional_text("message_template_category", 64) or ""),
        reason=None if reason == "NONE" else reason,
        business_account=entry.id("id", _MAX_ID),
        name=value.optional_text("message_template_name", LONGEST_TEMPLATE_NAME),
        language=None if language is None else service_language(language),
    )


def _template_category(entry: Fields, value: Fields) -> TemplateStatus | None:
    """With `correct_category` it is a notice of a change to come, and nothing yet."""
    category = CATEGORIES_READ.get(value.text("new_category", 64))
    if category is None or value.get("correct_category") is not None:
        return None
    template_id, account = value.id("message_template_id", _MAX_ID), entry.id("id", _MAX_ID)
    return TemplateStatus(None, entry.moment("time"), template_id, category=category, business_account=account)


def _number_quality(entry: Fields, value: Fields) -> NumberStatus:
    event = value.text("event", 64)
    limit = value.get("max_daily_conversations_per_business")
    if limit is None and event != "THROUGHPUT_UPGRADE":  # there, the other field speaks of messages a second
        limit = value.get("current_limit")
    return NumberStatus(
        None,
        entry.moment("time"),
        _FLAGS.get(event),
        tier=TIERS_READ.get(limit) if isinstance(limit, str) else None,
        business_account=entry.id("id", _MAX_ID),
        phone=value.id("display_phone_number", 64),
    )


def _number_name(entry: Fields, value: Fields) -> NumberStatus:
    return NumberStatus(
        None,
        entry.moment("time"),
        name_status=NAME_STATES.get(value.text("decision", 64)),
        business_account=entry.id("id", _MAX_ID),
        phone=value.id("display_phone_number", 64),
    )


def _account(entry: Fields, value: Fields) -> NumberStatus | None:
    event = value.text("event", 128)
    ban = value.get("ban_info")
    banned = event == "DISABLED_UPDATE" and isinstance(ban, dict) and ban.get("waba_ban_state") == "DISABLE"
    lost = banned or event in _LOSSES
    removal = _REMOVALS.get(event)
    if removal is None and not lost:
        return None
    # Where access is taken away the entry may be ours, not the customer's: then the value names the account.
    info = value.get("waba_info")
    named = Fields(info, f"{value.where}.waba_info").id("waba_id", _MAX_ID) if isinstance(info, dict) else None
    phone = value.get("phone_number")
    return NumberStatus(
        None,
        entry.moment("time"),
        "disconnected" if lost else None,
        partner_removed=removal,
        business_account=named or entry.id("id", _MAX_ID),
        phone=None if phone is None else value.id("phone_number", 64),
    )


def _preferences(value: Fields, readings: _Readings) -> None:
    account = value.inner("metadata").text("phone_number_id", _MAX_ID)
    readings.each(value, "user_preferences", lambda item: _preference(item, account))


def _preference(item: Fields, account: str) -> Preference | None:
    choice = item.text("value", 64).lower()
    if item.text("category", 64).lower() != "marketing_messages" or choice not in ("stop", "resume"):
        return None
    phone = item.optional_text("wa_id", _MAX_ID)
    return Preference(account, phone or item.text("user_id", _MAX_ID), choice == "stop", item.moment("timestamp"))


# Template quality, account alerts and other fields change nothing that this service keeps.
_READERS: Mapping[str, Callable[[Fields, Fields], Event | None]] = {
    "message_template_status_update": _template_status,
    "template_category_update": _template_category,
    "phone_number_quality_update": _number_quality,
    "phone_number_name_update": _number_name,
    "account_update": _account,
}
