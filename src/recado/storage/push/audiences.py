"""Audiences of push messages: counted for a preview, and fixed, when a message is accepted, in blocks of device ids.

A statement for a million devices takes seconds. So few run at a time, one of an organization, on connections of their
own; none takes longer than the answer to a request may.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from recado.domain.audience.segment import Node
from recado.domain.core.errors import Unavailable
from recado.storage.audience import segment_query
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.sql import fragments
from recado.storage.push.devices import hash_of

SQL = fragments("push_audiences")

BLOCK: Final = 500  # devices
AT_ONCE: Final = 2
MOST_WAITING: Final = 20  # of one organization
LIMIT: Final = 25.0  # seconds, those spent waiting for the others included

Reach = dict[str, int]
"""Devices by platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushAudience:
    """Who gets a message: whom a tree matches, some devices by id or token, or, with neither, everybody."""

    platforms: tuple[str, ...]
    tree: Node | None = None
    tokens: tuple[str, ...] | None = None


class PushAudiences:
    """Where audiences are looked up."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._places = FairPlaces(AT_ONCE, most_waiting=MOST_WAITING)

    @asynccontextmanager
    async def transaction(self, organization_id: str) -> AsyncIterator[Connection]:
        """A connection for such statements. Raises `Unavailable` for what takes too long."""
        try:
            async with (
                asyncio.timeout(LIMIT),
                self._places.place(organization_id),
                self._db.searches.transaction() as connection,
            ):
                await connection.execute(segment_query.SQL.plan_with_values)
                yield connection
        except TimeoutError:
            raise Unavailable("The audience took too long to gather: narrow it.", retry_after=60) from None

    async def reach(self, organization_id: str, env: str, audience: PushAudience, now: datetime) -> Reach:
        """How many devices it has."""
        async with self.transaction(organization_id) as connection:
            sql, arguments = _over(SQL.reach, organization_id, env, audience, now)
            return _reach(await connection.fetch(sql, *arguments))


async def fix(
    connection: Connection,
    organization_id: str,
    env: str,
    audience: PushAudience,
    now: datetime,
    *,
    message_id: str,
    ready: bool,
) -> Reach:
    """Keep who gets the message, in the transaction that stores it. `ready`: it may leave at once."""
    more: dict[str, Any] = {"message_id": message_id, "ready": ready, "block": BLOCK}
    sql, arguments = _over(SQL.fix, organization_id, env, audience, now, **more)
    return _reach(await connection.fetch(sql, *arguments))


def _reach(rows: list[Any]) -> Reach:
    return {row["platform"]: row["reach"] for row in rows}


def _over(
    text: str, organization_id: str, env: str, audience: PushAudience, now: datetime, **more: Any
) -> tuple[str, list[Any]]:
    values = {"platforms": list(audience.platforms), **more}
    if audience.tree is not None:
        text = text.replace("{audience}", SQL.of_segment)
        return segment_query.query(text, organization_id, env, audience.tree, now, **values)
    of = SQL.everybody
    if audience.tokens is not None:
        of = SQL.of_tokens
        values["device_ids"] = list(audience.tokens)
        values["token_hashes"] = [hash_of(each) for each in audience.tokens]
    return compose(text.replace("{audience}", of), {"organization_id": organization_id, "env": env, **values})
