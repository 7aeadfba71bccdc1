"""The bound: the least that a durable service in Python does on the same server software. Run as a process.

aiohttp, pydantic, batched inserts answered after the commit; with `--send` also an actor's queue, a batched claim, a
provider that answers at once, and a batched `sent`; with `--provider` that provider is a POST to this address. No key,
no rule, no idempotency, no pacing.
"""

import argparse
import asyncio
import hashlib
import hmac
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import uvloop
from aiohttp import ClientSession, TCPConnector, web
from pydantic import BaseModel

from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres

MOST_ROWS = 500
FLUSHERS = 2

SCHEMA = """
create table messages (
    id text collate "C" primary key, number_id text not null, recipient text not null, type text not null,
    template_id text, template_vars json, metadata json, scheduled_at timestamptz, status text not null,
    provider_message_id text, created_at timestamptz not null, sent_at timestamptz
) with (fillfactor = 70);
create view dispatch as select id from messages where status in ('queued', 'sending')  -- what a load waits for
"""
INSERT = """
insert into messages
    (id, number_id, recipient, type, template_id, template_vars, metadata, scheduled_at, created_at, status)
select id, number_id, recipient, type, template_id, vars::json, metadata::json, scheduled_at, created_at, 'queued'
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
    $9::timestamptz[]) as g (id, number_id, recipient, type, template_id, vars, metadata, scheduled_at, created_at)
"""
CLAIM = "update messages set status = 'sending' where id = any($1::text[]) and status = 'queued' returning id"
SENT = """
update messages m set status = 'sent', provider_message_id = g.provider_message_id, sent_at = g.sent_at
from unnest($1::text[], $2::text[], $3::timestamptz[]) as g (id, provider_message_id, sent_at)
where m.id = g.id and m.status = 'sending'
"""
REPORTED = """
update messages m set status = g.status
from unnest($1::text[], $2::text[]) as g (id, status)
where m.id = g.id and m.status in ('sent', 'delivered')
"""
# The planner does not see how short an array is: without these it may scan the whole table for each batch.
SETTINGS = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"}


class Message(BaseModel):
    """The body of the benchmarks."""

    numberId: str  # noqa: N815 - as it stands in the body
    to: str
    type: str
    templateId: str | None = None  # noqa: N815
    templateVars: list[str] | None = None  # noqa: N815
    metadata: dict[str, str | float | bool] | None = None
    scheduledAt: datetime | None = None  # noqa: N815


class Batches:
    """Rows that leave together as soon as a flusher is free."""

    def __init__(self, run: Callable[[Sequence[Any]], Awaitable[object]]) -> None:
        self._run = run
        self._waiting: deque[tuple[Any, asyncio.Future[None]]] = deque()
        self._some = asyncio.Event()
        self._tasks = [asyncio.create_task(self._flush()) for _ in range(FLUSHERS)]

    def put(self, row: Any) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, future))
        self._some.set()
        return future

    async def _flush(self) -> None:
        while True:
            await self._some.wait()
            batch = [self._waiting.popleft() for _ in range(min(MOST_ROWS, len(self._waiting)))]
            if not self._waiting:
                self._some.clear()
            if batch:
                await self._run([row for row, _ in batch])
                for _, future in batch:
                    future.set_result(None)


class Plain:
    """The service."""

    def __init__(
        self, pool: "asyncpg.Pool[asyncpg.Record]", *, send: bool, session: ClientSession, provider: str | None
    ) -> None:
        self._pool = pool
        self._session = session
        self._provider_url = provider
        self._send = send
        self._ids = itertools.count(time.time_ns())
        self._inserts = Batches(lambda rows: pool.fetch(INSERT, *map(list, zip(*rows, strict=True))))
        self._claims = Batches(lambda rows: pool.fetch(CLAIM, rows))
        self._sents = Batches(lambda rows: pool.fetch(SENT, *map(list, zip(*rows, strict=True))))
        self._actors: dict[str, asyncio.Queue[tuple[str, Message]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, request: web.Request) -> web.Response:
        message = Message.model_validate_json(await request.read())
        message_id = f"msg_{next(self._ids)}"
        variables = orjson.dumps(message.templateVars).decode()
        metadata = orjson.dumps(message.metadata).decode()
        await self._inserts.put(
            (
                message_id,
                message.numberId,
                message.to,
                message.type,
                message.templateId,
                variables,
                metadata,
                message.scheduledAt,
                datetime.now(UTC),
            )
        )
        if self._send:
            self._actor(message.numberId).put_nowait((message_id, message))
        answer = orjson.dumps({"id": message_id, "status": "queued", "numberId": message.numberId, "to": message.to})
        return web.Response(body=answer, status=201, content_type="application/json")

    async def report(self, request: web.Request) -> web.Response:
        """A provider's callback: its signature is computed, its reports are applied in one statement, then answered."""
        body = await request.read()
        hmac.new(b"bench", body, hashlib.sha256).hexdigest()
        statuses = orjson.loads(body)["entry"][0]["changes"][0]["value"]["statuses"]
        ids = [status["biz_opaque_callback_data"] for status in statuses]
        await self._pool.execute(REPORTED, ids, [status["status"] for status in statuses])
        return web.Response()

    def _actor(self, number_id: str) -> "asyncio.Queue[tuple[str, Message]]":
        queue = self._actors.get(number_id)
        if queue is None:
            queue = self._actors[number_id] = asyncio.Queue()
            self._begin(self._act(queue))
        return queue

    async def _act(self, queue: "asyncio.Queue[tuple[str, Message]]") -> None:
        while True:
            message_id, message = await queue.get()
            self._begin(self._leave(message_id, message))

    async def _leave(self, message_id: str, message: Message) -> None:
        await self._claims.put(message_id)
        sent_at = datetime.now(UTC)
        provider_message_id = await self._provider(message_id, message)
        await self._sents.put((message_id, provider_message_id, sent_at))

    async def _provider(self, message_id: str, message: Message) -> str:
        if self._provider_url is None:
            return f"provider-{message_id}"
        body = orjson.dumps({"id": message_id, "to": message.to, "variables": message.templateVars})
        async with self._session.post(self._provider_url, data=body) as answer:
            provider_message_id: str = orjson.loads(await answer.read())["providerMessageId"]
            return provider_message_id

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _ready(request: web.Request) -> web.Response:
    return web.Response(text="ready")


async def serve(port: int, data_dir: Path, *, send: bool, provider: str | None) -> None:
    postgres = EmbeddedPostgres(data_dir, clock=SystemClock())
    arguments = await postgres.start()
    pool = await asyncpg.create_pool(**arguments, min_size=6, max_size=6, server_settings=SETTINGS)
    await pool.execute(SCHEMA)
    session = ClientSession(connector=TCPConnector(limit=0))
    plain = Plain(pool, send=send, session=session, provider=provider)
    app = web.Application()
    app.router.add_post("/messages", plain.create)
    app.router.add_post("/callbacks", plain.report)
    app.router.add_get("/ready", _ready)
    runner = web.AppRunner(app, access_log=None, handle_signals=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=2048).start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(15, stop.set)
    await stop.wait()
    await runner.cleanup()
    await session.close()
    pool.terminate()
    await postgres.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--send", action="store_true")
    parser.add_argument("--provider")
    given = parser.parse_args()
    uvloop.run(serve(given.port, given.data_dir, send=given.send, provider=given.provider))
