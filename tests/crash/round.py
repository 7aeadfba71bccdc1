"""One round under live traffic: the service, a provider and an endpoint, what goes wrong, and what is left."""

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from tests.crash.evidence import Evidence, Kill
from tests.crash.rows import read_rows
from tests.crash.stage import Stage
from tests.crash.traffic import Sender, Traffic
from tests.crash.verdict import violations, wrong_ends
from tests.crash.verdict_batches import batch_violations
from tests.crash.verdict_events import untold
from tests.privacy import found_in_logs
from tests.program import Api
from tests.waiting import until

ROUND_LIMIT = 900.0  # seconds; a round takes 25 to 40 on a machine that has little else to do
FLOW_LIMIT = 120.0  # seconds until messages flow again after a fault
DRAIN_LIMIT = 120.0  # a hanging call ends after 15 s, a parked report is tried again for minutes

Fault = TypeVar("Fault", bound=Enum)
"""What goes wrong in a round."""

# What no fault explains, in the log of the service or of PostgreSQL.
SLIPS = (
    "child failed",
    "claim_failed",
    "departure_failed",
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round leaves behind. `secrets`: what must not stand in any log."""

    evidence: Evidence
    unexpected: list[str]
    logs: list[Path]
    secrets: list[str]
    story: list[str]


class Round(Generic[Fault]):
    """`folder`: where everything of the round is kept. `large`: with a batch that is made in several blocks."""

    rate: float = 170.0  # requests a second; a batch among them is many messages
    pause: ClassVar[tuple[int, int]] = (100, 350)  # requests of the provider between two faults

    def __init__(self, folder: Path, stage: Stage, *, seed: int, large: bool) -> None:
        self.random = random.Random(seed)
        self.kills: list[Kill] = []
        self.provider_kills: list[datetime] = []
        self.database_deaths: list[datetime] = []
        self.stops: list[datetime] = []
        self._seed = seed
        self._folder = folder
        self._large = large
        self._stage = stage
        self._begun = time.monotonic()
        self.story = [f"seed {seed}, in {folder}"]

    async def cause(self, fault: Fault) -> None:
        """Let it happen, and come back when whatever died lives again."""
        raise NotImplementedError

    async def run(self, faults: Sequence[Fault]) -> Outcome:
        """Send, cause the faults, recover, and wait until everything has come to its end."""
        stage = self._stage
        try:
            async with asyncio.timeout(ROUND_LIMIT):
                await stage.start()
                key = await asyncio.to_thread(stage.service.key, "live")
                stage.secrets.append(key)
                await asyncio.to_thread(stage.credit)
                async with Api(stage.service.url, key) as api:
                    await stage.subscribe(api)
                    senders = await stage.senders(api)
                    traffic = Traffic(api, senders, stage.mail, rate=self.rate, seed=self._seed, large=self._large)
                    evidence = await self._sent_through(api, traffic, senders, faults)
            logs = [stage.service.log]
            if original := stage.postgres_log():
                logs.append(self._folder / "postgres.log")
                logs[1].write_bytes(original.read_bytes())  # the original is wiped
            outcome = Outcome(evidence, traffic.unexpected, logs, stage.secrets, self.story)
            (self._folder / "report.txt").write_text("\n".join(report(outcome) or self.story))
            return outcome
        except BaseException as error:
            error.add_note("\n".join(self.story))
            raise
        finally:
            await stage.wipe()

    async def _sent_through(
        self, api: Api, traffic: Traffic, senders: list[Sender], faults: Sequence[Fault]
    ) -> Evidence:
        self.tell("traffic begins")
        traffic.start()
        try:
            for fault in faults:
                await self._more(self.random.randint(*self.pause))
                self.tell(f"{fault.value}: {self._stage.received()} requests so far")
                await self.cause(fault)
            await self._more(200)
            self.tell("the last fault is over")
            await traffic.finish(FLOW_LIMIT)
        except BaseException:
            self.story += (await traffic.abandon())[:10]
            raise
        self.tell(f"{len(traffic.letters)} messages and {len(traffic.mailings)} batches were accepted")
        evidence = await self._drained(api, traffic, senders)
        self.tell("the end")
        return evidence

    def tell(self, what: str) -> None:
        self.story.append(f"{time.monotonic() - self._begun:5.1f} s: {what}")

    async def _more(self, count: int) -> None:
        """Come back when the provider has received so many more requests: a moment like any other."""
        wanted = self._stage.received() + count
        await until(lambda: self._stage.received() >= wanted, f"{count} more were sent", limit=FLOW_LIMIT, every=0.005)

    # The end --------------------------------------------------------------------------------------------------------

    async def _drained(self, api: Api, traffic: Traffic, senders: list[Sender]) -> Evidence:
        """What there is when nothing moves any more, or when it should not."""
        stage = self._stage
        evidence = Evidence(traffic.letters, {}, (), self.kills, senders)

        async def empty() -> bool:
            return bool((await api.call("GET", "/messages", status="queued", limit=1))["total"] == 0)

        async def ended() -> bool:
            nonlocal evidence
            messages = {message["id"]: message async for message in api.pages("/messages")}
            for message_id, message in messages.items():
                if message["status"] == "sending":
                    messages[message_id] = await api.call("GET", f"/messages/{message_id}")
            requests, submits = stage.evidence_of(messages)
            evidence = Evidence(
                traffic.letters,
                messages,
                requests,
                self.kills,
                senders,
                provider_kills=[*self.provider_kills, *stage.broken_off()],
                rows=await read_rows(stage.database),
                arrivals=stage.arrivals(),
                mailings=traffic.mailings,
                database_deaths=self.database_deaths,
                submits=submits,
                at_once=stage.at_once,
                stops=self.stops,
            )
            # What waits for its next attempt is waited for as well, as long as there is time.
            waits = evidence.rows.untold
            return not any((*wrong_ends(evidence), *untold(evidence), *waits, *batch_violations(evidence)))

        await until(empty, "the queue is empty", limit=DRAIN_LIMIT, every=0.2)
        self.tell("the queue is empty")
        with contextlib.suppress(AssertionError):  # the verdict says better what is wrong
            await until(ended, "every message has ended, and every event was told", limit=DRAIN_LIMIT, every=1.0)
        return evidence


def report(outcome: Outcome) -> list[str]:
    """Everything that is wrong, after what happened; empty when nothing is."""
    wrong = [*violations(outcome.evidence), *outcome.unexpected, *found_in_logs(outcome.logs, SLIPS)]
    if not wrong:
        return []
    return [*outcome.story, f"{len(wrong)} violations:", *wrong[:40]]
