"""How fast webhooks are delivered to a local endpoint, beside plain posts; and what a dead one costs the others."""

import asyncio
import statistics
import sys
import time
from datetime import datetime
from pathlib import Path

from bench.harness import ROOT, Figure, Process, Say, against, free_port, running, scratch
from bench.recado_process import READY, Api, Sender, recado
from bench.rows import Connection, Rows

EVENTS = 10_000  # of a round, each taken by every subscription
SUBSCRIPTIONS = 4
AT_ONCE = 400  # posts of the bound: as many as the subscriptions may have in flight
ROUNDS = 3
LEAST = 3_000
UNHARMED = 0.95
LIMIT = 60.0  # seconds of a round
TAKEN = "message.read"  # nothing of this kind happens by itself here
_LEFT = "select exists (select from delivery_queue where subscription_id = any($1::text[]))"
_PACE = """
select count(*) / extract(epoch from max(settled_at) - min(settled_at))::float from deliveries
where subscription_id = any($1::text[]) and settled_at >= $2 and status = 'delivered'
"""


def endpoint(folder: Path) -> Process:
    """A customer's server."""
    return Process(folder, "endpoint", "-m", "bench.endpoint", "--port", "{port}")


async def run(say: Say) -> list[Figure]:
    """In turns: the posts alone; all endpoints well; one more that hangs; one more that refuses every connection."""
    bound, well, hanging, refusing = [], [], [], []
    async with (
        scratch() as folder,
        running(endpoint(folder), "/") as customer,
        running(recado(folder, RECADO_SSRF_ALLOW_CIDRS="127.0.0.0/8"), READY) as service,
        Api(service) as api,
    ):
        database = await service.database()
        deliveries = Deliveries(api, database, await api.sender("webhooks"), f"{customer.url}/hook")
        await deliveries.subscribe()
        say("webhooks, warming up")
        await deliveries.round()
        for number in range(ROUNDS):
            say(f"webhooks, round {number + 1} of {ROUNDS}")
            bound.append(await posts(f"{customer.url}/hook"))
            well.append(await deliveries.round())
            hanging.append(await deliveries.round_beside(f"{customer.url}/hang"))
            refusing.append(await deliveries.round_beside(f"http://127.0.0.1:{free_port()}/"))
        await database.close()
    pace, beside = statistics.median(well), statistics.median(bound)
    return [
        Figure(
            f"webhooks delivered, {SUBSCRIPTIONS} subscriptions",
            f"{pace:,.0f} /s",
            f"{beside:,.0f} /s",
            pace / beside,
            f"≥ {LEAST:,} /s",
            pace >= LEAST,
        ),
        against("– beside another whose endpoint hangs", hanging, well, "/s", UNHARMED),
        against("– beside another whose endpoint refuses", refusing, well, "/s", UNHARMED),
    ]


class Deliveries:
    """Subscriptions of one customer, and rounds of events that all of them take."""

    def __init__(self, api: Api, database: Connection, sender: Sender, url: str) -> None:
        self._api = api
        self._database = database
        self._rows = Rows(database)
        self._sender = sender
        self._url = url
        self._subscriptions: list[str] = []

    async def subscribe(self) -> None:
        """The endpoints that are well."""
        self._subscriptions = [await self._subscription(self._url) for _ in range(SUBSCRIPTIONS)]

    async def round(self, *dead: str) -> float:
        """Deliveries a second of those that are well; `dead`: subscriptions that take the same events."""
        await self._database.execute("vacuum delivery_queue")
        began: datetime = await self._database.fetchval("select clock_timestamp()")
        await self._rows.deliveries(self._sender, EVENTS, [*self._subscriptions, *dead], TAKEN)
        give_up = time.monotonic() + LIMIT
        while await self._database.fetchval(_LEFT, self._subscriptions):
            if time.monotonic() > give_up:
                raise RuntimeError(f"{EVENTS:,} events are not delivered within {LIMIT:.0f} s")
            await asyncio.sleep(0.1)
        pace: float = await self._database.fetchval(_PACE, self._subscriptions, began)
        return pace

    async def round_beside(self, url: str) -> float:
        """A round with one more subscription, to an endpoint that is dead."""
        dead = await self._subscription(url)
        try:
            return await self.round(dead)
        finally:
            await self._api.call("DELETE", f"/webhooks/{dead}")

    async def _subscription(self, url: str) -> str:
        made = await self._api.call("POST", "/webhooks", {"url": url, "events": [TAKEN]})
        return str(made["id"])


async def posts(url: str) -> float:
    """The bound, a second."""
    count = EVENTS * SUBSCRIPTIONS // 2
    command = [sys.executable, "-m", "bench.poster", "--url", url, "--count", str(count), "--at-once", str(AT_ONCE)]
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    return float(output)
