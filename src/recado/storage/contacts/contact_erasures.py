"""What messages and events of deleted contacts lose (C12.6): recipients are masked for good, content is emptied.

That a sender which organizations share reached them is forgotten too.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import orjson

from recado.domain.channels.policies import SHARED, TRACKED
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.links import tracked_links
from recado.storage.media import inbound_media

SQL = load("contact_erasures")

BLOCK = 1_000  # messages in a commit
EVENTS = 100  # in a commit
AGAIN = timedelta(minutes=5)
"""Until the next look: longer than a request or a block takes that found the contact before it was deleted."""

_SEEN = " "  # before every id: where a look begins that is not the first

Key = tuple[str, str, str]
"""Organization, environment, contact."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """One contact's, as far as it is done. `seen`: an earlier look went through all of its messages."""

    key: Key
    after_id: str
    seen: bool = False


async def begin(connection: Executor, key: Key, now: datetime, *, refused: bool) -> None:
    """Note, in the transaction of the deletion, what is left to do. `refused`: its devices opt out (C22.2)."""
    await connection.execute(SQL.begin, *key, now, refused)


async def due(executor: Executor, now: datetime, limit: int) -> list[Erasure]:
    rows = await executor.fetch(SQL.due, now, limit)
    return [
        Erasure((row["organization_id"], row["env"], row["contact_id"]), row["after_id"], row["after_id"] == _SEEN)
        for row in rows
    ]


async def block(
    db: Database, erasure: Erasure, now: datetime, *, mask: Callable[[str, str], str], limit: int = BLOCK
) -> Erasure | None:
    """Erase the next messages in one commit; None when nothing more can be done now.

    `mask`: from channel and recipient to what is kept. A message on its way keeps its recipient until it is settled:
    the contact is looked at again later.
    """
    async with db.transaction() as connection:
        rows = await connection.fetch(SQL.block, *erasure.key, erasure.after_id, limit)
        if not rows:
            await _finish(connection, erasure, now)
            return None
        settled = [row for row in rows if row["settled"]]
        kept = {row["id"]: mask(row["channel"], row["recipient"]) for row in settled}
        channels = sorted({row["channel"] for row in settled})
        await connection.execute(SQL.erase, *erasure.key[:2], channels, list(kept), kept)
        await inbound_media.erase(connection, *erasure.key[:2], list(kept))
        # What an address says may tell of the person.
        if with_links := [row["id"] for row in settled if row["channel"] in TRACKED]:
            await tracked_links.erase(connection, with_links)
        if reached := _reached(settled):
            await connection.execute(SQL.forget, *erasure.key[:2], *columns(reached, 3))
        after_id = rows[-1]["id"]
        await connection.execute(SQL.advance, *erasure.key, after_id)
    return Erasure(erasure.key, after_id, erasure.seen)


async def postpone(executor: Executor, erasure: Erasure, until: datetime) -> None:
    """Leave it as it is, and look again then."""
    await executor.execute(SQL.again, *erasure.key, until, erasure.after_id)


async def erase_events(
    executor: Executor, key: Key, *, kept: Callable[[str, Mapping[str, Any]], Mapping[str, Any]], limit: int = EVENTS
) -> None:
    """Write what is kept of the events of a contact, `limit` in a commit; those that hold no more are not written.

    `kept`: from type and data. Anyone who writes one holds the contact, so that none comes after the deletion.
    """
    after_id = ""
    while rows := await executor.fetch(SQL.events, *key, after_id, limit):
        found = {row["id"]: (row["type"], orjson.loads(row["data"])) for row in rows}
        left = {event_id: kept(*event) for event_id, event in found.items()}
        changed = {event_id: data for event_id, data in left.items() if data != found[event_id][1]}
        if changed:
            await executor.execute(SQL.erase_events, key[0], list(changed), orjson.dumps(changed).decode())
        after_id = rows[-1]["id"]


def _reached(rows: Iterable[asyncpg.Record]) -> list[tuple[str, str, datetime]]:
    """Channel and recipient of those that left from shared senders, and when the last one did."""
    found: dict[tuple[str, str], datetime] = {}
    for row in rows:
        if row["channel"] in SHARED and row["sent_at"] is not None:
            key = (row["channel"], row["recipient"])
            found[key] = max(row["sent_at"], found.get(key, row["sent_at"]))
    return [(*key, sent_at) for key, sent_at in sorted(found.items())]


async def _finish(connection: Connection, erasure: Erasure, now: datetime) -> None:
    """Done after a second look, unless a message was on its way: then from the beginning, later."""
    if not erasure.seen or await connection.fetchval(SQL.left, *erasure.key):
        await connection.execute(SQL.again, *erasure.key, now + AGAIN, _SEEN)
    else:
        await connection.execute(SQL.end, *erasure.key)
