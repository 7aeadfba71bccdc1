"""Contacts as rows, for tests of what is done with many of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from recado.domain.contacts.contact import tag_key
from recado.domain.core.ids import CONTACT, lowest_id
from recado.domain.core.phones import phone_hash
from recado.storage.core.statements.rows import Executor

BORN = datetime(2026, 1, 1, tzinfo=UTC)
_INSERT = """
insert into contacts
select * from jsonb_populate_recordset(null::contacts, $1::jsonb)
"""
_DEFAULTS: dict[str, Any] = {
    "attributes": {},
    "tags": [],
    "source": "api",
    "external_ids": {},
    "social_identities": [],
    "opt_in_status": "unknown",
    "unreachable": [],
    "push_devices": 0,
    "search": "",
    "revision": 1,
    "updated_at": BORN,
}


def contact_id(number: int) -> str:
    """An id in the order of the numbers."""
    return f"{lowest_id(CONTACT, BORN)[:-13]}{number:013}"


def phone(number: int) -> str:
    """A phone outside of Brazil."""
    return f"+4915{number:09}"


async def insert_people(
    executor: Executor, organization_id: str, env: str, people: Sequence[Mapping[str, Any]], first: int = 1
) -> list[str]:
    """Store contacts with these columns, the others as usual; answers their ids."""
    rows = []
    for number, given in enumerate(people, start=first):
        row = {
            **_DEFAULTS,
            "organization_id": organization_id,
            "env": env,
            "id": contact_id(number),
            "phone": phone(number),
            **given,
        }
        row["phone_hash"] = "\\x" + phone_hash(organization_id, row["phone"]).hex()
        row["tag_keys"] = [tag_key(tag) for tag in row["tags"]]
        row["email_key"] = row["email"].lower() if row.get("email") else None
        rows.append(orjson.loads(orjson.dumps(row)))
    await executor.execute(_INSERT, rows)
    return [row["id"] for row in rows]
