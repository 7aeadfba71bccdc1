"""One round of crashes: the real service, provider and endpoint under live traffic, and everything that dies in it."""

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from tests.crash.evidence import Evidence, Kill
from tests.crash.rows import claimed_by_the_dead, read_rows
from tests.crash.stage import SHARES, Protocol, Stage
from tests.crash.traffic import Sender, Traffic
from tests.crash.verdict import violations, wrong_ends
from tests.crash.verdict_batches import batch_violations
from tests.crash.verdict_events import untold
from tests.privacy import found_in_logs
from tests.program import Api
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.embedded import EmbeddedPostgres

PACES = (30, 60, 90, 120)  # messages a second, one number each
RATE = 170.0  # requests; a batch among them is many messages
ROUND_LIMIT = 180.0  # seconds; a round takes 25 to 40 on a machine that has little else to do
FLOW_LIMIT = 60.0  # seconds until messages flow again after a crash
DRAIN_LIMIT = 60.0  # a hanging call ends after 15 s, a parked report is tried again for minutes


class Crash(StrEnum):
    """What dies."""

    SERVICE = "service"
    PROVIDER = "provider"
    ENDPOINT = "endpoint"
    POSTGRES = "postgres"  # its postmaster alone, as by the kernel for want of memory
    POSTGRES_AT_ONCE = "postgres at once"  # an immediate shutdown
    POSTGRES_FAST = "postgres fast"  # an orderly restart: sessions are cut off, nothing is recovered
    POWER = "power"  # the service and PostgreSQL: a power cut
    EVERYTHING = "everything"


# What no death explains, in the log of the service or of PostgreSQL.
SLIPS = (
    "child failed",
    "claim_failed",
    "message_set_aside",
    "callback_set_aside",
    "callback_malformed",
    "provider_raised",
    "outcome_not_recorded",
    "delivery_not_made",
    "wallet_holds_less_than_it_should",
    "Traceback",
    "deadlock detected",
)
POSTGRES_ENDS = {
    Crash.POSTGRES: signal.SIGKILL,
    Crash.POSTGRES_AT_ONCE: signal.SIGQUIT,
    Crash.POSTGRES_FAST: signal.SIGINT,
}


