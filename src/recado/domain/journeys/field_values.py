"""What a journey reads of a contact and of its entry, by the names of fields; and which values are dates (C9.4.3)."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from recado.domain.audience.segment import Scalar
from recado.domain.contacts.contact import FIELDS, NESTED, Contact

Entry = Mapping[str, Scalar]
"""The data of an entry: an event's properties, or what was posted with it."""

FieldValue = Scalar | datetime | tuple[str, ...] | None
"""What a field holds; None: nothing. An empty text or list is nothing, too."""

OF_CONTACT: Final[Mapping[str, str]] = {
    each.key: each.column for each in FIELDS if each.label is not None and each.kind not in NESTED
}
"""The contact's own fields, and the attributes of `Contact` that hold them; besides, `optIn.status` and free ones."""

CONSENT: Final = "optIn.status"
ATTRIBUTES: Final = "attributes."
OF_ENTRY: Final = "entrada."

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?([Zz]|[+-]\d{2}:?\d{2})?", re.ASCII)


def contact_value(name: str, contact: Contact) -> FieldValue:
    """What the contact holds in this field; None for a name that is none of its fields."""
    if name.startswith(ATTRIBUTES):
        return _present(contact.attributes.get(name.removeprefix(ATTRIBUTES)))
    if name == CONSENT:
        return contact.opt_in_status.value
    return _present(getattr(contact, OF_CONTACT[name])) if name in OF_CONTACT else None


def entry_value(key: str, entry: Entry) -> FieldValue:
    """What the entry's data hold under this key."""
    return _present(entry.get(key))


def field_value(name: str, contact: Contact | None, entry: Entry) -> FieldValue:
    """What a condition's field holds: `entrada.` leads into the entry's data, every other name to the contact.

    Raises LookupError where that was not read.
    """
    if name.startswith(OF_ENTRY):
        return entry_value(name.removeprefix(OF_ENTRY), entry)
    if contact is None:
        raise LookupError("the field is one of the contact, which was not read")
    return contact_value(name, contact)


def _present(value: Any) -> FieldValue:
    """A stored value, as JSON or from a column."""
    if isinstance(value, list | tuple):
        return tuple(value) or None
    if isinstance(value, str):
        return value if value.strip() else None
    if value is None or isinstance(value, bool | int | float | datetime):
        return value
    return None


def iso_moment(value: FieldValue, zone: ZoneInfo) -> datetime | None:
    """The moment that a text names as an ISO date, alone or with a time; None for any other value.

    In the zone's time is what names no offset; a date alone is the begin of that day.
    """
    if isinstance(value, datetime):
        return value.astimezone(zone)
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text)
            return datetime(day.year, day.month, day.day, tzinfo=zone)
        if _MOMENT.fullmatch(text):
            found = datetime.fromisoformat(text.upper())
            return found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)
    except (ValueError, OverflowError):
        pass
    return None
