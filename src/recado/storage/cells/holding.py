"""What belongs to an organization that is moved, held in a schema of its own in the database that it leaves.

Taken out of the tables in one transaction, and put into those of the other database, or back, in one: so at every
moment at most one database has rows that a service finds, whoever is killed when.
"""

import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import asyncpg

from recado.domain.core.clock import Clock
from recado.domain.core.ids import created_at
from recado.domain.dispatch.leases import MOST_OFFSET_OF_TWO, TOLERANCE, WINDOW
from recado.storage.access import organizations
from recado.storage.access.organizations import ACTIVE
from recado.storage.cells.copying import copy_rows
from recado.storage.cells.moved_tables import MADE_BY_TRIGGERS, STAY_UNTIL_THE_END, MovedTable, moved_tables
from recado.storage.core.crypto import KeyRing, Tampered
from recado.storage.core.statements.rows import affected, reader
from recado.storage.core.statements.sql import load
from recado.storage.core.upkeep.partitions import make_partitions, months
from recado.storage.push import messages as push_messages
from recado.storage.push.apps import VAPID_FIELD

SQL = load("holding")

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Told: TypeAlias = Callable[[str, int], None]
"""Takes what is done now, and how many rows more of it are done."""

CACHED: Final = 6.0
"""Seconds after which every process of a service knows that an organization stands still: it remembers it for 5."""
PATIENCE: Final = 60.0
"""Seconds that what is under way is waited for."""
_LOOK_EVERY: Final = 0.1  # seconds
_SETTINGS: Final = {
    "application_name": "recado cells",
    # A row as text has to be the same in both databases.
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "10s",
}
_COLLISIONS = (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError, asyncpg.SerializationError)


class MoveRefused(Exception):
    """A move cannot go on; the text is one line that says what to do."""


class _SendBegan(Exception):
    """A process that did not know yet that it stands still began a send of it."""


@dataclass(frozen=True, slots=True)
class BegunMove:
    """`status`, `held_since`: of the organization before. `held_at`: since when all of it is held; None: not yet."""

    organization_id: str
    to_cell: str
    status: str
    held_since: datetime | None
    begun_at: datetime
    held_at: datetime | None


@dataclass(frozen=True, slots=True)
class TableSum:
    """How many rows a table has of an organization, and the sum of their hashes."""

    rows: int
    checksum: str


_read_move = reader(BegunMove)


async def connect(url: str) -> Session:
    """A session for a move. Raises what asyncpg and the network raise."""
    return await asyncpg.connect(url, server_settings=_SETTINGS, timeout=10.0)


async def is_here(session: Session, organization_id: str) -> bool:
    """Whether the database has the organization; one that is about to leave counts."""
    return bool(await session.fetchval(SQL.is_here, organization_id))


