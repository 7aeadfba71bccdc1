"""What waiting costs: the memory of idle numbers and of a long queue; and whether held messages delay others."""

import asyncio
import time
from datetime import datetime

from bench.harness import Figure, Say, rss, running, scratch
from bench.recado_process import READY, Api, Sender, recado
from bench.rows import Connection, Rows

NUMBERS = 10_000
USUAL_PACE = 80  # what a number has by default
QUEUED = 1_000_000
MEGABYTE = 1_000_000
SETTLED = 10.0  # seconds until what was started has come to rest
PACE = 200
SECONDS = 15
LEAST = 0.95


async def run(say: Say) -> list[Figure]:
    """Each in a service of its own."""
    return [await idle_numbers(say), *await long_queue(say)]


async def idle_numbers(say: Say) -> Figure:
    """Every number sends one message; then all of them are in memory, idle."""
    say(f"memory, {NUMBERS:,} numbers")
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        sender = await api.sender("first", USUAL_PACE)
        database = await service.database()
        rows = Rows(database)
        numbers = await rows.numbers(sender, NUMBERS)
        before = rss(service.pid)
        began = time.monotonic()
        await rows.queued(sender, NUMBERS, sender_ids=numbers)
        while await _sent(database) < NUMBERS:
            await asyncio.sleep(0.5)
        used = rss(service.pid) - before
        seconds = time.monotonic() - began
        await database.close()
    shown = f"{used / MEGABYTE:.0f} MB ({used / NUMBERS / 1_000:.1f} kB each, started in {seconds:.0f} s)"
    return Figure(f"{NUMBERS:,} idle numbers", shown, "", None, "< 100 MB", used < 100 * MEGABYTE)


async def long_queue(say: Say) -> list[Figure]:
    """A million messages behind one number; then a million of one owner that are held, beside another owner's."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        database = await service.database()
        rows = Rows(database)
        first = await api.sender("long", 1)
        before = rss(service.pid)
        say(f"memory, {QUEUED:,} messages behind one number")
        await rows.queued(first, QUEUED)
        while not await _sent(database, first):
            await asyncio.sleep(0.5)
        await asyncio.sleep(SETTLED)
        used = rss(service.pid) - before
        memory = Figure(
            f"{QUEUED:,} queued behind one number",
            f"{used / MEGABYTE:.0f} MB",
            "",
            None,
            "< 50 MB",
            used < 50 * MEGABYTE,
        )
        say("held messages: another owner's pace alone")
        second = await api.sender("shared", PACE)
        alone = await _pace(database, rows, second)
        held = await _held(api, second)
        say(f"held messages: making {QUEUED:,}")
        await rows.queued(held, QUEUED, owner="btc_held")
        say("held messages: another owner's pace beside them")
        beside = await _pace(database, rows, second)
        await database.close()
    delayed = Figure(
        f"owner beside {QUEUED:,} held ones of another",
        f"{beside:.1f} /s",
        f"{alone:.1f} /s alone",
        beside / alone,
        f"ratio ≥ {LEAST:g}",
        beside / alone >= LEAST,
    )
    return [memory, delayed]


async def _held(api: Api, sender: Sender) -> Sender:
    """The same number with another template, which the provider has paused."""
    template = {
        "numberId": sender.number_id,
        "name": "paused",
        "language": "en-US",
        "category": "utility",
        "components": [{"type": "BODY", "payload": {"text": "Hello {{1}}, wait.", "example": ["Ana"]}}],
    }
    template_id = (await api.call("POST", "/v2/templates", template))["id"]
    for status in ("approved", "paused"):
        await api.call("POST", f"/v2/sandbox/templates/{template_id}", {"status": status})
    return Sender(sender.organization_id, sender.number_id, template_id)


async def _pace(database: Connection, rows: Rows, sender: Sender) -> float:
    """Give the number what it may send in the time measured; the pace between its first and its last departure."""
    count = PACE * SECONDS
    began: datetime = await database.fetchval("select clock_timestamp()")
    await rows.queued(sender, count)
    give_up = time.monotonic() + 10 * SECONDS
    while True:
        [(sent, seconds)] = await database.fetch(
            "select count(*), extract(epoch from max(sent_at) - min(sent_at))::float from messages"
            " where sender_id = $1 and sent_at > $2",
            sender.number_id,
            began,
        )
        if sent == count or time.monotonic() > give_up:
            return float((sent - 1) / seconds)
        await asyncio.sleep(0.5)


async def _sent(database: Connection, sender: Sender | None = None) -> int:
    """Messages that have left, of all numbers or of one, as the counters have it."""
    sender_id = None if sender is None else sender.number_id
    count: int = await database.fetchval(
        "select coalesce(sum(sent), 0)::int from sender_minutes where $1::text is null or sender_id = $1", sender_id
    )
    return count
