"""A campaign that is due at one minute: when its first message leaves, and when its numbers reach their pace.

`BENCH_DUE` sets how many messages fall due, instead of a million. They lie number by number, the worst order.
"""

import asyncio
import os
from datetime import UTC, datetime, timedelta

from bench.harness import Figure, Say, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import LIMIT, Rows

MESSAGES = int(os.environ.get("BENCH_DUE", "1000000"))
NUMBERS, RATE = 40, 20
FIRST, PACE = 1.0, 2.0  # seconds aimed at
SHARE = 0.9  # of the pace of all numbers together, in one second
WATCHED = 8.0  # seconds
_WAITING = "update dispatch set due_at = $1, not_before = $1, reason = 'scheduled' where sender_id = any($2::text[])"


async def run(say: Say) -> list[Figure]:
    """The numbers are not in memory when the minute comes."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        sender = await api.sender("due", RATE)
        database = await service.database()
        rows = Rows(database)
        numbers = await rows.numbers(sender, NUMBERS)
        say(f"{MESSAGES:,} due at one minute: rows")
        async with database.transaction():
            await database.execute("lock table dispatch in share row exclusive mode")
            for sender_id in numbers:  # all of a number before the next one's
                await rows.queued(sender, MESSAGES // NUMBERS, sender_ids=[sender_id])
            due = datetime.now(UTC) + timedelta(seconds=5 + MESSAGES / 20_000)
            await database.execute(_WAITING, due, numbers, timeout=LIMIT)
        say(f"{MESSAGES:,} due at one minute: the minute")
        left = (due - datetime.now(UTC)).total_seconds()
        if left < 0:
            raise RuntimeError("the rows took longer than was thought: the minute is over")
        await asyncio.sleep(left + WATCHED)
        found = await database.fetch(
            "select sent_at from messages where sender_id = any($1::text[]) and sent_at is not null order by sent_at",
            numbers,
        )
        await database.close()
    after = [(row["sent_at"] - due).total_seconds() for row in found]
    first, pace = after[0], pace_reached(after, SHARE * RATE * NUMBERS)
    return [
        Figure(f"{MESSAGES:,} due at one minute: first departure", f"{first:.2f} s", "", None, "< 1 s", first < FIRST),
        Figure(f"– pace of {RATE * NUMBERS}/s reached", f"{pace:.2f} s", "", None, "< 2 s", pace < PACE),
    ]


def pace_reached(after: list[float], a_second: float) -> float:
    """From when on a second holds so many departures; `after`: sorted seconds. The last moment when none does."""
    wanted = int(a_second)
    for place in range(len(after) - wanted):
        if after[place + wanted] - after[place] <= 1.0:
            return after[place]
    return after[-1]
