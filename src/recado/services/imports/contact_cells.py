"""Reads plain rows of a table: nothing but a phone, texts, tags and attributes, and nothing wrong with them (C12.7).

What it reads is what `contact_input.py` makes of them; any other row takes the closer look of contact_rows.py.
"""

from collections.abc import Sequence
from typing import Any, Final

from recado.domain.contacts.contact import (
    MOST_ATTRIBUTES,
    MOST_EXTERNAL_ID,
    MOST_NAME,
    MOST_TAG,
    MOST_TAGS,
    tags_united,
)
from recado.domain.contacts.contact_attributes import MOST_TEXT
from recado.domain.contacts.contact_import import TAG_SEPARATOR, ImportOptions, MatchBy, international
from recado.domain.contacts.contact_input import read_email
from recado.domain.contacts.debts import phone as read_phone
from recado.domain.core.reading import Refusal

Column = tuple[int, str, str]
"""Of a column that is known: its place, the object that its cells belong to (or none), and their name there."""

ATTRIBUTES: Final = "attributes"
_TEXTS: Final = {"name": ("name", MOST_NAME), "externalId": ("external_id", MOST_EXTERNAL_ID)}
_MOST_LISTS: Final = 1_000  # of tags that are remembered


class PlainCells:
    """Reads the rows of one table. It has a column of phones."""

    def __init__(self, columns: Sequence[Column], options: ImportOptions) -> None:
        alone = {name: place for place, group, name in columns if not group}
        self._phone = alone.pop("phone", None)
        self._email = alone.pop("email", None)
        self._tags = alone.pop("tags", None)
        self._texts = [(alone.pop(name), *_TEXTS[name]) for name in _TEXTS if name in alone]
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
