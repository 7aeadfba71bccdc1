"""How fast messages are exported, a thousand rows a page: the 1,000th page beside the first, and beside a raw read."""

import time
from datetime import UTC, datetime, timedelta
from statistics import median

import aiohttp
import orjson

from bench.contacts import make_contacts
from bench.harness import Figure, Say, against, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import LIMIT, Connection
from recado.domain.core.ids import MESSAGE, lowest_id
from recado.domain.core.timestamps import format_timestamp

PAGE = 1_000
PAGES = 1_000
CONTACTS = 10_000
ROUNDS = 5
TOGETHER = 40  # pages of a round
MOST_DEEPER = 1.2
LEAST = 0.5
# Each has been read, belongs to a contact and a campaign, and has metadata.
_MESSAGES = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, recipient, recipient_hash, class, force, metadata,
    campaign_id, contact_id, sent_at, delivered_at, read_at, updated_at
)
select
    $1, 'test', 'chatapp', $2 || lpad(g::text, 13, '0'), 'outbound', 'read', 'template', '+551190009003', g, 1, false,
    json_build_object('order', g, 'shop', 'São Paulo'), 'spring sale', ($3::text[])[1 + g % cardinality($3::text[])],
    $4::timestamptz + g * interval '1 millisecond', $4::timestamptz + g * interval '2 milliseconds',
    $4::timestamptz + g * interval '3 milliseconds', $4
from generate_series(1, $5::int) g
"""
# What an export shows, by the key of the table.
_RAW = """
select
    m.id, m.direction, m.recipient, m.status, m.campaign_id, m.contact_id, c.external_id, m.metadata, m.sent_at,
    m.delivered_at, m.read_at, m.failed_at, m.failure_code
from messages m
left join contacts c on c.organization_id = m.organization_id and c.env = m.env and c.id = m.contact_id
where m.organization_id = $1 and m.env = 'test' and m.channel = 'chatapp' and m.id < $2
order by m.id desc
limit $3
"""


async def run(say: Say) -> list[Figure]:
    """In turns; each on one connection, page after page."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        say(f"exports: making {PAGE * PAGES:,} messages")
        database = await service.database()
        made = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
        contact_ids = await make_contacts(database, api.organization_id, CONTACTS)
        prefix = lowest_id(MESSAGE, made)[:-13]
        arguments = (api.organization_id, prefix, contact_ids, made, PAGE * PAGES)
        await database.execute(_MESSAGES, *arguments, timeout=LIMIT)
        await database.execute("vacuum analyze messages", timeout=LIMIT)
        path = (
            f"{service.url}/v2/exports/chatapp?limit={PAGE}"
            f"&from={format_timestamp(made - timedelta(hours=1))}&to={format_timestamp(made + timedelta(hours=1))}"
        )
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {api.token}"}) as session:
            export = _Export(session, path)
            say("exports: the 1,000th page")
            deep = await _deep(export)
            first, last = [], []
            for _ in range(TOGETHER):  # in turns: whatever else the machine does falls on both
                first.append((await export.page(None))[0])
                last.append((await export.page(deep))[0])
            ours, bound = [], []
            for number in range(ROUNDS):
                say(f"exports, round {number + 1} of {ROUNDS}")
                ours.append(await export.rate())
                bound.append(await _raw(database, api.organization_id))
        await database.close()
    ratio = median(last) / median(first)
    return [
        Figure(
            f"export: page {PAGES:,} of {PAGE:,} rows", f"{1000 * median(last):.1f} ms",
            f"{1000 * median(first):.1f} ms, the first", ratio, f"ratio ≤ {MOST_DEEPER:g}", ratio <= MOST_DEEPER,
        ),
        against("– rows, on one connection", ours, bound, "rows/s", LEAST),
    ]  # fmt: skip


class _Export:
    """Pages over HTTP."""

    def __init__(self, session: aiohttp.ClientSession, path: str) -> None:
        self._session = session
        self._path = path

    async def page(self, cursor: str | None) -> tuple[float, str | None, int]:
        """Seconds until all of the page is there, where the next one begins, and its bytes."""
        began = time.perf_counter()
        async with self._session.get(self._path if cursor is None else f"{self._path}&cursor={cursor}") as answer:
            body = await answer.read()
        took = time.perf_counter() - began
        if answer.status != 200:
            raise RuntimeError(f"an export was refused: {body.decode()[:300]}")
        return took, orjson.loads(body[body.rindex(b'"nextCursor":') + 13 : -1]), len(body)

    async def rate(self) -> float:
        """Rows a second, from the first page on."""
        took, cursor = 0.0, None
        for _ in range(TOGETHER):
            seconds, cursor, _ = await self.page(cursor)
            took += seconds
        return TOGETHER * PAGE / took


async def _deep(export: _Export) -> str:
    """The cursor of the last page, to which one comes by all others."""
    cursor = None
    for _ in range(PAGES - 1):
        _, cursor, _ = await export.page(cursor)
    if cursor is None:
        raise RuntimeError("the export ends too early")
    return cursor


async def _raw(database: Connection, organization_id: str) -> float:
    """Rows a second of the same pages, read in this process by the key and not rendered."""
    took, before = 0.0, f"{MESSAGE}~"
    for _ in range(TOGETHER):
        began = time.perf_counter()
        rows = await database.fetch(_RAW, organization_id, before, PAGE)
        took += time.perf_counter() - began
        before = rows[-1]["id"]
    return TOGETHER * PAGE / took
