"""How fast messages go all the way: accepted, paced over 40 numbers, claimed, handed over, recorded as sent."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from bench.accept import plain
from bench.harness import Figure, Process, Say, against, running, scratch, wrk
from bench.recado_process import READY, Api, recado, write_bodies
from bench.webhooks import endpoint

WARM_UP = 4
SECONDS = 20
ROUNDS = 2
CONNECTIONS = 256
BULK_SECONDS = 10
BULK_CONNECTIONS, RECIPIENTS = 8, 100
SENDERS = 40
LEAST, LEAST_THROUGH_BRIDGE, LEAST_WITH_ALL, LEAST_BULK = 0.6, 0.6, 0.4, 2.0
NO_RECEIPTS, TWO_RECEIPTS = "9003", "0001"
NO_WALLET = {"RECADO_BILLING_ENABLED": "false"}


async def run(say: Say) -> list[Figure]:
    """The same load on both, in turns; the figure is what was sent within the window, by the rows."""
    bound, ours, accepted, paid, told, bulk = [], [], [], [], [], []
    posting, through = [], []
    async with scratch() as folder, running(endpoint(folder), "/") as customer:
        async with sending(folder / "plain", **NO_WALLET) as (service, api, bodies, many):
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
            for number in range(ROUNDS):
                say(f"end to end, {RECIPIENTS} recipients a request, round {number + 1} of {ROUNDS}")
                bulk.append((await sustained(service, api.token, many, bulk=True))[1])
        async with sending(folder / "paid", RECADO_SSRF_ALLOW_CIDRS="127.0.0.0/8") as (service, api, bodies, _):
            say("end to end, with a wallet")
            paid.append((await sustained(service, api.token, bodies))[1])
            await api.call("POST", "/webhooks", {"url": f"{customer.url}/hook", "events": ["message.sent"]})
            for number in range(ROUNDS):
                say(f"end to end, with a wallet and a subscription, round {number + 1} of {ROUNDS}")
                told.append((await sustained(service, api.token, bodies))[1])
        async with bridged(folder) as (service, api, bodies, beside):
            for number in range(ROUNDS):
                say(f"end to end, through a bridge, round {number + 1} of {ROUNDS}: bound")
                posting.append((await sustained(beside, api.token, bodies))[1])
                say(f"end to end, through a bridge, round {number + 1} of {ROUNDS}: recado")
                through.append((await sustained(service, api.token, bodies))[1])
    return [
        against("end to end, one message a request: sent", ours, bound, "/s", LEAST),
        against("end to end, through a bridge: sent", through, posting, "/s", LEAST_THROUGH_BRIDGE),
        against("– accepted meanwhile", accepted, bound, "/s", None),
        against("– sent, with two receipts each", [with_receipts], bound, "/s", None),
        against("– sent, with a wallet", paid, bound, "/s", None),
        against("– sent, with a wallet and one subscription", told, bound, "/s", LEAST_WITH_ALL),
        against(f"end to end, {RECIPIENTS} recipients a request: sent", bulk, bound, "/s", LEAST_BULK),
    ]


@asynccontextmanager
async def sending(folder: Path, **settings: str) -> AsyncIterator[tuple[Process, Api, Path, Path]]:
    """A service with its senders; the bodies of single requests, and of bulk requests."""
    folder.mkdir()
    async with running(recado(folder, **settings), READY) as service, Api(service) as api:
        senders = await api.senders(SENDERS)
        single, bulk = write_bodies(folder / "bodies", senders), write_bodies(folder / "bulk", senders, bulk=True)
        yield service, api, single, bulk


@asynccontextmanager
async def bridged(folder: Path) -> AsyncIterator[tuple[Process, Api, Path, Process]]:
    """A service whose live environment sends through a bridge, and beside it the plain one, which posts there too."""
    (folder / "bridged").mkdir()
    bridge = Process(folder, "bridge", "-m", "bench.bridge", "--port", "{port}")
    adapter = {
        "RECADO_ADAPTER_CHATAPP": "bridge",
        "RECADO_BRIDGE_CHATAPP_URL": bridge.url,
        "RECADO_BRIDGE_CHATAPP_TOKEN": secrets.token_urlsafe(24),
        "RECADO_BRIDGE_CHATAPP_SECRET": secrets.token_urlsafe(24),
    }
    async with (
        running(bridge, "/"),
        running(recado(folder / "bridged", **NO_WALLET, **adapter), READY) as service,
        Api(service, "live") as api,
        running(plain(folder / "bridged", "--send", "--provider", f"{bridge.url}/send"), "/ready") as beside,
    ):
        senders = await asyncio.gather(*(api.live_sender(str(position)) for position in range(SENDERS)))
        yield service, api, write_bodies(folder / "bridged" / "bodies", senders), beside


async def sustained(
    process: Process, token: str, bodies: Path, *, suffix: str = NO_RECEIPTS, bulk: bool = False
) -> tuple[float, float]:
    """Accepted and sent a second, by the rows; comes back when everything has left."""
    result, sent = await under_load(process, token, bodies, SECONDS, suffix=suffix, bulk=bulk)
    return result["requests"] / result["seconds"], sent


async def under_load(
    process: Process, token: str, bodies: Path, seconds: int, *, suffix: str = NO_RECEIPTS, bulk: bool = False
) -> tuple[dict[str, float], float]:
    """What the load saw (`wrk`), and what was sent a second, by the rows; comes back when everything has left."""
    database = await process.database()
    connections = BULK_CONNECTIONS if bulk else CONNECTIONS
    seconds = BULK_SECONDS if bulk else seconds
    try:
        load = asyncio.create_task(
            wrk(process.url, token, bodies, seconds=WARM_UP + seconds + 1, connections=connections, suffix=suffix)
        )
        await asyncio.sleep(WARM_UP)
        begin: datetime = await database.fetchval("select clock_timestamp()")
        end = begin + timedelta(seconds=seconds)
        result = await load
        while await database.fetchval("select exists (select from dispatch)"):
            await asyncio.sleep(0.2)
        sent: int = await database.fetchval(
            "select count(*) from messages where sent_at >= $1 and sent_at < $2", begin, end
        )
        return result, sent / seconds
    finally:
        await database.close()
