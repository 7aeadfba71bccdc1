"""How fast messages are accepted, durably, one a request: `recado serve` beside a plain service, in turns."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.harness import Figure, Process, Say, against, running, scratch, wrk
from bench.recado_process import READY, Api, recado, write_bodies

SECONDS = 8
ROUNDS = 3
CONNECTIONS = 256
SENDERS = 40
LEAST = 0.6


def plain(folder: Path, *options: str) -> Process:
    """The bound as a process."""
    return Process(folder, "plain", "-m", "bench.plain", "--port", "{port}", "--data-dir", "{data_dir}", *options)


async def run(say: Say) -> list[Figure]:
    """Everything is scheduled a day ahead, so that accepting is all that happens."""
    bound, ours, with_keys = [], [], []
    async with (
        scratch() as folder,
        running(plain(folder), "/ready") as beside,
        running(recado(folder, RECADO_BILLING_ENABLED="false"), READY) as service,
        Api(service) as api,
    ):
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        bodies = write_bodies(folder / "bodies", await api.senders(SENDERS), scheduledAt=tomorrow)

        async def load(url: str, *, keys: bool = False, seconds: int = SECONDS) -> float:
            result = await wrk(url, api.token, bodies, seconds=seconds, connections=CONNECTIONS, keys=keys)
            return result["requests"] / result["seconds"]

        for url in (beside.url, service.url):
            await load(url, seconds=2)
        for number in range(ROUNDS):
            say(f"accept, round {number + 1} of {ROUNDS}")
            bound.append(await load(beside.url))
            ours.append(await load(service.url))
            with_keys.append(await load(service.url, keys=True))
    return [
        against("accept, one message a request", ours, bound, "/s", LEAST),
        against("accept with an Idempotency-Key each", with_keys, bound, "/s", LEAST),
    ]
