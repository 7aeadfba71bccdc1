"""Reads the rows of an import into what they give for a contact; what is wrong with a row is its own (C12.7).

Absent and empty are the same: an import clears nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import orjson

from recado.domain.contacts.consent import CONSENT_FIELDS, ConsentChange, with_request
from recado.domain.contacts.contact import (
    FIELDS,
    MOST_ATTRIBUTES,
    MOST_TAG,
    MOST_TAGS,
    NESTED,
    TEXTS,
    Kind,
    tags_united,
)
from recado.domain.contacts.contact_attributes import MOST_TEXT
from recado.domain.contacts.contact_import import (
    ATTRIBUTE,
    CONSENT,
    INTEGRATION,
    TAG_SEPARATOR,
    TAGS,
    ImportFormat,
    ImportOptions,
    MatchBy,
    international,
)
from recado.domain.contacts.contact_input import read_email, read_new
from recado.domain.contacts.debts import phone as read_phone
from recado.domain.core.errors import FieldError
from recado.domain.core.reading import Refusal
from recado.services.imports.contact_files import COLUMNS, TOO_LONG, lines_of
from recado.storage.contacts.contact_imports import ContactImport

SESSION: Final = "account"

FIELD_COLUMNS: Final = frozenset(
    each.key for each in FIELDS if each.given and each.kind not in NESTED and each.kind is not Kind.SOURCE
)
"""The columns of a table that are named as a field of a contact."""

ATTRIBUTES: Final = "attributes"
_LISTS: Final = (ATTRIBUTES, "external_ids", "debtor_groups")
_MOST_LISTS: Final = 1_000  # of tags that are remembered
_COUNTRY: Final = "The option `defaultCountry` (--default-country) reads phones of one country without its code."
_NUL: Final = b"\\u0000"  # in JSON

Error = dict[str, Any]
Column = tuple[int, str, str]
"""Of a column that is known: its place, the object that its cells belong to (or none), and their name there."""


@dataclass(slots=True)
class ContactRow:
    """One row: the values that it gives (`contact_input.py`), its tags under `added_tags`; or its errors."""

    number: int
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    errors: list[Error] = field(default_factory=list)


def row_error(number: int, error: FieldError) -> Error:
    """An entry of `errors`: `/optIn/at` becomes the field `optIn.at`."""
    entry: Error = {"row": number, "code": error.code, "message": error.message}
    if name := error.path.strip("/").replace("/", "."):
        entry["field"] = name
    return entry


def _with_country(error: FieldError, document: Any) -> FieldError:
    """The error, and the option that would make a phone of the one that it refuses."""
    if error.code == "PHONE_INVALID" and isinstance(phone := document["phone"], str) and international(phone) != phone:
        return FieldError(error.path, error.code, f"{error.message} {_COUNTRY}")
    return error


class RowReader:
    """Reads the rows of one import. `today`: the latest day that anybody can be born on."""

    def __init__(self, found: ContactImport, today: date) -> None:
        self.options = ImportOptions.load(found.options)
        self._today = today
        self._import = found
        self._by_external_id = self.options.match_by is MatchBy.EXTERNAL_ID
        self._put = _columns(found.columns or ())
        self._plain = PlainCells(self._put, self.options)

    def rows(self, block: bytes, first_row: int) -> Iterator[ContactRow]:
        """The rows of a block, read one by one as they are asked for."""
        if self._import.format == ImportFormat.CSV:
            plain = self._plain.values if _NUL not in block else _closely
            for number, cells in enumerate(orjson.loads(block), start=first_row):
                values = plain(cells) if type(cells) is list else None
                yield self._of_cells(cells, number) if values is None else ContactRow(number, values)
        else:
            for number, line in enumerate(lines_of(block), start=first_row):
                yield self._of_line(line, number)

    def _of_line(self, line: bytes, number: int) -> ContactRow:
        if not line:
            return _refused(number, "TOO_LONG", "The line is longer than 1 MiB.")
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            return _refused(number, "MALFORMED_JSON", "The row is not valid JSON.")
        if isinstance(document, dict):
            document = {name: value for name, value in document.items() if not _is_empty(value)}
        return self._read(document, number)

    def _of_cells(self, cells: Any, number: int) -> ContactRow:
        if isinstance(cells, str):
            if cells == COLUMNS:
                return _refused(number, "COLUMNS", "The row has more or fewer cells than the header.")
            if cells == TOO_LONG:
                return _refused(number, "TOO_LONG", "The row is longer than 1 MiB.")
            return _refused(number, "UNREADABLE", "The row is not CSV: a quote does not end.")
        document: dict[str, Any] = {}
        for place, group, name in self._put:
            if cell := cells[place].strip():
                if name == TAGS and not group:
                    document[TAGS] = [tag for tag in cell.split(TAG_SEPARATOR) if tag.strip()]
                elif group:
                    document.setdefault(group, {})[name] = cell
                else:
                    document[name] = cell
        if "status" not in document.get("optIn", {"status": ""}):
            del document["optIn"]
        return self._read(document, number)

    def _read(self, document: Any, number: int) -> ContactRow:
        options = self.options
        if isinstance(document, dict):
            document.pop("source", None)  # every contact of an import has the same
            phone = document.get("phone")
            if options.default_country is not None and isinstance(phone, str):
                document["phone"] = international(phone)
        given = read_new(document, self._today)
        if given.errors:
            errors = [error for error in given.errors if not (self._by_external_id and _is_missing_phone(error))]
            if errors:
                if options.default_country is None:
                    errors = [_with_country(error, document) for error in errors]
                return ContactRow(number, errors=[row_error(number, error) for error in errors])
        values = dict(given.values)
        if self._by_external_id and "external_id" not in values:
            return _refused(number, "REQUIRED", "is required", "/externalId")
        tags = tags_united(values.pop("tags", ()), options.tags)
        if tags:
            values["added_tags"] = tags
        for name in _LISTS:
            if name in values and not values[name]:
                del values[name]
        if "external_ids" in values:
            values["external_ids"] = {name: value for name, value in values["external_ids"].items() if value}
        if "opt_in" in values:
            values["opt_in"] = self._consent(values["opt_in"])
        return ContactRow(number, values)

    def _consent(self, change: ConsentChange) -> ConsentChange:
        """A session's dates count for nothing (C12.5.1)."""
        if self._import.actor_type != SESSION:
            return change
        return with_request(change, ip=self._import.actor_ip or "", user_agent=self._import.actor_agent)


