"""Rows made in the database at once, where making them over the API would take longer than what is measured."""

from datetime import UTC, datetime
from typing import TypeAlias

import asyncpg

from bench.recado_process import Sender
from recado.domain.core.ids import DELIVERY, EVENT, MESSAGE, NUMBER, WEBHOOK, lowest_id

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_NUMBERS = """
insert into numbers
select (jsonb_populate_record(n, jsonb_build_object('id', made.id, 'phone_number_id', made.id, 'env', $5::text))).*
from numbers n
cross join (select $3 || lpad(g::text, 13, '0') as id from generate_series(1, $4::int) g) made
where n.organization_id = $1 and n.id = $2
returning id
"""
_MESSAGES = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
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
    organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at, held_base_ms, force,
    template_id
)
select
    $1, $5 || lpad(g::text, 13, '0'), 'test', 'chatapp', ($2::text[])[1 + g % cardinality($2::text[])], 1, $8,
    $4::timestamptz, 2592000000, $4::timestamptz + interval '30 days', 0, false, $3
from generate_series($6::int, $7::int) g
"""
_SUBSCRIPTIONS = """
insert into webhook_subscriptions
select (jsonb_populate_record(w, jsonb_build_object('id', made.id, 'organization_id', 'org_' || made.place / 20))).*
from webhook_subscriptions w
cross join (select $2 || lpad(g::text, 13, '0') as id, g as place from generate_series(1, $3::int) g) made
where w.id = $1
"""
_OWNER = """
insert into sender_owners (env, channel, account, organization_id, sender_id) values ('live', 'chatapp', $1, $2, $3)
"""
_SENT = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
    template_id, template_category, template_vars, metadata, attempts, provider_message_id, sent_at, updated_at
)
select
    $1, $2, 'chatapp', $6 || lpad(g::text, 13, '0'), 'outbound', 'sent', 'template', $3,
    '+55119' || lpad(g::text, 7, '0') || '9003', g, 1, false, $4, 'utility', '["Ana"]', '{"order": "A1"}', 1,
    'wamid.' || lpad(g::text, 40, '0'), $5, $5
from generate_series($7::int, $8::int) g
"""
_EVENTS = """
insert into events (organization_id, id, env, type, channel, message_id)
select $1, $2 || lpad(g::text, 13, '0'), 'test', $4, 'chatapp', $3 || lpad(g::text, 13, '0')
from generate_series($5::int, $6::int) g
order by 2
"""
_DELIVERIES = """
insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at)
select
    $1, s.id, $2 || lpad(s.place::text, 2, '0') || lpad(g::text, 11, '0'), $3 || lpad(g::text, 13, '0'), $5, $4
from generate_series($6::int, $7::int) g
cross join unnest($8::text[]) with ordinality s (id, place)
order by g
"""
LIMIT = 600.0  # seconds


class Rows:
    """Makes rows that look as if they had come over the API."""

    def __init__(self, database: Connection) -> None:
        self._database = database
        self._made = 0

    async def numbers(self, like: Sender, count: int, *, env: str = "test") -> list[str]:
        """So many numbers more, each as `like`; their ids."""
        prefix = lowest_id(NUMBER, datetime.now(UTC))[:-13]
        rows = await self._database.fetch(_NUMBERS, like.organization_id, like.number_id, prefix, count, env)
        return [row["id"] for row in rows]

    async def subscriptions(self, like: str, count: int) -> None:
        """So many subscriptions more, each as `like`, twenty to an organization."""
        prefix = lowest_id(WEBHOOK, datetime.now(UTC))[:-13]
        await self._database.execute(_SUBSCRIPTIONS, like, prefix, count)

    async def live(self, like: Sender, account: str) -> Sender:
        """A live number as `like`, of that name at its provider."""
        [sender_id] = await self.numbers(like, 1, env="live")
        await self._database.execute(_OWNER, account, like.organization_id, sender_id)
        return Sender(like.organization_id, sender_id, like.template_id)

    async def queued(
        self, sender: Sender, count: int, *, sender_ids: list[str] | None = None, owner: str = "single"
    ) -> None:
        """So many messages that are ready to leave, spread over the numbers; visible all at once."""
        now = datetime.now(UTC)
        prefix = lowest_id(MESSAGE, now)[:-13]
        first, self._made = self._made + 1, self._made + count
        numbers = sender_ids or [sender.number_id]
        shared = (sender.organization_id, numbers, sender.template_id, now, prefix, first, self._made)
        async with self._database.transaction():
            await self._database.execute(_MESSAGES, *shared, timeout=LIMIT)
            await self._database.execute(_QUEUE, *shared, owner, timeout=LIMIT)
        await self._database.execute("analyze dispatch", timeout=LIMIT)

    async def sent(self, sender: Sender, count: int, *, env: str = "test") -> list[str]:
        """So many messages that have left; their ids."""
        now = datetime.now(UTC)
        prefix = lowest_id(MESSAGE, now)[:-13]
        first, self._made = self._made + 1, self._made + count
        arguments = (env, sender.number_id, sender.template_id, now, prefix, first, self._made)
        await self._database.execute(_SENT, sender.organization_id, *arguments, timeout=LIMIT)
        return [f"{prefix}{number:013}" for number in range(first, self._made + 1)]

    async def deliveries(self, sender: Sender, count: int, subscription_ids: list[str], event: str) -> None:
        """So many messages that have left, each with an event that is to be told to all the subscriptions."""
        now = datetime.now(UTC)
        async with self._database.transaction():
            first = self._made + 1
            message = (await self.sent(sender, count))[0][:-13]
            events, deliveries = lowest_id(EVENT, now)[:-13], lowest_id(DELIVERY, now)[:-13]
            shared = (first, self._made)
            organization_id = sender.organization_id
            await self._database.execute(_EVENTS, organization_id, events, message, event, *shared, timeout=LIMIT)
            await self._database.execute(
                _DELIVERIES, organization_id, deliveries, events, now, event, *shared, subscription_ids, timeout=LIMIT
            )
