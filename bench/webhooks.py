"""How fast webhooks are delivered to a local endpoint, beside plain posts; and what a dead one costs the others."""

import asyncio
import statistics
import sys
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.harness import ROOT, Figure, Process, Say, free_port, running, scratch
from bench.recado_process import READY, Api, Sender, recado
from bench.rows import Connection, Rows

EVENTS = 10_000  # of a round, each taken by every subscription
SUBSCRIPTIONS = 4
AT_ONCE = 400  # posts of the bound: as many as the subscriptions may have in flight
ROUNDS = 3
LEAST = 3_000
UNHARMED = 0.95
LIMIT = 60.0  # seconds of a round
WELL, HANGING, REFUSING = "is well", "hangs", "refuses"
TAKEN = "message.read"  # nothing of this kind happens by itself here
_LEFT = "select exists (select from delivery_queue where subscription_id = any($1::text[]))"
_PACE = """
select count(*) / extract(epoch from max(settled_at) - min(settled_at))::float from deliveries
where subscription_id = any($1::text[]) and settled_at >= $2 and status = 'delivered'
"""


def endpoint(folder: Path) -> Process:
    """A customer's server."""
    return Process(folder, "endpoint", "-m", "bench.endpoint", "--port", "{port}")


@dataclass(frozen=True, slots=True)
class Round:
    """Deliveries a second, and the microseconds of processor time that Recado and PostgreSQL took for each."""

    pace: float
    microseconds: float


async def run(say: Say) -> list[Figure]:
    """The posts alone; then in turns: all endpoints well; one more that hangs; one more that refuses connections."""
    bound: list[float] = []
    rounds: dict[str, list[Round]] = {WELL: [], HANGING: [], REFUSING: []}
    async with (
        scratch() as folder,
        running(endpoint(folder), "/") as customer,
        running(recado(folder, RECADO_SSRF_ALLOW_CIDRS="127.0.0.0/8"), READY) as service,
        Api(service) as api,
    ):
        dead = {WELL: None, HANGING: f"{customer.url}/hang", REFUSING: f"http://127.0.0.1:{free_port()}/"}
        database = await service.database()
        sender = await api.sender("webhooks")
        deliveries = Deliveries(service, api, database, sender, f"{customer.url}/hook")
        await deliveries.subscribe()
        say("webhooks, warming up")
        await deliveries.round(None)
        kinds = deque(rounds)
        for number in range(ROUNDS):
            say(f"webhooks, round {number + 1} of {ROUNDS}")
            bound.append(await posts(f"{customer.url}/hook"))
            for kind in kinds:
                rounds[kind].append(await deliveries.round(dead[kind]))
            kinds.rotate(1)  # whatever grows meanwhile weighs on each kind alike
        await database.close()
    pace, micro = _medians(rounds[WELL])
    beside = statistics.median(bound)
    figures = [
        Figure(
            f"webhooks delivered, {SUBSCRIPTIONS} subscriptions",
            f"{pace:,.0f} /s, {micro:.0f} µs each",
            f"{beside:,.0f} /s",
            pace / beside,
            f"≥ {LEAST:,} /s",
            pace >= LEAST,
        )
    ]
    for kind in (HANGING, REFUSING):
        other, other_micro = _medians(rounds[kind])
        figures.append(
            Figure(
                f"– beside one more whose endpoint {kind}",
                f"{other:,.0f} /s, {other_micro:.0f} µs each",
                f"{pace:,.0f} /s, {micro:.0f} µs",
                other / pace,
                f"ratio ≥ {UNHARMED:g}",
                other / pace >= UNHARMED,
            )
        )
    return figures


def _medians(rounds: list[Round]) -> tuple[float, float]:
    return statistics.median(each.pace for each in rounds), statistics.median(each.microseconds for each in rounds)


class Deliveries:
    """Subscriptions of one customer, and rounds of events that all of them take."""

    def __init__(self, service: Process, api: Api, database: Connection, sender: Sender, url: str) -> None:
        self._service = service
        self._api = api
        self._database = database
        self._rows = Rows(database)
        self._sender = sender
        self._url = url
        self._subscriptions: list[str] = []

    async def subscribe(self) -> None:
        """The endpoints that are well."""
        self._subscriptions = [await self._subscription(self._url) for _ in range(SUBSCRIPTIONS)]

    async def round(self, dead: str | None) -> Round:
        """What becomes of those that are well; `dead`: the address of one more subscription, which takes the same."""
        more = [] if dead is None else [await self._subscription(dead)]
        await self._database.execute("vacuum delivery_queue")
        began: datetime = await self._database.fetchval("select clock_timestamp()")
        await self._rows.deliveries(self._sender, EVENTS, [*self._subscriptions, *more], TAKEN)
        before = sum(self._service.cpu())
        await self._leave(self._subscriptions)
        used = sum(self._service.cpu()) - before
        pace: float = await self._database.fetchval(_PACE, self._subscriptions, began)
        for subscription in more:
            await self._api.call("DELETE", f"/webhooks/{subscription}")
        await self._leave(more)  # what it left behind is given up now, and not in the time of the next round
        return Round(pace, used / (EVENTS * SUBSCRIPTIONS) * 1e6)

    async def _leave(self, subscriptions: list[str]) -> None:
        """Wait until nothing of these is queued."""
        give_up = time.monotonic() + LIMIT
        while await self._database.fetchval(_LEFT, subscriptions):
            if time.monotonic() > give_up:
                raise RuntimeError(f"{EVENTS:,} events are not delivered within {LIMIT:.0f} s")
            await asyncio.sleep(0.1)

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