class PlainCells:
    """Reads plain rows of a table: nothing but a phone, texts, tags and attributes, and nothing wrong with them.

    What it reads is what `contact_input.py` makes of them; any other row takes a closer look.
    """

    def __init__(self, columns: Sequence[Column], options: ImportOptions) -> None:
        alone = {name: place for place, group, name in columns if not group}
        self._phone = alone.pop("phone", None)
        self._email = alone.pop("email", None)
        self._tags = alone.pop("tags", None)
        self._texts = [(alone.pop(each.key), each.name, each.most) for each in TEXTS if each.key in alone]
        self._attributes = [(place, name) for place, group, name in columns if group == ATTRIBUTES]
        self._others = [*alone.values(), *(place for place, group, _ in columns if group and group != ATTRIBUTES)]
        self._national = options.default_country is not None
        self._given_tags = tags_united(options.tags)
        self._known_tags: dict[str, tuple[str, ...] | None] = {}
        self._key = "external_id" if options.match_by is MatchBy.EXTERNAL_ID else "phone"

    def values(self, cells: Sequence[str]) -> dict[str, Any] | None:
        """What a row gives, its tags under `added_tags`; None when it takes a closer look. No cell holds U+0000."""
        for place in self._others:
            if cells[place].strip():
                return None
        values: dict[str, Any] = {}
        try:
            if self._phone is not None and (cell := cells[self._phone].strip()):
                values["phone"] = read_phone(international(cell) if self._national else cell)
            if self._email is not None and (cell := cells[self._email].strip()):
                values["email"] = read_email(cell)
        except Refusal:
            return None
        for place, name, most in self._texts:
            if cell := cells[place].strip():
                if len(cell) > most:
                    return None
                values[name] = cell
        if self._key not in values:
            return None
        tags = self._given_tags if self._tags is None else self._tags_of(cells[self._tags])
        if tags is None:
            return None
        if tags:
            values["added_tags"] = tags
        if self._attributes:
            attributes = {}
            for place, name in self._attributes:
                if cell := cells[place].strip():
                    if len(cell) > MOST_TEXT:
                        return None
                    attributes[name] = cell
            if len(attributes) > MOST_ATTRIBUTES:
                return None
            if attributes:
                values[ATTRIBUTES] = attributes
        return values

    def _tags_of(self, cell: str) -> tuple[str, ...] | None:
        """The tags of a cell and those of all rows; None when some do not fit. Many rows have the same ones."""
        if cell not in self._known_tags:
            if len(self._known_tags) == _MOST_LISTS:
                self._known_tags.clear()
            given = [tag for part in cell.split(TAG_SEPARATOR) if (tag := part.strip())]
            fits = len(given) <= MOST_TAGS and all(len(tag) <= MOST_TAG for tag in given)
            self._known_tags[cell] = tags_united(given, self._given_tags) if fits else None
        return self._known_tags[cell]


def _closely(_: Sequence[str]) -> dict[str, Any] | None:
    """Takes no row for a plain one."""
    return None


def unread_columns(columns: Sequence[str]) -> list[str]:
    """The names of columns that give nothing for a contact."""
    read = {place for place, _, _ in _columns(columns)}
    return [name for place, name in enumerate(columns) if name and place not in read]


def _columns(columns: Sequence[str]) -> list[Column]:
    found = []
    for place, name in enumerate(columns):
        for prefix in (ATTRIBUTE, CONSENT, INTEGRATION):
            if name.startswith(prefix):
                member = name.removeprefix(prefix)
                if prefix != CONSENT or member in CONSENT_FIELDS:
                    found.append((place, prefix[:-1], member))
                break
        else:
            if name in FIELD_COLUMNS:
                found.append((place, "", name))
    return found


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _is_missing_phone(error: FieldError) -> bool:
    return error.path == "/phone" and error.code == "REQUIRED"


def _refused(number: int, code: str, message: str, path: str = "") -> ContactRow:
    return ContactRow(number, errors=[row_error(number, FieldError(path, code, message))])


def folded(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """What two rows of one contact give together: the later one wins, attributes and tags of both count."""
    values = {**earlier, **later}
    for name in ("attributes", "external_ids"):
        if name in earlier and name in later:
            values[name] = {**earlier[name], **later[name]}
    if "added_tags" in earlier and "added_tags" in later:
        values["added_tags"] = tags_united(earlier["added_tags"], later["added_tags"])
    return values
