"""What an import of contacts is asked to do, and which columns a table of contacts may have (C12.7)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from recado.domain.contacts.contact import INTEGRATIONS

MOST_ROWS: Final = 200_000  # C31
MOST_ROWS_AT_ONCE: Final = 2_000  # done in the call

ATTRIBUTE: Final = "attributes."
CONSENT: Final = "optIn."
INTEGRATION: Final = "externalIds."
TAGS: Final = "tags"
TAG_SEPARATOR: Final = "|"

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}").fullmatch
_SEPARATORS = str.maketrans("", "", " .-()")
_NATIONAL_LENGTHS = (10, 11)  # area code and number, without and with the ninth digit


class ImportFormat(StrEnum):
    """What a file is."""

    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"


class ImportMode(StrEnum):
    """What becomes of a row whose contact exists, or does not."""

    UPSERT = "upsert"
    CREATE = "create"  # only new ones: an existing contact is an error of its row
    UPDATE = "update"  # only existing ones


class MatchBy(StrEnum):
    """What tells whose row it is."""

    PHONE = "phone"
    EXTERNAL_ID = "externalId"


class Country(StrEnum):
    """Whose calling code a national phone receives."""

    BR = "BR"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The options of an import. `tags` are added to every contact, and all become members of the list."""

    mode: ImportMode = ImportMode.UPSERT
    match_by: MatchBy = MatchBy.PHONE
    list_id: str | None = None
    tags: tuple[str, ...] = ()
    default_country: Country | None = None
    emit_events: bool = False

    def stored(self) -> dict[str, Any]:
        """The options as JSON values."""
        return {
            "mode": self.mode.value,
            "matchBy": self.match_by.value,
            "listId": self.list_id,
            "tags": list(self.tags),
            "defaultCountry": None if self.default_country is None else self.default_country.value,
            "emitEvents": self.emit_events,
        }

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> "ImportOptions":
        """The options that were `stored`."""
        country = stored["defaultCountry"]
        return cls(
            mode=ImportMode(stored["mode"]),
            match_by=MatchBy(stored["matchBy"]),
            list_id=stored["listId"],
            tags=tuple(stored["tags"]),
            default_country=None if country is None else Country(country),
            emit_events=stored["emitEvents"],
        )


def international(text: str) -> str:
    """A Brazilian phone with its country code: 10 or 11 digits receive +55, anything else stays as it is."""
    digits = text.strip().translate(_SEPARATORS)
    if len(digits) in _NATIONAL_LENGTHS and digits.isascii() and digits.isdigit():
        return "+55" + digits
    return text


def column_fault(columns: Sequence[str], match_by: MatchBy) -> str | None:
    """What is wrong with the header of a table, in a sentence; None when contacts can be read from it.

    Columns that nothing is known of are no fault: they are ignored.
    """
    if match_by.value not in columns:
        return f"No column is named {match_by.value}."
    for place, name in enumerate(columns, start=1):
        if name.startswith(ATTRIBUTE) and _KEY(name.removeprefix(ATTRIBUTE)) is None:
            return f"Column {place} does not name an attribute."
        if name.startswith(INTEGRATION) and name.removeprefix(INTEGRATION) not in INTEGRATIONS:
            return f"Column {place} does not name an integration."
    return None
