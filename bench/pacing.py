"""How exactly a number keeps its pace: two numbers with more to send than they may, by the clock of departure."""

import asyncio
from datetime import datetime, timedelta

from bench.harness import Figure, Say, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import Rows

SECONDS = 60
WARM_UP = 3
RATES = (80, 1_000)
ERROR = 0.01


async def run(say: Say) -> list[Figure]:
    """Both at once, in one service."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        senders = [await api.sender(f"at-{rate}", rate) for rate in RATES]
        database = await service.database()
        rows = Rows(database)
        for sender, rate in zip(senders, RATES, strict=True):
            await rows.queued(sender, rate * (SECONDS + 4 * WARM_UP))
        while await database.fetchval("select count(*) from sender_minutes") < len(RATES):
            await asyncio.sleep(0.1)  # a message of each has left
        say(f"pacing, {SECONDS} seconds")
        await asyncio.sleep(WARM_UP)
        begin: datetime = await database.fetchval("select clock_timestamp()")
        await asyncio.sleep(SECONDS + WARM_UP)
        figures = []
        for sender, rate in zip(senders, RATES, strict=True):
            found = await database.fetch(
                "select sent_at from messages where sender_id = $1 and sent_at >= $2 and sent_at < $3 order by sent_at",
                sender.number_id,
                begin,
                begin + timedelta(seconds=SECONDS),
            )
            moments = [row["sent_at"].timestamp() for row in found]
            error, peak = abs(len(moments) / SECONDS - rate) / rate, busiest_second(moments)
            figures += [
                Figure(f"pace of {rate:,}/s: error of the mean", f"{error:.2%}", "", None, "< 1 %", error < ERROR),
                Figure(f"– most in a sliding second, of {rate:,}", f"{peak:,}", "", None, f"≤ {rate:,}", peak <= rate),
            ]
        await database.close()
    return figures


def busiest_second(moments: list[float]) -> int:
    """The most departures within a second that is open at its end; `moments` are sorted."""
    most = start = 0
    for end, moment in enumerate(moments):
        while moment - moments[start] >= 1.0 - 1e-6:  # rows hold microseconds
            start += 1
        most = max(most, end - start + 1)
    return most