def drawn(seed: int) -> list[Crash]:
    """Two kills of the service, one of the provider, a restart of PostgreSQL and two of anything, in any order."""
    draw = random.Random(seed)
    crashes = [Crash.SERVICE, Crash.SERVICE, Crash.PROVIDER, draw.choice([*POSTGRES_ENDS])]
    crashes += draw.choices(list(Crash), k=2)
    draw.shuffle(crashes)
    return crashes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round leaves behind. `secrets`: what must not stand in any log."""

    evidence: Evidence
    unexpected: list[str]
    logs: list[Path]
    secrets: list[str]
    story: list[str]


class Round:
    """`folder`: where everything of the round is kept. `short`: without what takes long to come to its end."""

    def __init__(self, folder: Path, *, seed: int, protocol: Protocol = "bridge", short: bool = False) -> None:
        self._random = random.Random(seed)
        self._seed = seed
        self._folder = folder
        self._short = short
        shares = {**SHARES, "lost": 0.0} if short else SHARES  # half of the lost answers are waited for, 15 s
        self._stage = Stage(folder, seed=seed, protocol=protocol, shares=shares)
        self._kills: list[Kill] = []
        self._provider_kills: list[datetime] = []
        self._database_deaths: list[datetime] = []
        self._begun = time.monotonic()
        self.story = [f"seed {seed}, {protocol}, in {folder}"]

    async def run(self, crashes: Sequence[Crash]) -> Outcome:
        """Send, crash, recover, and wait until everything has come to its end."""
        stage = self._stage
        try:
            async with asyncio.timeout(ROUND_LIMIT):
                await stage.start()
                key = await asyncio.to_thread(stage.service.key, "live")
                stage.secrets.append(key)
                await asyncio.to_thread(stage.credit)
                async with Api(stage.service.url, key) as api:
                    await stage.subscribe(api)
                    senders = await asyncio.gather(
                        *(stage.sender(api, index, pace) for index, pace in enumerate(PACES))
                    )
                    traffic = Traffic(api, senders, rate=RATE, seed=self._seed, large=not self._short)
                    evidence = await self._sent_through(api, traffic, senders, crashes)
            postgres_log = self._folder / "postgres.log"
            postgres_log.write_bytes(stage.service.cluster().log.read_bytes())  # the original is wiped
            logs = [stage.service.log, postgres_log]
            outcome = Outcome(evidence, traffic.unexpected, logs, stage.secrets, self.story)
            (self._folder / "report.txt").write_text("\n".join(report(outcome) or self.story))
            return outcome
        except BaseException as error:
            error.add_note("\n".join(self.story))
            raise
        finally:
            await stage.wipe()

    async def _sent_through(
        self, api: Api, traffic: Traffic, senders: list[Sender], crashes: Sequence[Crash]
    ) -> Evidence:
        self._tell("traffic begins")
        traffic.start()
        try:
            for crash in crashes:
                await self._more(self._random.randint(100, 350))
                self._tell(f"{crash}: {self._stage.received()} requests so far")
                await self._crash(crash)
            await self._more(200)
            self._tell("the last crash is over")
            await traffic.finish(FLOW_LIMIT)
        except BaseException:
            self.story += (await traffic.abandon())[:10]
            raise
        self._tell(f"{len(traffic.letters)} messages and {len(traffic.mailings)} batches were accepted")
        evidence = await self._drained(api, traffic, senders)
        self._tell("the end")
        return evidence

    def _tell(self, what: str) -> None:
        self.story.append(f"{time.monotonic() - self._begun:5.1f} s: {what}")

    # Crashes --------------------------------------------------------------------------------------------------------

    async def _more(self, count: int) -> None:
        """Come back when the provider has received so many more requests: a moment like any other."""
        wanted = self._stage.received() + count
        await until(lambda: self._stage.received() >= wanted, FLOW_LIMIT, f"{count} more were sent", every=0.005)

    async def _crash(self, crash: Crash) -> None:
        stage = self._stage
        match crash:
            case Crash.PROVIDER:
                self._kill_provider()
                await stage.start_others()
            case Crash.ENDPOINT:
                stage.endpoint.end(signal.SIGKILL)
                await stage.start_others()
            case Crash.SERVICE:
                at = self._kill_service()
                self._kills.append(Kill(at, await claimed_by_the_dead(stage.service.cluster().connect_arguments)))
                await stage.service.start()
            case Crash.POWER | Crash.EVERYTHING:
                if crash is Crash.EVERYTHING:
                    self._kill_provider()
                    stage.endpoint.end(signal.SIGKILL)
                at = self._kill_service()
                await self._end_postgres(signal.SIGKILL)
                server = EmbeddedPostgres(stage.service.data_dir, clock=SystemClock())
                try:
                    self._kills.append(Kill(at, await claimed_by_the_dead(await server.start())))
                finally:
                    await server.stop()
                await stage.start()
            case _:
                await self._end_postgres(POSTGRES_ENDS[crash])

    def _kill_service(self) -> datetime:
        assert self._stage.service.end(signal.SIGKILL) == -signal.SIGKILL, "the service had ended by itself"
        return datetime.now(UTC)

    async def _end_postgres(self, number: signal.Signals) -> None:
        self._database_deaths.append(datetime.now(UTC))
        await self._stage.service.end_postgres(number)

    def _kill_provider(self) -> None:
        assert self._stage.provider.end(signal.SIGKILL) == -signal.SIGKILL, "the provider had ended by itself"
        self._provider_kills.append(datetime.now(UTC))

    # The end --------------------------------------------------------------------------------------------------------

    async def _drained(self, api: Api, traffic: Traffic, senders: list[Sender]) -> Evidence:
        """What there is when nothing moves any more, or when it should not."""
        stage = self._stage
        evidence = Evidence(traffic.letters, {}, (), self._kills, senders)

        async def empty() -> bool:
            return bool((await api.call("GET", "/messages", status="queued", limit=1))["total"] == 0)

        async def ended() -> bool:
            nonlocal evidence
            messages = {message["id"]: message async for message in api.pages("/messages")}
            for message_id, message in messages.items():
                if message["status"] == "sending":
                    messages[message_id] = await api.call("GET", f"/messages/{message_id}")
            evidence = Evidence(
                traffic.letters,
                messages,
                stage.requests(),
                self._kills,
                senders,
                provider_kills=self._provider_kills,
                rows=await read_rows(stage.service.cluster().connect_arguments),
                arrivals=stage.arrivals(),
                mailings=traffic.mailings,
                database_deaths=self._database_deaths,
            )
            # What waits for its next attempt is waited for as well, as long as there is time.
            waits = evidence.rows.untold
            return not any((*wrong_ends(evidence), *untold(evidence), *waits, *batch_violations(evidence)))

        await until(empty, DRAIN_LIMIT, "the queue is empty", every=0.2)
        self._tell("the queue is empty")
        with contextlib.suppress(AssertionError):  # the verdict says better what is wrong
            await until(ended, DRAIN_LIMIT, "every message has ended, and every event was told", every=1.0)
        return evidence


def report(outcome: Outcome) -> list[str]:
    """Everything that is wrong, after what happened; empty when nothing is."""
    wrong = [*violations(outcome.evidence), *outcome.unexpected, *found_in_logs(outcome.logs, SLIPS)]
    if not wrong:
        return []
    return [*outcome.story, f"{len(wrong)} violations:", *wrong[:40]]
