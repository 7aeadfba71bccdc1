"""The short way of an import: new contacts of whom a row gives nothing but plain fields (C12.7).

What is written is what contact_block.py writes of them, which takes all rows that are not sure to be such.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from recado.domain.contacts.contact import MOST_TAGS, ContactSource
from recado.domain.contacts.contact_import import ImportMode, ImportOptions, MatchBy
from recado.domain.core.ids import CONTACT, IdSource
from recado.engine.turns import in_pieces
from recado.services.imports.contact_rows import Row
from recado.storage.contacts import opt_outs
from recado.storage.contacts.contact_columns import PlainLines
from recado.storage.core.postgres import Connection

PIECE = 50  # contacts that are made in one turn


def may_be_plain(options: ImportOptions) -> bool:
    """Whether an import may have such rows: matched by phone, free to create, and no event to be told of them."""
    return options.match_by is MatchBy.PHONE and options.mode is not ImportMode.UPDATE and not options.emit_events


def parted(rows: Sequence[Row], known: Collection[str]) -> tuple[list[Row], list[Row]]:
    """The rows of new contacts that meet no other row, and give only plain fields; and the others. `known`: phones."""
    phones = Counter([row.values["phone"] for row in rows])
    external_ids = Counter([row.values.get("external_id") for row in rows])
    external_ids[None] = 1  # anyone who has none meets nobody
    plain: list[Row] = []
    others: list[Row] = []
    for row in rows:
        values = row.values
        phone = values["phone"]
        if (
            phone not in known
            and phones[phone] == 1
            and external_ids[values.get("external_id")] == 1
            and values.keys() <= PlainLines.PLAIN
            and len(values.get("added_tags", ())) <= MOST_TAGS
        ):
            plain.append(row)
        else:
            others.append(row)
    return plain, others


async def write_plain(
    connection: Connection, environment: tuple[str, str], rows: Sequence[Row], ids: IdSource
) -> tuple[list[str], list[Row]]:
    """Insert; answers the ids of the new contacts, and the rows of those whom the opt-out registry knows.

    Raises `asyncpg.UniqueViolationError` when somebody has the phone or the external id of one of them.
    """
    people = [(row.values["phone"], row.values.get("email")) for row in rows]
    places = set(await opt_outs.registered_places(connection, *environment, people))
    registered = [row for place, row in enumerate(rows) if place in places]
    new = [row for place, row in enumerate(rows) if place not in places] if places else rows
    lines = PlainLines(*environment, ContactSource.IMPORT.value)
    members: list[str] = []
    async for piece in in_pieces(new, PIECE):
        for row in piece:
            contact_id = ids.new(CONTACT)
            lines.add(contact_id, row.values)
            members.append(contact_id)
    if members:
        await lines.copy(connection)
    return members, registered
