"""How fast a provider's reports are taken in, a hundred a callback: signed, stored, applied; beside a plain update."""

import asyncio
import hashlib
import hmac
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import aiohttp
import orjson

from bench.accept import plain
from bench.harness import Figure, Process, Say, free_port, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import Connection, Rows

MESSAGES = 40_000  # of a round, each reported as delivered and then as read
A_BODY = 100
AT_ONCE = 16  # callbacks in flight
ROUNDS = 3
LEAST = 15_000
LIMIT = 60.0  # seconds of a round
SECRET = "bench"
ACCOUNT = "bench-live"
_OPEN = "select exists (select from callbacks where processed_at is null)"
_PACE = """
select $2 / extract(epoch from max(processed_at) - min(received_at))::float from callbacks where received_at >= $1
"""
_READ = "select count(*) from messages where status = 'read' and organization_id = $1 and env = 'live'"
_PLAIN = """
insert into messages (id, number_id, recipient, type, status, created_at, sent_at)
select id, 'number', '+5511900000000', 'template', 'sent', now(), now() from unnest($1::text[]) as g (id)
"""


async def run(say: Say) -> list[Figure]:
    """In turns, each on messages of its own."""
    settings = {
        "RECADO_ADAPTER_CHATAPP": "cloud",
        "RECADO_CLOUD_URL": f"http://127.0.0.1:{free_port()}/v1",  # nobody is asked anything there
        "RECADO_CLOUD_APP_SECRET": SECRET,
        "RECADO_CLOUD_VERIFY_TOKEN": SECRET,
    }
    bound, ours = [], []
    async with (
        scratch() as folder,
        running(plain(folder), "/ready") as beside,
        running(recado(folder, **settings), READY) as service,
        Api(service) as api,
    ):
        database, other = await service.database(), await beside.database()
        rows = Rows(database)
        live = await rows.live(await api.sender("callbacks"), ACCOUNT)
        for number in range(ROUNDS):
            say(f"callbacks, round {number + 1} of {ROUNDS}")
            ids = await rows.sent(live, MESSAGES, env="live")
            await other.execute(_PLAIN, ids)
            for connection in (database, other):
                await connection.execute("vacuum analyze messages")
            bound.append(await posted(f"{beside.url}/callbacks", bodies(ids)))
            ours.append(await taken_in(service, database, ids))
        applied = await database.fetchval(_READ, live.organization_id)
        if applied != ROUNDS * MESSAGES:
            raise RuntimeError(f"{applied:,} of {ROUNDS * MESSAGES:,} messages are read")
        await database.close()
        await other.close()
    pace, plain_pace = statistics.median(ours), statistics.median(bound)
    return [
        Figure(
            f"receipts taken in, {A_BODY} a callback",
            f"{pace:,.0f} /s",
            f"{plain_pace:,.0f} /s",
            pace / plain_pace,
            f"≥ {LEAST:,} /s",
            pace >= LEAST,
        )
    ]


async def taken_in(service: Process, database: Connection, ids: Sequence[str]) -> float:
    """Receipts applied a second, from the first callback to the commit of the last."""
    began: datetime = await database.fetchval("select clock_timestamp()")
    await posted(f"{service.url}/v2/callbacks/chatapp/cloud", bodies(ids))
    give_up = time.monotonic() + LIMIT
    while await database.fetchval(_OPEN):
        if time.monotonic() > give_up:
            raise RuntimeError(f"callbacks are still open after {LIMIT:.0f} s")
        await asyncio.sleep(0.05)
    pace: float = await database.fetchval(_PACE, began, float(2 * len(ids)))
    return pace


async def posted(url: str, callbacks: Sequence[tuple[bytes, str]]) -> float:
    """Post all of them; receipts answered a second."""

    async def post(session: aiohttp.ClientSession, some: Iterator[tuple[bytes, str]]) -> None:
        for body, signature in some:
            async with session.post(url, data=body, headers={"X-Hub-Signature-256": signature}) as answer:
                if answer.status != 200:
                    raise RuntimeError(f"{url} answered {answer.status}: {await answer.text()}")
                await answer.read()

    some = iter(callbacks)
    began = time.perf_counter()
    async with aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session:
        await asyncio.gather(*(post(session, some) for _ in range(AT_ONCE)))
    return A_BODY * len(callbacks) / (time.perf_counter() - began)


def bodies(ids: Sequence[str]) -> list[tuple[bytes, str]]:
    """All as delivered, then all as read, each body with its signature."""
    now = str(int(datetime.now(UTC).timestamp()))
    made = []
    for status, some in itertools.product(("delivered", "read"), _batches(ids)):
        body = orjson.dumps(callback([_status(status, now, message_id) for message_id in some]))
        made.append((body, "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()))
    return made


def _batches(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + A_BODY] for start in range(0, len(ids), A_BODY)]


def callback(statuses: list[dict[str, object]]) -> dict[str, object]:
    """As the hosted API sends it."""
    metadata = {"display_phone_number": "5511900000000", "phone_number_id": ACCOUNT}
    value = {"messaging_product": "whatsapp", "metadata": metadata, "statuses": statuses}
    entry = {"id": "102290129340398", "changes": [{"field": "messages", "value": value}]}
    return {"object": "whatsapp_business_account", "entry": [entry]}


def _status(status: str, at: str, message_id: str) -> dict[str, object]:
    return {
        "id": f"wamid.{message_id[-13:]:>040}",
        "status": status,
        "timestamp": at,
        "recipient_id": "5511900000000",
        "biz_opaque_callback_data": message_id,
        "conversation": {"id": "d9a1a3b2c4e5f60718293a4b5c6d7e8f", "origin": {"type": "utility"}},
        "pricing": {"billable": True, "pricing_model": "PMP", "category": "utility", "type": "regular"},
    }
