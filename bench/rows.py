"""Rows made in the database at once, where making them over the API would take longer than what is measured."""

from datetime import UTC, datetime
from typing import TypeAlias

import asyncpg

from bench.recado_process import Sender
from recado.domain.ids import MESSAGE, NUMBER, lowest_id

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_NUMBERS = """
insert into numbers
select (jsonb_populate_record(n, jsonb_build_object('id', made.id, 'phone_number_id', made.id))).*
from numbers n
cross join (select $3 || lpad(g::text, 13, '0') as id from generate_series(1, $4::int) g) made
where n.organization_id = $1 and n.id = $2
returning id
"""
_MESSAGES = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, number_id, recipient, recipient_hash, class, force,
    template_id, template_vars, updated_at
)
select
    $1, 'test', 'chatapp', $5 || lpad(g::text, 13, '0'), 'outbound', 'queued', 'template',
    ($2::text[])[1 + g % cardinality($2::text[])], '+55119' || lpad(g::text, 7, '0') || '9003', g, 1, false, $3,
    '["Ana"]', $4
from generate_series($6::int, $7::int) g
"""
_QUEUE = """
insert into dispatch (
    organization_id, id, env, channel, number_id, class, owner, due_at, ttl_ms, expires_at, held_base_ms, force,
    template_id
)
select
    $1, $5 || lpad(g::text, 13, '0'), 'test', 'chatapp', ($2::text[])[1 + g % cardinality($2::text[])], 1, $8,
    $4::timestamptz, 2592000000, $4::timestamptz + interval '30 days', 0, false, $3
from generate_series($6::int, $7::int) g
"""
LIMIT = 600.0  # seconds


class Rows:
    """Makes rows that look as if they had come over the API."""

    def __init__(self, database: Connection) -> None:
        self._database = database
        self._made = 0

    async def numbers(self, like: Sender, count: int) -> list[str]:
        """So many numbers more, each as `like`; their ids."""
        prefix = lowest_id(NUMBER, datetime.now(UTC))[:-13]
        rows = await self._database.fetch(_NUMBERS, like.organization_id, like.number_id, prefix, count)
        return [row["id"] for row in rows]

    async def queued(
        self, sender: Sender, count: int, *, number_ids: list[str] | None = None, owner: str = "single"
    ) -> None:
        """So many messages that are ready to leave, spread over the numbers; visible all at once."""
        now = datetime.now(UTC)
        prefix = lowest_id(MESSAGE, now)[:-13]
        first, self._made = self._made + 1, self._made + count
        numbers = number_ids or [sender.number_id]
        shared = (sender.organization_id, numbers, sender.template_id, now, prefix, first, self._made)
        async with self._database.transaction():
            await self._database.execute(_MESSAGES, *shared, timeout=LIMIT)
            await self._database.execute(_QUEUE, *shared, owner, timeout=LIMIT)
        await self._database.execute("analyze dispatch", timeout=LIMIT)
