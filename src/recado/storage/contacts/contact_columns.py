"""How contacts travel to their table: many as the parameters of one statement, or each as a line of COPY (C12.7).

The columns are the attributes of `Contact`, and what is stored beside them to find it; how each travels follows from
its type.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, get_type_hints

import orjson

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import TEXTS, Contact, email_key, tag_key
from recado.domain.contacts.contact_search import search_mark, search_words
from recado.domain.core.ids import created_at
from recado.domain.core.phones import phone_hash
from recado.storage.core.connections.postgres import Connection
from recado.storage.core.statements.rows import array, pack, pack_moments, pack_some

_NULL: Final = "\\N"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


@dataclass(frozen=True, slots=True)
class Form:
    """How values of a column travel: `packed`, those of many contacts in one parameter; `cell`, one in a line of COPY.

    `cell` None: as it is. In SQL, with `{}` for the name: `array`, the parameter as an array; `value`, one of it.
    """

    packed: Callable[[list[Any]], Any]
    array: str
    value: str
    cell: Callable[[Any], str] | None = None


def _cell(text: str) -> str:
    return text if text.isprintable() and "\\" not in text else text.translate(_ESCAPES)


def _json(value: Mapping[str, Any]) -> str:
    return orjson.dumps(value).decode() if value else "{}"


def _json_cell(value: Mapping[str, Any]) -> str:
    return _cell(_json(value)) if value else "{}"


def _list(texts: Sequence[str]) -> str:
    """An array of texts as the server writes one: arrays of arrays would have to be of one length."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


def _list_cell(texts: Sequence[str]) -> str:
    return _cell(_list(texts)) if texts else "{}"


_TEXT: Final = Form(array, ":{}::text[]", "{}", _cell)
_WORD: Final = Form(pack_some, "unpack(:{})", "{}")  # holds nothing special
_ADDRESS: Final = Form(pack_some, "unpack(:{})", "{}", _cell)  # holds no control character
_BYTES: Final = Form(
    lambda values: pack_some([None if value is None else value.hex() for value in values]),
    "unpack(:{})",
    "decode({}, 'hex')",
    lambda value: f"\\\\x{value.hex()}",
)
_MOMENT: Final = Form(pack_moments, "unpack(:{})::bigint[]", "moment({})", datetime.isoformat)
_JSON: Final = Form(lambda values: pack(list(map(_json, values))), "unpack(:{})", "{}::jsonb", _json_cell)
_LIST: Final = Form(lambda values: list(map(_list, values)), ":{}::text[]", "{}::text[]", _list_cell)
_SEARCH: Final = Form(
    lambda values: pack(list(map(" ".join, values))),
    "unpack(:{})",
    "array_to_tsvector(string_to_array({}, ' '))",
    lambda words: "'" + "' '".join(words) + "'",  # no word holds a quote
)

_FORMS: Final[dict[Any, Form]] = {
    str: _TEXT,
    str | None: _TEXT,
    ConsentStatus: _WORD,
    bytes: _BYTES,
    bytes | None: _BYTES,
    datetime: _MOMENT,
    datetime | None: _MOMENT,
    tuple[str, ...]: _LIST,
    Mapping[str, Any]: _JSON,
    Mapping[str, str]: _JSON,
}
_WORDS: Final = frozenset({
    "organization_id", "env", "id", "phone", "cpf_cipher", "cnpj_cipher", "birth_date_cipher", "source", "company_id",
    "company_role", "chatapp_user_id",
})  # fmt: skip
_ADDRESSES: Final = frozenset({"email", "avatar_url"})
_DERIVED: Final = {"email_key": _ADDRESS, "tag_keys": _LIST, "search": _SEARCH}
_LATER: Final = ("last_interaction_at", "revision")  # the table has its own for a new contact
_LASTING: Final = ("organization_id", "env", "id", "phone", "phone_hash", "source", "updated_at")

_RECORDED: Final = {
    name: _WORD if name in _WORDS else _ADDRESS if name in _ADDRESSES else _FORMS[type_]
    for name, type_ in get_type_hints(Contact).items()
    if name not in _LATER
}
COLUMNS: Final[Mapping[str, Form]] = _RECORDED | _DERIVED
"""Those that are said of a new contact."""

SAVED: Final[Mapping[str, Form]] = {name: form for name, form in COLUMNS.items() if name not in _LASTING}
"""Those that a change writes: neither phone nor source."""


def in_sql(columns: Mapping[str, Form], text: str = "{name}") -> str:
    """The text once for each column: of its `name`, the parameter as an `array`, and an element of it as a `value`."""
    return ", ".join(
        text.format(name=name, array=form.array.format(name), value=form.value.format(f"g.{name}"))
        for name, form in columns.items()
    )


