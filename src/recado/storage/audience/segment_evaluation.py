"""What a filter finds among the contacts: a count, a sample, a page (C13.1, C13.3).

An evaluation may look at every contact there is. So only a few run at a time, one of an organization; each has ten
seconds, and is planned with its values known.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from recado.domain.audience.segment import Node
from recado.domain.batches.batch import DUPLICATE
from recado.domain.billing.prices import BR, INTL
from recado.domain.channels.address import AddressKind, canonical
from recado.domain.contacts.contact import Contact
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CONTACT
from recado.storage.audience.segment_query import SQL, query
from recado.storage.batches import audiences
from recado.storage.batches.audiences import Audience, Counted, Reached
from recado.storage.contacts import contacts
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import Page, page
from recado.storage.core.statements.wide_rows import bounded, rows_of

SAMPLE: Final = 20  # contacts that a preview names
NEWEST: Final = 20_000  # contacts among which a preview looks for them first
EVALUATION_LIMIT: Final = 10.0  # seconds, those spent waiting for the others included
AT_ONCE: Final = 2  # the rest of the server is for messages
MOST_WAITING: Final = 20  # of one organization
LOOKED_UP: Final = 100_000  # members of a list: to look up more of them one by one takes a quarter of a second
AFTER_ALL_IDS: Final = CONTACT + "~"  # greater than every id
ADDRESSES: Final = {AddressKind.PHONE: "phone", AddressKind.EMAIL: "email"}
"""Where a contact has its address, by kind: an audience has addresses of these."""
NO_ADDRESS: Final = "RECIPIENT_MISSING"
"""Why a contact is left out that has no such address."""
CONTACTS: Final = bounded(SQL.contacts, contacts.WIDE, "p.id desc")


@dataclass(frozen=True, slots=True)
class Matches:
    """What a filter finds: how many, and some of them, the newest first."""

    count: int
    sample: list[str]


class Evaluation:
    """Evaluates filters for the contacts of one environment. `now`: days back are counted from it.

    `Unavailable` for what takes too long, and when too much of an organization waits already.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._places = FairPlaces(AT_ONCE, most_waiting=MOST_WAITING)

    async def count(self, organization_id: str, env: str, tree: Node, now: datetime) -> int:
        """How many match."""
        async with self._connection(organization_id) as connection:
            await connection.execute(SQL.look_at_everybody)
            return await _count(connection, organization_id, env, tree, now)

    async def preview(self, organization_id: str, env: str, tree: Node, now: datetime) -> Matches:
        """How many match, and the newest twenty of them."""
        async with self._connection(organization_id) as connection:
            sql, arguments = query(SQL.newest, organization_id, env, tree, now, limit=SAMPLE, newest=NEWEST)
            sample = [row["id"] for row in await connection.fetch(sql, *arguments)]
            await connection.execute(SQL.look_at_everybody)
            if len(sample) == SAMPLE:
                return Matches(await _count(connection, organization_id, env, tree, now), sample)
            sql, arguments = query(SQL.everybody, organization_id, env, tree, now, limit=SAMPLE)
            rows: Any = await connection.fetch(sql, *arguments)
        return Matches(rows[0]["count"] if rows else 0, [row["id"] for row in rows])

    async def contacts(
        self, organization_id: str, env: str, tree: Node, now: datetime, *, before_id: str | None, limit: int
    ) -> Page[Contact]:
        """Those that match now, newest first, older than `before_id` when it is given. Nobody counts them.

        Up to `limit`, or what is read at once.
        """
        more: dict[str, Any] = {"before_id": before_id or AFTER_ALL_IDS, "limit": limit + 1}
        async with self._connection(organization_id) as connection:
            sql, arguments = query(CONTACTS, organization_id, env, tree, now, **more)
            rows: Any = await connection.fetch(sql, *arguments)
        found = [contacts.read(row) for row in rows[:limit]]
        return page(found, 0, more=rows_of(rows) > len(found))

    async def reach(
        self,
        organization_id: str,
        env: str,
        audience: Audience,
        now: datetime,
        *,
        members: int = 0,
        kind: AddressKind = AddressKind.PHONE,
    ) -> Counted:
        """How many contacts an audience has, and how many have an address of a kind. `members`: of its list."""
        of_list, how = audiences.OF_LIST, audiences.SQL.along_the_key
        if members > LOOKED_UP:
            of_list, how = audiences.SQL.of_large_list, audiences.SQL.all_at_once
        sql, arguments = over(audience, of_list, audiences.SQL.of_segment, organization_id, env, now)
        async with self._connection(organization_id) as connection:
            await connection.execute(how if audience.tree is None else SQL.look_at_everybody)
            rows: Any = await connection.fetch(sql, *arguments)
        contacts, brazilian = rows[0]["contacts"], rows[0]["brazilian"]
        if kind is AddressKind.EMAIL:
            return Counted(contacts, {INTL: rows[0]["with_email"]})
        return Counted(contacts, {BR: brazilian, INTL: contacts - brazilian})

    async def next_of(
        self,
        organization_id: str,
        env: str,
        audience: Audience,
        now: datetime,
        *,
        after_id: str,
        limit: int,
        kind: AddressKind = AddressKind.PHONE,
    ) -> Reached:
        """The next contacts of an audience, in the order of their ids, with their addresses of a kind.

        Left out are those without one, and those whose address an earlier one has. Waits for its turn as long as that
        takes.
        """
        sources = (audiences.NEXT_OF_LIST, audiences.SQL.next_of_segment)
        sql, arguments = over(audience, *sources, organization_id, env, now, after_id=after_id, limit=limit)
        async with self._connection(organization_id, patient=True) as connection:
            await connection.execute(audiences.SQL.along_the_key)
            rows: Any = await connection.fetch(sql, *arguments)
            people = [(row["id"], row[ADDRESSES[kind]]) for row in rows]
            known: set[str] = set()
            if kind is AddressKind.EMAIL and after_id:
                keys = {canonical(kind, address) for _, address in people if address is not None}
                sources = (audiences.SQL.earlier_of_list, audiences.SQL.earlier_of_segment)
                more: dict[str, Any] = {"after_id": after_id, "email_keys": list(keys)}
                sql, arguments = over(audience, *sources, organization_id, env, now, **more)
                known = {row["email_key"] for row in await connection.fetch(sql, *arguments)}
        once, left_out = _each_once(people, kind, known)
        return Reached(once, len(rows) < limit, people[-1][0] if people else after_id, left_out)

    async def rows(self, organization_id: str, sql: str, arguments: Sequence[Any]) -> list[Any]:
        """What another query over an audience (`over`) finds, along the key of contacts."""
        async with self._connection(organization_id) as connection:
            await connection.execute(audiences.SQL.along_the_key)
            return await connection.fetch(sql, *arguments)

    @asynccontextmanager
    async def _connection(self, organization_id: str, *, patient: bool = False) -> AsyncIterator[Connection]:
        """`patient`: nobody waits for the answer, and the wait for a place does not count."""
        limit = asyncio.timeout(None if patient else EVALUATION_LIMIT)
        try:
            async with limit, self._places.place(organization_id):
                if patient:
                    limit.reschedule(asyncio.get_running_loop().time() + EVALUATION_LIMIT)
                async with self._db.searches.transaction() as connection:
                    await connection.execute(SQL.plan_with_values)
                    yield connection
        except TimeoutError:
            raise Unavailable("The filter took too long to evaluate: narrow it.", retry_after=60) from None