class HeldOrganization:
    """The schema that holds one organization in the database that it leaves."""

    def __init__(self, source: Session, organization_id: str, *, clock: Clock, told: Told) -> None:
        self._source = source
        self._id = organization_id
        self._clock = clock
        self._told = told
        self._schema = f'"recado_move_{organization_id}"'

    def _sql(self, text: str, table: MovedTable | None = None, **names: str) -> str:
        named = {} if table is None else {"table": table.name, "whose": table.whose, "columns": table.listed}
        return text.format(**{"held": self._schema, **named, **names})

    async def begun(self) -> BegunMove | None:
        """The move that was begun and is not at its end; None: there is none."""
        if not await self._source.fetchval(SQL.is_begun, f"{self._schema}.cell_move"):
            return None
        [row] = await self._source.fetch(self._sql(SQL.move))
        return _read_move(dict(row))

    async def begin(self, to_cell: str) -> None:
        """Let the organization stand still: nothing of it leaves, and its callers get 503, within `CACHED` seconds."""
        async with self._source.transaction():
            await self._source.execute(self._sql(SQL.begin_schema))
            await self._source.execute(self._sql(SQL.begin_table))
            await self._source.execute(self._sql(SQL.begin_row), self._id, to_cell)
            await self._source.execute(SQL.stop, self._id)

    async def rest(self, *, cached: float) -> None:
        """Come back when nothing of it is under way, and the service knows that it stands still.

        `cached`: seconds for which it may have remembered otherwise. Raises `MoveRefused` when something does not end.
        """
        since = self._clock.monotonic()
        while True:
            in_hand = await self._source.fetchval(SQL.in_hand.format(place=""), self._id)
            waited = self._clock.monotonic() - since
            self._told("waiting until nothing is under way", 0)
            if not in_hand and waited >= cached:
                return
            if waited >= PATIENCE:
                raise MoveRefused(
                    f"{in_hand} of its sends have begun and did not end within {PATIENCE:g} s: is a service running on"
                    " the cell that it leaves? Start one, or undo the move with --undo"
                )
            await self._clock.sleep(_LOOK_EVERY)

    async def take(self) -> None:
        """Take everything out of the tables, and what other transactions still add; what was taken before stays."""
        tables = await moved_tables(self._source)
        for table in tables:
            await self._source.execute(self._sql(SQL.begin_held, table, columns=table.all_listed))
        give_up_at = self._clock.monotonic() + PATIENCE
        while await self._take_once(tables, give_up_at):
            await self._others_end(give_up_at)

    async def _take_once(self, tables: Sequence[MovedTable], give_up_at: float) -> bool:
        """Whether anything was there to take."""
        while True:
            try:
                async with self._source.transaction():
                    return await self._taken(tables)
            except (*_COLLISIONS, _SendBegan):
                if self._clock.monotonic() >= give_up_at:
                    raise MoveRefused(
                        "sends of it begin still, or other transactions hold its rows: give the same command again, or"
                        " undo the move with --undo"
                    ) from None
            await self._clock.sleep(_LOOK_EVERY)
            await self.rest(cached=0.0)

    async def _taken(self, tables: Sequence[MovedTable]) -> bool:
        if not await self._source.fetchval(SQL.is_stopped, self._id):
            raise MoveRefused(
                "somebody released the organization meanwhile: undo the move with --undo, and begin again"
            )
        found = 0
        for table in tables:
            if table.name in STAY_UNTIL_THE_END:  # as they are now: a key may have been revoked since a command before
                await self._source.execute(self._sql(SQL.clear_held, table))
                await self._source.execute(self._sql(SQL.copy_staying, table), self._id)
                continue
            if table.name in MADE_BY_TRIGGERS:
                await self._source.execute(self._sql(SQL.drop_made, table), self._id)
            taken = affected(await self._source.execute(self._sql(SQL.take, table, columns=table.all_listed), self._id))
            found += taken
            self._told(f"taking {table.name}", taken)
        if await self._source.fetchval(SQL.in_hand.format(place=f"{self._schema}."), self._id):
            raise _SendBegan
        await self._source.execute(self._sql(SQL.forget_epochs))
        await self._source.execute(self._sql(SQL.note_held))
        return found > 0

    async def _others_end(self, give_up_at: float) -> None:
        """Until every transaction has ended that wrote before all was taken, and so may have written for it."""
        writers = await self._source.fetchval(SQL.writers)
        while await self._source.fetchval(SQL.still_write, writers):
            if self._clock.monotonic() >= give_up_at:
                raise MoveRefused("a transaction of the database does not end: end it, and give the same command again")
            await self._clock.sleep(_LOOK_EVERY)

    async def sums(self) -> Mapping[str, TableSum]:
        """Of each table, what is held."""
        return {
            table.name: await _sum(
                self._source, SQL.checksum.format(columns=table.listed, table=self._named(table), whose="true")
            )
            for table in await moved_tables(self._source)
        }

    def _named(self, table: MovedTable) -> str:
        return f"{self._schema}.{table.name}"

    async def unequal_wallets(self) -> int:
        """How many of its wallets differ from the sum of their entries, before it is held."""
        return int(await self._source.fetchval(SQL.unequal_wallets, self._id))

    async def put(self, target: Session, begun: BegunMove) -> Mapping[str, TableSum]:
        """Put everything into the other database, in one transaction: with its commit that one serves the organization.

        It is verified before. Answers the sums. Raises `MoveRefused`, and then nothing was put.
        """
        self._told("verifying what is held", 0)
        sums = await self.sums()
        with _patience():
            await self._make_partitions(target)
            await self._put(target, begun, sums)
        return sums

    async def _put(self, target: Session, begun: BegunMove, sums: Mapping[str, TableSum]) -> None:
        async with self._source.transaction(), target.transaction():
            # Whoever undoes the move, or goes on with it, waits for the end of this.
            held_at = await self._source.fetchval(self._sql(SQL.move_for_share))
            await target.execute(SQL.lock, self._id)
            if await is_here(target, self._id):
                raise MoveRefused("the other database has the organization already: give the same command again")
            for table in await moved_tables(target):
                if table.name in MADE_BY_TRIGGERS:
                    await target.execute(self._sql(SQL.drop_made, table), self._id)
                await self._copy(target, table)
            self._told("verifying what was copied", 0)
            for table in await moved_tables(target):
                there = await _sum(target, self._sql(SQL.checksum, table), self._id)
                if there != sums.get(table.name):
                    raise MoveRefused(f"{table.name} differs between the two databases: nothing was put into the other")
                self._told("verifying what was copied", there.rows)
            if await target.fetchval(SQL.unequal_wallets, self._id):
                raise MoveRefused("a wallet is not the sum of its entries: nothing was put into the other database")
            await self._let_a_second_pass(target, held_at)
            await self._release(target, begun)

    async def _copy(self, target: Session, table: MovedTable) -> None:
        try:
            await copy_rows(
                self._source,
                self._sql(SQL.held_rows, table, ordered=table.ordered),
                target,
                table.name,
                table.columns,
                lambda rows: self._told(f"copying {table.name}", rows),
            )
        except asyncpg.UniqueViolationError as error:
            raise MoveRefused(
                f"the other database has already what may be there only once ({error.constraint_name} of {table.name}):"
                " remove it from one of the two, and give the same command again, or undo the move with --undo"
            ) from None

    async def _make_partitions(self, target: Session) -> None:
        [row] = await self._source.fetch(self._sql(SQL.message_ids))
        if row["oldest"] is not None:
            async with target.transaction():
                await make_partitions(target, months(created_at(row["oldest"]), created_at(row["newest"])))

    async def _let_a_second_pass(self, target: Session, held_at: datetime) -> None:
        """No send of the other database may fall into the second of the last one of this (C14.5.6), by both clocks."""
        for session, seconds in ((self._source, WINDOW + TOLERANCE), (target, WINDOW + TOLERANCE + MOST_OFFSET_OF_TWO)):
            opens_at = held_at + timedelta(seconds=seconds)
            while (left := (opens_at - await session.fetchval(SQL.shown)).total_seconds()) > 0:
                await self._clock.sleep(min(left, _LOOK_EVERY))

    async def _release(self, session: Session, begun: BegunMove) -> None:
        """It is as it was before: what of push was due meanwhile has its day still, and obeys quiet hours (C22.3)."""
        organization = await organizations.get(session, self._id)
        if begun.status == ACTIVE and organization is not None and organization.held_since is not None:
            now = await session.fetchval(SQL.shown)
            quiet_until = organization.quiet_hours_end(now)
            await push_messages.make_up(session, self._id, organization.held_since, now, quiet_until)
        await session.execute(SQL.release, self._id, begun.status, begun.held_since)

    async def put_back(self, target: "Session | None", begun: BegunMove) -> None:
        """Put everything back where it was, and let it go on.

        `target`: the other database, which must not have it; None: as nothing is held yet, or that one is lost. Raises
        `MoveRefused`.
        """
        async with self._patient_transaction():
            if (await self._lock_move() is not None) is not (begun.held_at is not None):
                raise MoveRefused("another process moves it at this moment: wait until that one has ended")
            if target is not None:
                # What a process that was killed had begun there ends first.
                async with target.transaction():
                    await target.execute(SQL.lock, self._id)
                    if await is_here(target, self._id):
                        raise MoveRefused(
                            "the other database has the organization already: give the move again to end it"
                        )
            if begun.held_at is not None:
                for table in await moved_tables(self._source):
                    if table.name in MADE_BY_TRIGGERS:
                        await self._source.execute(self._sql(SQL.drop_made, table), self._id)
                    if table.name not in STAY_UNTIL_THE_END:
                        put = await self._source.execute(self._sql(SQL.put_back, table, ordered=table.ordered))
                        self._told(f"putting back {table.name}", affected(put))
            await self._release(self._source, begun)
            await self._source.execute(self._sql(SQL.end_schema))

    async def end(self, target: Session) -> int:
        """Forget the organization here, once the other database has it; answers how many rows came late and followed.

        A request that lasted longer than everything before may have written here still.
        """
        tables = await moved_tables(self._source)
        late = await self._forget(tables, target)
        # Nobody is known here any more: what comes now is of transactions that were open.
        await self._others_end(self._clock.monotonic() + PATIENCE)
        late += await self._forget(tables, target)
        async with self._patient_transaction():
            await self._lock_move()
            await self._source.execute(self._sql(SQL.end_schema))
        return late

    async def _forget(self, tables: Sequence[MovedTable], target: Session) -> int:
        """Until nothing is here any more."""
        late = 0
        while found := await self._late(tables, target):
            late += found
        return late

    async def _late(self, tables: Sequence[MovedTable], target: Session) -> int:
        """Let rows that came late follow; when there are none, forget the rest, in the same view of the database.

        What the other database has already, as after a kill here, stays as it is.
        """
        found = 0
        async with self._patient_transaction():
            await self._source.execute("set transaction isolation level repeatable read")
            await self._lock_move()
            async with target.transaction():
                for table in tables:
                    rows = table.name not in STAY_UNTIL_THE_END and await self._source.fetchval(
                        self._sql(SQL.count, table), self._id
                    )
                    if rows:
                        await target.execute(self._sql(SQL.begin_late, table))
                        query = self._sql(SQL.late_rows, table)
                        await copy_rows(
                            self._source,
                            query,
                            target,
                            f"late_{table.name}",
                            table.columns,
                            lambda rows: None,
                            self._id,
                        )
                        await target.execute(self._sql(SQL.follow, table))
                        found += rows
            for table in tables:
                if not found or table.name not in STAY_UNTIL_THE_END:
                    await self._source.execute(self._sql(SQL.forget, table), self._id)
        return found

    @asynccontextmanager
    async def _patient_transaction(self) -> AsyncIterator[None]:
        with _patience():
            async with self._source.transaction():
                yield

    async def _lock_move(self) -> datetime | None:
        """Since when all of it is held."""
        try:
            held_at: datetime | None = await self._source.fetchval(self._sql(SQL.move_for_update))
        except asyncpg.LockNotAvailableError:
            raise MoveRefused("another process moves it at this moment: wait until that one has ended") from None
        return held_at


