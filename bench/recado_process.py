"""`recado serve` under test: the real process, and the numbers and templates that a load sends through."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from bench.harness import Process
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.embedded.embedded import EmbeddedPostgres

READY = "/readyz"
PER_DAY = 10_000_000
AHEAD = 2  # months that the service makes ahead

months = 27
"""Tables of messages that each installation has: as one that is two years old (`python -m bench --months N`)."""
workers = 1
"""Processes of each service that take requests (`python -m bench --workers N`)."""


class Recado(Process):
    """The service, whose installation is older than it is."""

    async def start(self, ready: str) -> None:
        """As any process; before its first start the months of the past are made."""
        if not self.data_dir.exists():
            await self.command("keys", "create", "--env", "test", "--json")  # makes the installation
            await self._grow_old()
        await super().start(ready)

    async def _grow_old(self) -> None:
        clock = SystemClock()
        postgres = EmbeddedPostgres(self.data_dir, clock=clock)
        database = Database(await postgres.start(), clock=clock)
        try:
            await database.start()
            now = clock.now()
            for back in range(months - AHEAD - 1):
                month = now.year * 12 + now.month - 1 - back
                await ensure_partitions(database, datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC), months_ahead=0)
        finally:
            await database.stop()
            await postgres.stop()


def recado(folder: Path, **settings: str) -> Process:
    """The service, unless told otherwise with a sandbox that answers at once."""
    serve = ("-m", "recado", "serve", "--listen", "127.0.0.1:{port}")
    usual = {"RECADO_SANDBOX_TIME_SCALE": "0", "RECADO_WORKERS": str(workers)}
    return Recado(folder, "recado", *serve, **usual | settings)


@dataclass(frozen=True, slots=True)
class Sender:
    """A connected number with an approved template of one variable."""

    organization_id: str
    number_id: str
    template_id: str


class Api:
    """A caller with an unlimited key of an environment; an asynchronous context."""

    def __init__(self, process: Process, env: str = "test") -> None:
        self._process = process
        self._env = env
        self.token = ""
        self.organization_id = ""

    async def __aenter__(self) -> "Api":
        made = await self._process.command("keys", "create", "--env", self._env, "--unlimited", "--json")
        self.token = made["token"]
        self.organization_id = made["organizationId"]
        self._session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {self.token}"})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        headers = None if key is None else {"Idempotency-Key": key}
        async with self._session.request(method, self._process.url + path, json=body, headers=headers) as answer:
            content = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path} answered {answer.status}: {content.decode()}")
            return orjson.loads(content or b"null")

    async def sender(self, name: str, per_second: int = 1_000, category: str = "utility") -> Sender:
        """Make a number at this pace, and a template of this category."""
        new = {
            "phoneNumberId": f"bench-{name}",
            "businessAccountId": "bench",
            "displayPhone": f"+1555{abs(hash(name)) % 10_000_000:07}",
            "rateLimit": {"perSecond": per_second, "perDay": PER_DAY},
        }
        number_id = (await self.call("POST", "/numbers", new))["id"]
        state = {"status": "connected", "messagingTier": "unlimited", "qualityRating": "green"}
        await self.call("POST", f"/v2/sandbox/numbers/{number_id}", state)
        template = {
            "numberId": number_id,
            "name": "bench",
            "language": "en-US",
            "category": category,
            "components": [{"type": "BODY", "payload": {"text": "Hello {{1}}, here is news.", "example": ["Ana"]}}],
        }
        template_id = (await self.call("POST", "/v2/templates", template))["id"]
        await self.call("POST", f"/v2/sandbox/templates/{template_id}", {"status": "approved"})
        return Sender(self.organization_id, number_id, template_id)

    async def live_sender(self, name: str, per_second: int = 1_000) -> Sender:
        """A number of the live environment, and a template that the bridge has approved (`bench/bridge.py`)."""
        new = {
            "phoneNumberId": f"bench-{name}",
            "businessAccountId": "bench",
            "displayPhone": f"+1555{abs(hash(name)) % 10_000_000:07}",
            "rateLimit": {"perSecond": per_second, "perDay": PER_DAY},
        }
        number = await self.call("POST", "/numbers", new)
        while number["status"] != "available":
            await asyncio.sleep(0.1)
            number = await self.call("GET", f"/numbers/{number['id']}")
        await self.call("POST", f"/numbers/{number['id']}/connect")
        await self.call("POST", "/v2/templates/sync", {"numberId": number["id"]})
        held: list[Any] = []
        while not held:
            await asyncio.sleep(0.1)
            query = f"?numberId={number['id']}&status=approved&category=utility"
            held = (await self.call("GET", f"/v2/templates{query}"))["items"]
        return Sender(self.organization_id, number["id"], held[0]["id"])

    async def senders(self, count: int, prefix: str = "", **how: Any) -> list[Sender]:
        return list(await asyncio.gather(*(self.sender(f"{prefix}{position}", **how) for position in range(count))))


def body(number_id: str, template_id: str, **more: str) -> dict[str, Any]:
    """The message of every benchmark; PHONE stands for its recipient."""
    return {
        "numberId": number_id,
        "to": "PHONE",
        "type": "template",
        "templateId": template_id,
        "templateVars": ["Ana"],
        "metadata": {"order": "A1"},
        **more,
    }


def bulk_body(number_id: str, template_id: str) -> dict[str, Any]:
    """The same message to a hundred recipients, for whom PHONES stands."""
    shared = {name: value for name, value in body(number_id, template_id).items() if name != "to"}
    return {**shared, "recipients": "PHONES"}


def write_bodies(path: Path, senders: list[Sender], *, bulk: bool = False, **more: str) -> Path:
    """The bodies of a load, one a line."""
    bodies = [
        bulk_body(sender.number_id, sender.template_id) if bulk else body(sender.number_id, sender.template_id, **more)
        for sender in senders
    ]
    path.write_text("\n".join(orjson.dumps(each).decode() for each in bodies) + "\n")
    return path