def _each_once(
    people: Sequence[tuple[str, str | None]], kind: AddressKind, known: set[str]
) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The first contact of each address that is not known, and how many others there are, by reason."""
    once: list[tuple[str, str]] = []
    left_out: Counter[str] = Counter()
    for contact_id, address in people:
        if address is None:
            left_out[NO_ADDRESS] += 1
        elif (key := canonical(kind, address)) in known:
            left_out[DUPLICATE] += 1
        else:
            known.add(key)
            once.append((contact_id, address))
    return once, left_out


async def _count(connection: Connection, organization_id: str, env: str, tree: Node, now: datetime) -> int:
    sql, arguments = query(SQL.count, organization_id, env, tree, now)
    # All rows of one: asked for a single row, the server would not share the work among processes.
    rows = await connection.fetch(sql, *arguments)
    found: int = rows[0][0]
    return found


def over(
    audience: Audience, of_list: str, of_segment: str, organization_id: str, env: str, now: datetime, **more: Any
) -> tuple[str, list[Any]]:
    """A query over the members of a list, or over whom a tree matches, and its arguments. `more`: its other values."""
    values = {"before_id": audience.before_id, **more}
    if audience.tree is not None:
        return query(of_segment, organization_id, env, audience.tree, now, **values)
    shared = {"organization_id": organization_id, "env": env, "list_id": audience.list_id}
    return compose(of_list, {**shared, **values})
