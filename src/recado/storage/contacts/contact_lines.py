"""New contacts as lines of COPY (C12.7): of whole records, or at once of what a file gives for plain ones."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import email_key, tag_key
from recado.domain.contacts.contact_search import search_mark, search_words
from recado.domain.core.ids import created_at
from recado.domain.core.phones import phone_hash
from recado.storage.contacts.contacts import Contact, array_text, derived
from recado.storage.core.postgres import Connection

_COLUMNS: Final = (
    "organization_id", "env", "id", "phone", "phone_hash", "name", "chatapp_profile_name", "email", "email_key",
    "avatar_url", "cpf_cipher", "cnpj_cipher", "birth_date_cipher", "cpf_index", "cnpj_index", "attributes", "tags",
    "tag_keys", "source", "external_id", "external_ids", "company_id", "company_role", "opt_in_status",
    "opt_in_source", "opt_in_at", "opt_in_ip", "opt_in_user_agent", "opt_in_revoked_at", "opt_in_revoked_reason",
    "search", "updated_at",
)  # fmt: skip
_PLAIN_COLUMNS: Final = (
    "organization_id", "env", "id", "phone", "phone_hash", "name", "email", "email_key", "attributes", "tags",
    "tag_keys", "source", "external_id", "opt_in_status", "search", "updated_at",
)  # fmt: skip
_NULL: Final = "\\N"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


async def copy_new(connection: Connection, lines: Sequence[str]) -> None:
    """Store new contacts, each given as its `line`.

    Raises `asyncpg.UniqueViolationError`, which undoes the transaction, when somebody has the phone or the external id
    of one of them.
    """
    await _copy(connection, lines, _COLUMNS)


class PlainLines:
    """New contacts of one environment, of unknown consent, whose rows give only values named in `PLAIN`.

    Stores what `copy_new` stores for them, without a record for each.
    """

    PLAIN: Final = frozenset({"phone", "name", "email", "external_id", "added_tags", "attributes"})

    def __init__(self, organization_id: str, env: str, source: str) -> None:
        self._organization_id = organization_id
        self._place = f"{organization_id}\t{env}\t"
        self._source = f"\t{source}\t"
        self._consent = f"\t{ConsentStatus.UNKNOWN.value}\t'"
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
            tag_cells = self._tags[tags] = f"{_array(tags)}\t{_array([tag_key(tag) for tag in tags])}"
        words = "' '".join(search_words(self._mark, phone, (get("name"), email)))  # no word holds a quote
        address = None if email is None else email_key(email)
        moment = created_at(contact_id)
        if moment != self._moment:
            self._moment, self._written = moment, moment.isoformat()
        self._lines.append(
            f"{self._place}{contact_id}\t{phone}\t\\\\x{hashed}\t{_cell(get('name'))}\t{_cell(email)}\t{_cell(address)}\t"
            f"{_json(get('attributes'))}\t{tag_cells}{self._source}{_cell(get('external_id'))}"
            f"{self._consent}{words}'\t{self._written}"
        )

    async def copy(self, connection: Connection) -> None:
        """Store them; raises as `copy_new` does."""
        await _copy(connection, self._lines, _PLAIN_COLUMNS)


async def _copy(connection: Connection, lines: Sequence[str], columns: Sequence[str]) -> None:
    # A view is sent at once; a file would be read by another thread, and bytes are taken for the name of one.
    content: Any = memoryview(("\n".join(lines) + "\n").encode())
    await connection.copy_to_table("contacts", source=content, columns=columns, format="text")


def line(contact: Contact) -> str:
    """A new contact as a row of COPY: texts are escaped where they may hold what separates cells and rows."""
    address, tag_keys, words = derived(contact)
    at, revoked_at = contact.opt_in_at, contact.opt_in_revoked_at
    return "\t".join(
        (
            contact.organization_id,
            contact.env,
            contact.id,
            contact.phone,
            f"\\\\x{contact.phone_hash.hex()}",
            _cell(contact.name),
            _cell(contact.chatapp_profile_name),
            _cell(contact.email),
            _cell(address),
            _cell(contact.avatar_url),
            contact.cpf_cipher or _NULL,
            contact.cnpj_cipher or _NULL,
            contact.birth_date_cipher or _NULL,
            _NULL if contact.cpf_index is None else f"\\\\x{contact.cpf_index.hex()}",
            _NULL if contact.cnpj_index is None else f"\\\\x{contact.cnpj_index.hex()}",
            _json(contact.attributes),
            _array(contact.tags),
            _array(tag_keys),
            contact.source,
            _cell(contact.external_id),
            _json(contact.external_ids),
            contact.company_id or _NULL,
            contact.company_role or _NULL,
            contact.opt_in_status.value,
            _cell(contact.opt_in_source),
            _NULL if at is None else at.isoformat(),
            _cell(contact.opt_in_ip),
            _cell(contact.opt_in_user_agent),
            _NULL if revoked_at is None else revoked_at.isoformat(),
            _cell(contact.opt_in_revoked_reason),
            "'" + "' '".join(words) + "'",  # no word holds a quote
            contact.updated_at.isoformat(),
        )
    )


def _cell(text: str | None) -> str:
    if text is None:
        return _NULL
    return text if text.isprintable() and "\\" not in text else text.translate(_ESCAPES)


def _json(value: Mapping[str, Any] | None) -> str:
    return _cell(orjson.dumps(value).decode()) if value else "{}"


def _array(texts: Sequence[str]) -> str:
    return _cell(array_text(texts)) if texts else "{}"