@contextmanager
def _patience() -> Iterator[None]:
    """What others hold for too long is told, and nothing was done."""
    try:
        yield
    except _COLLISIONS:
        raise MoveRefused("other transactions hold what it needs: give the same command again") from None


async def _sum(session: Session, statement: str, *arguments: Any) -> TableSum:
    [row] = await session.fetch(statement, *arguments)
    return TableSum(row["rows"], row["checksum"])


async def has_files(session: Session, organization_id: str) -> bool:
    """Whether the organization has binaries in the storage of its cell."""
    return bool(await session.fetchval(SQL.stored_files, organization_id))


async def opens(session: Session, organization_id: str, keys: KeyRing) -> bool:
    """Whether the keys open what the database has sealed, by one sample: the organization's own where it has any."""
    for row in await session.fetch(SQL.sealed_sample, organization_id):
        owner, record = row["organization_id"], row["id"]
        try:
            keys.decrypt(row["vapid_cipher"], organization_id=owner, record_id=record, field=VAPID_FIELD)
        except Tampered:
            return False
    return True


async def try_lock(session: Session, organization_id: str) -> bool:
    """Whether this session alone moves the organization, until it is closed."""
    return bool(await session.fetchval(SQL.try_lock, organization_id))


async def seconds_since(session: Session, moment: datetime) -> float:
    """By the clock of the server."""
    return float(await session.fetchval(SQL.stood_still, moment))


async def versions(session: Session) -> list[str]:
    """The migrations of a database, each with what it was."""
    return [row[0] for row in await session.fetch(SQL.versions)]


async def apart(first: Session, second: Session) -> float:
    """Seconds that the clocks of two servers are apart, at least; what the ways take is not counted."""
    least = math.inf
    for _ in range(3):
        one, other, again = (
            await first.fetchval(SQL.shown), await second.fetchval(SQL.shown), await first.fetchval(SQL.shown),
        )  # fmt: skip
        outside = max((one - other).total_seconds(), (other - again).total_seconds(), 0.0)
        least = min(least, outside)
    return least
