"""Reads the rows of an import into what they give for a contact; what is wrong with a row is its own (C12.7).

Absent and empty are the same: an import clears nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import orjson

from recado.domain.contacts.consent import ConsentChange, with_request
from recado.domain.contacts.contact import tags_united
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
from recado.domain.contacts.contact_input import read_new
from recado.domain.core.errors import FieldError
from recado.services.imports.contact_cells import Column, PlainCells
from recado.services.imports.contact_files import COLUMNS, TOO_LONG, lines_of
from recado.storage.contacts.contact_imports import ContactImport

SESSION: Final = "account"

_LISTS: Final = ("attributes", "external_ids", "debtor_groups")
_PLAIN: Final = frozenset(
    {"phone", "name", "email", "avatarUrl", "cpf", "cnpj", "birthDate", "externalId", "companyId", "papelNaEmpresa"}
)
FIELD_COLUMNS: Final = _PLAIN | {TAGS}
"""The columns of a table that are named as a field of a contact."""
_CONSENT: Final = frozenset({"status", "source", "at", "ip", "userAgent", "revokedAt", "revokedReason"})

_COUNTRY: Final = "The option `defaultCountry` (--default-country) reads phones of one country without its code."
_NUL: Final = b"\\u0000"  # in JSON

Error = dict[str, Any]


@dataclass(slots=True)
class Row:
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

    def rows(self, block: bytes, first_row: int) -> Iterator[Row]:
        """The rows of a block, read one by one as they are asked for."""
        if self._import.format == ImportFormat.CSV:
            plain = self._plain.values if _NUL not in block else _closely
            for number, cells in enumerate(orjson.loads(block), start=first_row):
                values = plain(cells) if type(cells) is list else None
                yield self._of_cells(cells, number) if values is None else Row(number, values)
        else:
            for number, line in enumerate(lines_of(block), start=first_row):
                yield self._of_line(line, number)

    def _of_line(self, line: bytes, number: int) -> Row:
        if not line:
            return _refused(number, "TOO_LONG", "The line is longer than 1 MiB.")
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            return _refused(number, "MALFORMED_JSON", "The row is not valid JSON.")
        if isinstance(document, dict):
            document = {name: value for name, value in document.items() if not _is_empty(value)}
        return self._read(document, number)

    def _of_cells(self, cells: Any, number: int) -> Row:
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

    def _read(self, document: Any, number: int) -> Row:
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
                return Row(number, errors=[row_error(number, error) for error in errors])
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
        return Row(number, values)

    def _consent(self, change: ConsentChange) -> ConsentChange:
        """A session's dates count for nothing (C12.5.1)."""
        if self._import.actor_type != SESSION:
            return change
        return with_request(change, ip=self._import.actor_ip or "", user_agent=self._import.actor_agent)


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
                if prefix != CONSENT or member in _CONSENT:
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


def _refused(number: int, code: str, message: str, path: str = "") -> Row:
    return Row(number, errors=[row_error(number, FieldError(path, code, message))])


def folded(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """What two rows of one contact give together: the later one wins, attributes and tags of both count."""
    values = {**earlier, **later}
    for name in ("attributes", "external_ids"):
        if name in earlier and name in later:
            values[name] = {**earlier[name], **later[name]}
    if "added_tags" in earlier and "added_tags" in later:
        values["added_tags"] = tags_united(earlier["added_tags"], later["added_tags"])
    return values
