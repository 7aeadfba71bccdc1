"""Direct sends of e-mail at 200 requests a second: what a caller waits for besides the provider's own time."""

import asyncio
import statistics
import time
from itertools import count
from typing import Any

import aiohttp
import orjson

from bench.harness import Figure, Process, Say, running, scratch
from bench.recado_process import READY, Api, recado

PER_SECOND, SECONDS = 200, 10
WARMED_BY = 200  # requests
MOST_MS = 15.0
COINS = 1_000_000
TEMPLATE = {
    "name": "Order",
    "subject": "Order {{order}}",
    "html": "<table>" + "<tr><td>Hello {{name}}, your order is on its way to {{city}}.</td></tr>" * 60 + "</table>",
    "text": "Hello {{name}}, your order {{order}} is on its way to {{city}}.",
    "variables": [{"name": "order"}, {"name": "name"}, {"name": "city"}],
}
VARIABLES = {"order": "A-1", "name": "Ana", "city": "São Paulo"}
_keys = count()


async def run(say: Say) -> list[Figure]:
    async with scratch() as folder:
        provider = Process(folder, "provider", "-m", "bench.timed_bridge", "--port", "{port}")
        settings = {
            "RECADO_ADAPTER_EMAIL": "bridge",
            "RECADO_BRIDGE_EMAIL_URL": provider.url,
            "RECADO_BRIDGE_EMAIL_TOKEN": "a token of this bench",
            "RECADO_BRIDGE_EMAIL_SECRET": "a secret of this bench",
            "RECADO_EMAIL_PER_SECOND": str(10 * PER_SECOND),
            "RECADO_SSRF_ALLOW_CIDRS": "127.0.0.0/8",
        }
        async with (
            running(provider, "/times"),
            running(recado(folder, **settings), READY) as service,
            Api(service, "live") as api,
        ):
            template_id = await _ready(service, api)
            body = {"templateId": template_id, "variables": VARIABLES}
            figures = []
            for what, more in (("transactional", {"transactional": True}), ("tracked", {"tracking": True})):
                say(f"e-mails sent directly, {what}")
                figures += await _measured(service, provider.url, api.token, {**body, **more}, what)
    return figures


async def _ready(service: Process, api: Api) -> str:
    """A verified sender, coins, and a template; answers its id."""
    await api.call("POST", "/v2/email/senders", {"domain": "example.com"})
    database = await service.database()
    await database.execute("update email_senders set status = 'verified', is_default = true where env = 'live'")
    await database.close()
    await service.command("wallet", "credit", "--env", "live", "--coins", str(COINS), "--reference", "bench", "--json")
    return str((await api.call("POST", "/v2/email/templates", TEMPLATE))["id"])


async def _measured(service: Process, provider: str, token: str, body: dict[str, Any], what: str) -> list[Figure]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}, connector=connector) as session:
        took: dict[str, float] = {}

        async def send(at: float) -> None:
            await asyncio.sleep(at - time.perf_counter())
            since = time.perf_counter()
            key = next(_keys)
            sent = {**body, "to": f"ana{key}@example.net"}
            headers = {"Idempotency-Key": f"bench {key}"}
            async with session.post(f"{service.url}/v2/email/messages", json=sent, headers=headers) as answer:
                told = await answer.json()
                if answer.status != 201:
                    raise RuntimeError(f"{answer.status}: {told}")
            took[told["id"]] = time.perf_counter() - since

        total = WARMED_BY + PER_SECOND * SECONDS
        before, begin = service.cpu(), time.perf_counter()
        async with asyncio.TaskGroup() as sends:
            for number in range(total):
                sends.create_task(send(begin + number / PER_SECOND))
        used = [(after - then) / total * 1_000 for then, after in zip(before, service.cpu(), strict=True)]
        async with session.get(f"{provider}/times") as answer:
            own = orjson.loads(await answer.read())
    measured = list(took)[WARMED_BY:]
    beside = [(took[each] - own[each]) * 1_000 for each in measured]
    median, most = statistics.median(beside), statistics.quantiles(beside, n=20)[-1]
    provider_ms = statistics.quantiles([own[each] * 1_000 for each in measured], n=20)[-1]
    return [
        Figure(
            f"e-mails sent directly at {PER_SECOND}/s, {what}: added to the provider's time, p95",
            f"{most:.1f} ms (median {median:.1f})",
            f"{provider_ms:.1f} ms its own",
            target=f"≤ {MOST_MS:g} ms",
            met=most <= MOST_MS,
        ),
        Figure("– CPU of each, the service and its database", f"{used[0]:.1f} + {used[1]:.1f} ms"),
    ]
