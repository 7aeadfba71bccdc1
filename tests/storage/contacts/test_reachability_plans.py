"""Marks of contacts are set and cleared by few probes, however many contacts there are (C13.2)."""

from typing import Any

import orjson
from tests.people import contact_id, phone

from recado.storage.contacts.reachability import SQL
from recado.storage.core.connections.postgres import Database

FILL = """
insert into contacts (organization_id, env, id, phone, phone_hash, attributes, tags, tag_keys, source, opt_in_status,
        search, updated_at, unreachable)
    select 'org_7', 'live', $1 || lpad(i::text, 13, '0'), $2 || lpad(i::text, 9, '0'), sha256(i::text::bytea), '{}',
        '{}', '{}', 'api', 'unknown', '', now(), case when i % 1000 = 0 then '{chatapp}'::text[] else '{}' end
    from generate_series(1, 20000) i
"""


MESSAGES = (["org_7"], ["live"], ["msg_1"], "chatapp")


async def of_contacts(db: Database, sql: str, *given: Any) -> set[str]:
    """What the statement reads of `contacts`: indexes, or the whole table by its name."""
    (plan,) = orjson.loads(await db.hot.fetchval(f"explain (format json) {sql}", *given))
    waiting, found = [plan["Plan"]], set()
    while waiting:
        node: Any = waiting.pop()
        waiting += node.get("Plans", [])
        if node.get("Relation Name") == "contacts" and node["Node Type"] != "ModifyTable":
            found.add(node.get("Index Name", "contacts"))
    return found


async def test_contacts_are_found_by_their_phones_and_the_marked_among_the_marked(database: Database) -> None:
    await database.execute(FILL, contact_id(1)[:-13], phone(1)[:-9])
    await database.execute("analyze contacts")
    assert await of_contacts(database, SQL.mark, *MESSAGES, ["131026"]) == {"contacts_phone", "contacts_pkey"}
    assert await of_contacts(database, SQL.clear, *MESSAGES) == {"contacts_unreachable", "contacts_pkey"}
    assert await of_contacts(database, SQL.with_marks, ["org_7"], ["live"]) == {"contacts_unreachable"}
