"""Lists and segments as audiences of batches (C15.5): counted when one is accepted, read into blocks while it is made.

Where the reading stands is a row, moved in the commit that keeps the blocks: a crash reads nobody twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recado.domain.audience.segment import Node, document
from recado.domain.audience.segment_reading import read_tree
from recado.domain.batches.batch import BATCH_MACHINE, BLOCK, BatchEvent, BatchStatus
from recado.domain.channels.address import AddressKind, canonical
from recado.domain.channels.policies import address_kind
from recado.domain.core.phones import other_spellings, recipient_hash
from recado.storage.batches import batches
from recado.storage.batches.batch_rows import Recipients
from recado.storage.contacts import opt_outs
from recado.storage.contacts.email_consent import by_address
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.statements.rows import Executor, columns, reader
from recado.storage.core.statements.sql import fragments

SQL = fragments("audiences", **by_address(organization="$1", env="$2", email="g.email_key"))
OF_LIST, NEXT_OF_LIST = (sql.replace("{member}", SQL.member) for sql in (SQL.of_list, SQL.next_of_list))
ROLLED = SQL.rolled.replace("{left_out}", batches.SQL.left_out)

BatchKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who gets a batch: the members of a list, or whom a tree matches, of the contacts with ids below `before_id`.

    `template_vars`, `metadata`, `details`: of every message, as JSON texts.
    """

    before_id: str
    list_id: str | None = None
    tree: Node | None = None
    template_vars: str | None = None
    metadata: str | None = None
    units: int = 1
    details: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """An audience as far as it is read: what comes after the contact `after_id` is left."""

    list_id: str | None
    filter_tree: Mapping[str, Any] | None
    template_vars: str | None
    metadata: str | None
    units: int
    details: str | None
    after_id: str
    before_id: str
    blocks: int
    contacts: int
    channel: str

    @property
    def audience(self) -> Audience:
        return Audience(
            before_id=self.before_id,
            list_id=self.list_id,
            tree=None if self.filter_tree is None else read_tree(self.filter_tree),
            template_vars=self.template_vars,
            metadata=self.metadata,
        )


class Counted(NamedTuple):
    """How many contacts an audience has, and how many of them can be reached where, as prices see it."""

    contacts: int
    regions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reached:
    """Contacts of an audience: (id, address) of each, in the order of ids. `ended`: there are no more.

    `left_out`: how many more were read that get no message, by reason. `last_id`: of all of them.
    """

    people: Sequence[tuple[str, str]]
    ended: bool
    last_id: str
    left_out: Mapping[str, int]

    @property
    def count(self) -> int:
        """How many were read."""
        return len(self.people) + sum(self.left_out.values())


_read = reader(Unread)


async def begin(connection: Executor, organization_id: str, batch_id: str, audience: Audience) -> None:
    """Note, in the transaction that stores the batch, whom it is sent to."""
    tree = None if audience.tree is None else document(audience.tree)
    await connection.execute(
        SQL.begin,
        organization_id,
        batch_id,
        audience.list_id,
        tree,
        audience.template_vars,
        audience.metadata,
        audience.before_id,
        audience.units,
        audience.details,
    )


async def of_batch(executor: Executor, key: BatchKey) -> Unread | None:
    """What is left to be read for a batch that is `building`."""
    row = await executor.fetchrow(SQL.of_batch, *key)
    return None if row is None else _read(row)


async def keep(connection: Executor, key: BatchKey, unread: Unread, reached: Reached, now: datetime) -> int | None:
    """Keep those who were read as blocks of the batch, in a transaction; answers the blocks left.

    None when the batch was moved meanwhile, or another read the same: the transaction must then be undone.
    """
    organization_id, _, batch_id = key
    people = reached.people
    blocks = [people[start : start + BLOCK] for start in range(0, len(people), BLOCK)]
    built = BATCH_MACHINE.move(BatchStatus.BUILDING, BatchEvent.BUILT)
    nothing = BATCH_MACHINE.move(BatchStatus.BUILDING, BatchEvent.NOTHING_BUILT)
    read = unread.contacts + reached.count
    # The batch before its audience, as a cancel does it: or each would wait for the other.
    left: int | None = await connection.fetchval(
        ROLLED, *key, now, len(blocks), reached.ended, dict(reached.left_out), built, nothing, read
    )
    place = (organization_id, batch_id, unread.after_id)
    if reached.ended:
        moved = await connection.fetchval(SQL.end, *place)
    else:
        moved = await connection.fetchval(SQL.advance, *place, reached.last_id, len(blocks), reached.count)
    if left is None or moved is None:
        return None
    texts = [_block(organization_id, block, unread).dump() for block in blocks]
    numbers = [unread.blocks + place for place in range(1, len(blocks) + 1)]
    await connection.execute(SQL.keep_blocks, organization_id, batch_id, numbers, texts)
    return left


async def refusals(
    connection: Executor, organization_id: str, env: str, kind: AddressKind, asked: Sequence[tuple[str, int, str]]
) -> dict[int, str]:
    """Whom of (contact, consent that is asked for, address of this kind) must not be sent to by now: by place, the code
    that says why; in a transaction. Asked for are 0 nothing, 1 no refusal, 2 a grant where that is wanted.
    """
    await connection.execute(SQL.along_the_key)
    ids, asks, addresses = columns(list(asked), 3)
    keys = [canonical(kind, each) if kind is AddressKind.EMAIL else None for each in addresses]
    rows = await connection.fetch(SQL.refusals, organization_id, env, ids, asks, kind, keys)
    registrants = {
        row["place"] - 1: Registrant(organization_id, env, phone)
        for row in rows
        if row["reason"] is None and (phone := row["asked"]) is not None and other_spellings(phone)
    }
    entries = await opt_outs.entries(connection, list(registrants.values()))
    refused = {
        place: "CONTACT_OPTED_OUT" for place, entry in zip(registrants, entries, strict=True) if entry is not None
    }
    return refused | {row["place"] - 1: row["reason"] for row in rows if row["reason"] is not None}


def _block(organization_id: str, people: Sequence[tuple[str, str]], unread: Unread) -> Recipients:
    count, kind = len(people), address_kind(unread.channel)
    addresses = [address for _, address in people]
    return Recipients(
        addresses,
        [recipient_hash(organization_id, canonical(kind, address)) for address in addresses],
        [unread.template_vars] * count,
        [unread.metadata] * count,
        contact_ids=[contact_id for contact_id, _ in people],
        units=None if unread.units == 1 else [unread.units] * count,
        details=None if unread.details is None else [unread.details] * count,
    )