def derived(contact: Contact) -> tuple[str | None, list[str], list[str]]:
    """What is stored beside a contact to find it: its address in lower case, tags without case, search words."""
    mark = search_mark(contact.organization_id, contact.env)
    return (
        None if contact.email is None else email_key(contact.email),
        [tag_key(tag) for tag in contact.tags],
        search_words(mark, contact.phone, (contact.name, contact.chatapp_profile_name, contact.email)),
    )


_PACKERS: Final = [(name, attrgetter(name), form.packed) for name, form in _RECORDED.items()]


def packed(batch: Sequence[Contact], columns: Mapping[str, Form]) -> dict[str, Any]:
    """The values of a statement that has these columns as `array`s."""
    found = {name: pack_all(list(map(of, batch))) for name, of, pack_all in _PACKERS if name in columns}
    for name, values in zip(_DERIVED, zip(*map(derived, batch), strict=True), strict=True):
        found[name] = _DERIVED[name].packed(list(values))
    return found


# Lines of COPY ------------------------------------------------------------------------------------------------------

_RECORD: Final = attrgetter(*_RECORDED)
_CELLS: Final = [form.cell for form in COLUMNS.values()]
_TEXTS: Final = [each.name for each in TEXTS]


def line(contact: Contact) -> str:
    """A new contact as a row of COPY: texts are escaped where they may hold what separates cells and rows."""
    values = (*_RECORD(contact), *derived(contact))
    return "\t".join(
        [
            _NULL if value is None else value if cell is None else cell(value)
            for cell, value in zip(_CELLS, values, strict=True)
        ]
    )


async def copy_new(connection: Connection, lines: Sequence[str]) -> None:
    """Store new contacts, each given as its `line`.

    Raises `asyncpg.UniqueViolationError`, which undoes the transaction, when somebody has the phone or the external id
    of one of them.
    """
    await _copy(connection, lines, [*COLUMNS])


class PlainLines:
    """New contacts of one environment, of unknown consent, whose rows give only values named in `PLAIN`.

    Stores what `copy_new` stores for them, without a record for each.
    """

    PLAIN: Final = frozenset({"phone", "email", "added_tags", "attributes", *_TEXTS})
    COLUMNS: Final = (
        "organization_id", "env", "id", "phone", "phone_hash", "email", "email_key", "attributes", "tags", "tag_keys",
        "source", "opt_in_status", "search", "updated_at", *_TEXTS,
    )  # fmt: skip

    def __init__(self, organization_id: str, env: str, source: str) -> None:
        self._organization_id = organization_id
        self._place = f"{organization_id}\t{env}\t"
        self._source = f"\t{source}\t{ConsentStatus.UNKNOWN.value}\t'"
        self._mark = search_mark(organization_id, env)
        self._tags: dict[tuple[str, ...], str] = {}
        self._moment: datetime | None = None  # of the last one: many have the same
        self._written = ""
        self._lines: list[str] = []

    def add(self, contact_id: str, given: Mapping[str, Any]) -> None:
        """A contact to store. `given`: values of `contact_input.py`, its tags under `added_tags`."""
        get = given.get
        phone, email, tags = given["phone"], get("email"), get("added_tags", ())
        hashed = phone_hash(self._organization_id, phone).hex()
        tag_cells = self._tags.get(tags)
        if tag_cells is None:
            tag_cells = self._tags[tags] = f"{_list_cell(tags)}\t{_list_cell([tag_key(tag) for tag in tags])}"
        words = "' '".join(search_words(self._mark, phone, (get("name"), email)))  # no word holds a quote
        addresses = f"{_NULL}\t{_NULL}" if email is None else f"{_cell(email)}\t{_cell(email_key(email))}"
        moment = created_at(contact_id)
        if moment != self._moment:
            self._moment, self._written = moment, moment.isoformat()
        texts = "\t".join([_NULL if (text := get(name)) is None else _cell(text) for name in _TEXTS])
        self._lines.append(
            f"{self._place}{contact_id}\t{phone}\t\\\\x{hashed}\t{addresses}\t{_json_cell(get('attributes', {}))}\t"
            f"{tag_cells}{self._source}{words}'\t{self._written}\t{texts}"
        )

    async def copy(self, connection: Connection) -> None:
        """Store them; raises as `copy_new` does."""
        await _copy(connection, self._lines, self.COLUMNS)


async def _copy(connection: Connection, lines: Sequence[str], columns: Sequence[str]) -> None:
    # A view is sent at once; a file would be read by another thread, and bytes are taken for the name of one.
    content: Any = memoryview(("\n".join(lines) + "\n").encode())
    await connection.copy_to_table("contacts", source=content, columns=columns, format="text")
