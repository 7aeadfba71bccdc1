"""How fast messages go all the way: accepted, paced over 40 numbers, claimed, handed over, recorded as sent."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

from bench.accept import plain
from bench.harness import Figure, Process, Say, against, running, scratch, wrk
from bench.recado_process import READY, Api, recado, write_bodies

WARM_UP = 4
SECONDS = 20
ROUNDS = 2
CONNECTIONS = 256
SENDERS = 40
LEAST = 0.6
NO_RECEIPTS, TWO_RECEIPTS = "9003", "0001"


async def run(say: Say) -> list[Figure]:
    """The same load on both, in turns; the figure is what was sent within the window, by the rows."""
    bound, ours, accepted = [], [], []
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        bodies = write_bodies(folder / "bodies", await api.senders(SENDERS))
        async with running(plain(folder, "--send"), "/ready") as beside:
            for number in range(ROUNDS):
                say(f"end to end, round {number + 1} of {ROUNDS}: bound")
                bound.append((await sustained(beside, api.token, bodies))[1])
                say(f"end to end, round {number + 1} of {ROUNDS}: recado")
                taken, sent = await sustained(service, api.token, bodies)
                accepted.append(taken)
                ours.append(sent)
        say("end to end, with two receipts a message")
        with_receipts = (await sustained(service, api.token, bodies, suffix=TWO_RECEIPTS))[1]
    return [
        against("end to end, one message a request: sent", ours, bound, "/s", LEAST),
        against("– accepted meanwhile", accepted, bound, "/s", None),
        against("– sent, with two receipts each", [with_receipts], bound, "/s", None),
    ]


async def sustained(process: Process, token: str, bodies: Path, *, suffix: str = NO_RECEIPTS) -> tuple[float, float]:
    """Accepted and sent a second, by the rows; comes back when everything has left."""
    database = await process.database()
    try:
        load = asyncio.create_task(
            wrk(process.url, token, bodies, seconds=WARM_UP + SECONDS + 1, connections=CONNECTIONS, suffix=suffix)
        )
        await asyncio.sleep(WARM_UP)
        begin: datetime = await database.fetchval("select clock_timestamp()")
        end = begin + timedelta(seconds=SECONDS)
        result = await load
        while await database.fetchval("select exists (select from messages where status in ('queued', 'sending'))"):
            await asyncio.sleep(0.2)
        sent: int = await database.fetchval(
            "select count(*) from messages where sent_at >= $1 and sent_at < $2", begin, end
        )
        return result["requests"] / result["seconds"], sent / SECONDS
    finally:
        await database.close()
