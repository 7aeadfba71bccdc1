"""How fast messages are accepted, and contacts made, durably, one a request, beside a plain service, in turns."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from bench.harness import Figure, Process, Say, against, running, scratch, wrk
from bench.recado_process import READY, Api, recado, write_bodies

SECONDS = 8
ROUNDS = 3
CONNECTIONS = 256
SENDERS = 40
LEAST, LEAST_CONTACTS = 0.6, 0.5


CONTACT = {"phone": "PHONE", "name": "Ana Souza", "tags": ["vip"], "attributes": {"city": "Recife", "age": 41}}


def plain(folder: Path, *options: str) -> Process:
    """The bound as a process."""
    return Process(folder, "plain", "-m", "bench.plain", "--port", "{port}", "--data-dir", "{data_dir}", *options)


async def run(say: Say) -> list[Figure]:
    """Everything is scheduled a day ahead, so that accepting is all that happens."""
    bound, ours, with_keys, contacts = [], [], [], []
    async with (
        scratch() as folder,
        running(plain(folder), "/ready") as beside,
        running(recado(folder, RECADO_BILLING_ENABLED="false"), READY) as service,
        Api(service) as api,
    ):
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        bodies = write_bodies(folder / "bodies", await api.senders(SENDERS), scheduledAt=tomorrow)

        people = folder / "people"
        people.write_bytes(orjson.dumps(CONTACT) + b"\n")

        async def load(url: str, load: Path = bodies, seconds: int = SECONDS, **more: Any) -> float:
            result = await wrk(url, api.token, load, seconds=seconds, connections=CONNECTIONS, **more)
            return result["requests"] / result["seconds"]

        for url in (beside.url, service.url):
            await load(url, seconds=2)
        for number in range(ROUNDS):
            say(f"accept, round {number + 1} of {ROUNDS}")
            bound.append(await load(beside.url))
            ours.append(await load(service.url))
            with_keys.append(await load(service.url, keys=True))
        for number in range(ROUNDS):  # last: the vacuum of what they make goes on beside whatever comes after
            say(f"contacts, round {number + 1} of {ROUNDS}")
            contacts.append(await load(service.url, people, suffix=f"{number:04}"))  # nobody comes twice
    return [
        against("accept, one message a request", ours, bound, "/s", LEAST),
        against("accept with an Idempotency-Key each", with_keys, bound, "/s", LEAST),
        against("contacts created, one a request", contacts, bound, "/s", LEAST_CONTACTS),
    ]
