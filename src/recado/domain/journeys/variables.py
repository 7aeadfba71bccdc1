"""What stands in the placeholders of a journey's message, for one contact and entry (C9.5)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from recado.domain.contacts.contact import Contact
from recado.domain.journeys.field_values import Entry, FieldValue, contact_value, entry_value, iso_moment
from recado.domain.journeys.steps import (
    ChatappSend,
    ContactVariable,
    EmailSend,
    EntryVariable,
    FixedVariable,
    RcsSend,
    SendContent,
    SendStep,
    SmsSend,
    Variable,
)
from recado.domain.messages.placeholders import filled

LONGEST_VALUE: Final = 1_024  # characters

_LINE_BREAK: Final = re.compile("\r\n|[\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029]")


def variable_values(step: SendStep, contact: Contact, entry: Entry, zone: ZoneInfo) -> dict[str, str] | None:
    """The text of each variable of a send; None when one is empty and names no default. `zone`: of the journey."""
    one_line = isinstance(step.content, ChatappSend)
    found = {}
    for name, variable in step.variables.items():
        text = _as_text(_value(variable, contact, entry), zone)
        if not text.strip():
            text = _as_text(variable.default, zone)
            if not text.strip():
                return None
        if one_line:
            text = _LINE_BREAK.sub(" ", text)
        found[name] = text[:LONGEST_VALUE]
    return found


def _value(variable: Variable, contact: Contact, entry: Entry) -> FieldValue:
    match variable:
        case ContactVariable():
            return contact_value(variable.field, contact)
        case EntryVariable():
            return entry_value(variable.key, entry)
        case FixedVariable():
            return variable.value


def _as_text(value: FieldValue, zone: ZoneInfo) -> str:
    """As people read it: dates as days, numbers without an exponent or a fraction of nothing."""
    moment = iso_moment(value, zone)
    if moment is not None:
        return f"{moment.day:02}/{moment.month:02}/{moment.year:04}"
    match value:
        case None | datetime():
            return ""
        case tuple():
            return ", ".join(value)
        case bool():
            return "true" if value else "false"
        case float():
            return _number(value)
        case _:
            return str(value)


def _number(value: float) -> str:
    text = f"{Decimal(repr(value)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def filled_content(content: SendContent, values: Mapping[str, str]) -> SendContent:
    """The content with these values in its own texts; a template's are filled by its channel.

    Raises KeyError for a placeholder that has none.
    """
    match content:
        case SmsSend():
            return replace(content, text=filled(content.text, values))
        case RcsSend():
            return replace(
                content,
                text=filled(content.text, values),
                fallback=None if content.fallback is None else filled(content.fallback, values),
                card=None if content.card is None else _filled_texts(content.card, values),
            )
        case ChatappSend() | EmailSend():
            return content


def _filled_texts(document: Any, values: Mapping[str, str]) -> Any:
    """A JSON value in which each text is filled; the names of members stay."""
    match document:
        case str():
            return filled(document, values)
        case Mapping():
            return {key: _filled_texts(each, values) for key, each in document.items()}
        case list() | tuple():
            return [_filled_texts(each, values) for each in document]
        case _:
            return document
