"""One round of crashes: the real service and the real simulator under live traffic, and everything that dies in it."""

import asyncio
import contextlib
import random
import re
import secrets
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import asyncpg
from tests.crash.traffic import Sender, Traffic
from tests.crash.verdict import Evidence, Kill, wrong_ends
from tests.program import Api, Program, Service
from tests.waiting import until

from recado.cli.simulator.record import read_record
from recado.engine.clock import SystemClock
from recado.storage.embedded import EmbeddedPostgres

SHARES = {
    "slow-down": 0.001,
    "refuse": 0.02,
    "lost": 0.01,
    "error": 0.01,
    "duplicate": 0.1,
    "early": 0.1,
    "shuffle": 0.1,
    "unreferenced": 0.2,
    "undelivered": 0.03,
    "silent": 0.02,
}
PACES = (40, 80, 120, 160)  # messages a second, one number each
RATE = 380.0
FLOW_LIMIT = 60.0  # seconds until messages flow again after a crash
DRAIN_LIMIT = 60.0  # a hanging call ends after 15 s, a parked report is tried again for minutes


class Crash(StrEnum):
    """What dies."""

    SERVICE = "service"
    POSTGRES = "postgres"  # its postmaster alone, as by the kernel for want of memory
    POSTGRES_AT_ONCE = "postgres at once"  # an immediate shutdown
    BOTH = "both"  # as in a power cut


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round leaves behind. `secrets`: what must not stand in any log."""

    evidence: Evidence
    unexpected: list[str]
    logs: list[Path]
    secrets: list[str]


class Round:
    """`folder`: where everything of the round is kept."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        self._random = random.Random(seed)
        self._seed = seed
        self._token, self._secret = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._record = folder / "record.jsonl"
        self._folder = folder
        self._simulator = Program(
            folder,
            "simulator",
            "simulator",
            "--listen",
            "127.0.0.1:0",
            "--record",
            str(self._record),
            "--seed",
            str(seed),
            "--latency-ms",
            "20",
            *(part for name, share in SHARES.items() for part in (f"--{name}-share", str(share))),
            SIMULATOR_SECRET=self._secret,
            SIMULATOR_TOKEN=self._token,
        )
        self._service: Service
        self._kills: list[Kill] = []
        self._private: list[str] = []  # of the numbers: access tokens and phones

    async def run(self, crashes: Sequence[Crash]) -> Outcome:
        """Send, crash, recover, and wait until everything has come to its end."""
        self._simulator.spawn()
        url = await until(self._simulator_url, 30, "the simulator listens")
        self._service = Service(
            self._folder,
            ADAPTER_CHATAPP="bridge",
            BRIDGE_CHATAPP_URL=url,
            BRIDGE_CHATAPP_TOKEN=self._token,
            BRIDGE_CHATAPP_SECRET=self._secret,
            LOG_LEVEL="debug",
        )
        try:
            await self._service.start()
            key = await asyncio.to_thread(self._service.key, "live")
            async with Api(self._service.url, key) as api:
                senders = [await self._sender(api, index, pace) for index, pace in enumerate(PACES)]
                traffic = Traffic(api, senders, rate=RATE, seed=self._seed)
                traffic.start()
                try:
                    for crash in crashes:
                        await self._more(self._random.randint(200, 700))
                        await self._crash(crash)
                    await self._more(300)
                    await traffic.finish(FLOW_LIMIT)
                except BaseException:
                    await traffic.abandon()
                    raise
                evidence = await self._drained(api, traffic, senders)
            postgres_log = self._folder / "postgres.log"
            postgres_log.write_bytes(self._service.cluster().log.read_bytes())  # the original is wiped
            logs = [self._service.log, postgres_log]
            personal = [self._token, self._secret, key, *self._private]
            return Outcome(evidence, traffic.unexpected, logs, personal)
        finally:
            self._simulator.end(signal.SIGKILL)
            await self._service.wipe()

    def _simulator_url(self) -> str | None:
        assert self._simulator.running, f"the simulator ended: {self._simulator.tail()}"
        said = re.search(r"listens on (\S+),", self._simulator.output.read_text())
        return said and said[1]

    async def _sender(self, api: Api, index: int, pace: int) -> Sender:
        """A number in live, and the template that the provider holds for it."""
        token = secrets.token_urlsafe(24)
        number = await api.number(f"line-{index}", per_second=pace, per_day=1_000_000)
        await api.call("PATCH", f"/numbers/{number['id']}", {"accessToken": token})
        self._private += [token, number["displayPhone"][1:]]
        await api.call("POST", "/v2/templates/sync", {"numberId": number["id"]})

        async def approved() -> Any:
            held = await api.call("GET", "/v2/templates", numberId=number["id"], status="approved")
            return next((each for each in held["items"] if each["name"] == "order_update"), None)

        template = await until(approved, 20, "the provider's templates are here", every=0.1)
        return Sender(number["id"], number["phoneNumberId"], template["id"], pace)

    # Crashes --------------------------------------------------------------------------------------------------------

    async def _more(self, count: int) -> None:
        """Come back when the provider has received so many more requests: a moment like any other."""
        wanted = self._received() + count
        await until(lambda: self._received() >= wanted, FLOW_LIMIT, f"{count} more messages were sent", every=0.005)

    def _received(self) -> int:
        return self._record.read_bytes().count(b'{"id"') if self._record.exists() else 0

    async def _crash(self, crash: Crash) -> None:
        match crash:
            case Crash.POSTGRES:
                await self._service.end_postgres(signal.SIGKILL)
            case Crash.POSTGRES_AT_ONCE:
                await self._service.end_postgres(signal.SIGQUIT)
            case Crash.SERVICE:
                at = self._kill()
                self._kills.append(Kill(at, await _claimed(self._service.cluster().connect_arguments)))
                await self._service.start()
            case Crash.BOTH:
                at = self._kill()
                await self._service.end_postgres(signal.SIGKILL)
                server = EmbeddedPostgres(self._service.data_dir, clock=SystemClock())
                try:
                    self._kills.append(Kill(at, await _claimed(await server.start())))
                finally:
                    await server.stop()
                await self._service.start()

    def _kill(self) -> datetime:
        assert self._service.end(signal.SIGKILL) == -signal.SIGKILL, "the service had ended by itself"
        return datetime.now(UTC)

    # The end --------------------------------------------------------------------------------------------------------

    async def _drained(self, api: Api, traffic: Traffic, senders: list[Sender]) -> Evidence:
        """What there is when nothing moves any more, or when it should not."""
        evidence: Evidence

        async def queued() -> int:
            return int((await api.call("GET", "/messages", status="queued", limit=1))["total"])

        async def finished() -> bool:
            nonlocal evidence
            messages = {message["id"]: message async for message in api.pages("/messages")}
            for message_id, message in messages.items():
                if message["status"] == "sending":
                    messages[message_id] = await api.call("GET", f"/messages/{message_id}")
            evidence = Evidence(traffic.letters, messages, read_record(self._record), self._kills, senders)
            return not any(wrong_ends(evidence))

        async def empty() -> bool:
            return await queued() == 0

        await until(empty, DRAIN_LIMIT, "the queue is empty", every=0.2)
        with contextlib.suppress(AssertionError):  # the verdict says better what is wrong
            await until(finished, DRAIN_LIMIT, "every message has ended", every=1.0)
        return evidence


async def _claimed(arguments: dict[str, Any]) -> frozenset[str]:
    """What was claimed and not settled when the service died, once the last commits of the dead have come through."""
    connection = await asyncpg.connect(**arguments)
    try:
        others = "select count(*) from pg_stat_activity where application_name = 'recado' and pid <> pg_backend_pid()"

        async def alone() -> bool:
            return await connection.fetchval(others) == 0

        await until(alone, 10, "the dead service's sessions have ended")
        rows = await connection.fetch(
            "select id from dispatch where claimed_epoch is not null and reason is distinct from 'uncertain'"
        )
        return frozenset(row["id"] for row in rows)
    finally:
        await connection.close()
