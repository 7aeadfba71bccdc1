"""What a thousand webhook subscriptions cost while nothing happens: processor time, Recado's and PostgreSQL's."""

import asyncio

from bench.harness import Figure, Process, Say, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import Rows

SUBSCRIPTIONS = 1_000
SECONDS = 20
SETTLED = 5.0  # seconds until what was started has come to rest
MOST = 0.01  # of a core


async def run(say: Say) -> list[Figure]:
    """The same idle service, first without them."""
    async with (
        scratch() as folder,
        running(recado(folder, RECADO_SSRF_ALLOW_CIDRS="127.0.0.0/8"), READY) as service,
        Api(service) as api,
    ):
        database = await service.database()
        new = {"url": "http://127.0.0.1:9/", "events": ["*"]}
        first = (await api.call("POST", "/webhooks", new))["id"]
        say("idle, without subscriptions")
        before = await _used(service)
        await Rows(database).subscriptions(first, SUBSCRIPTIONS)
        say(f"idle, {SUBSCRIPTIONS:,} subscriptions")
        more = await _used(service) - before
        await database.close()
    return [
        Figure(
            f"{SUBSCRIPTIONS:,} idle subscriptions",
            f"{max(more, 0.0) * 60_000:,.0f} ms a minute",
            f"{before * 60_000:,.0f} ms a minute without",
            None,
            f"< {MOST:.0%} of a core",
            more < MOST,
        )
    ]


async def _used(service: Process) -> float:
    """The part of a core that is used."""
    await asyncio.sleep(SETTLED)
    before = sum(service.cpu())
    await asyncio.sleep(SECONDS)
    return (sum(service.cpu()) - before) / SECONDS
