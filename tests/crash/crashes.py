"""A round of crashes: the service, the provider, the endpoint and PostgreSQL die under live traffic."""

import random
import signal
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.crash.evidence import Kill
from tests.crash.round import Round
from tests.crash.rows import calls_of_the_dead, claimed_by_the_dead
from tests.crash.stage import SimulatedStage
from tests.crash.transports import TRANSPORTS, Protocol

from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres


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


async def noted_kill(at: datetime, arguments: Mapping[str, Any], data_dir: Path) -> tuple[int, Kill]:
    """How much was claimed at the service's death. In doubt is what it had noted as begun: the rest leaves again."""
    claimed = await claimed_by_the_dead(arguments)
    noted = calls_of_the_dead(data_dir)
    in_doubt = {
        message_id: since
        for message_id, since in claimed.items()
        if any(each.began_at(message_id, since) is not None for each in noted)
    }
    return len(claimed), Kill(at, in_doubt)


class CrashRound(Round[Crash]):
    """`short`: without what takes long to come to its end."""

    def __init__(self, folder: Path, *, seed: int, protocol: Protocol = "bridge", short: bool = False) -> None:
        usual = TRANSPORTS[protocol].shares
        shares = {**usual, "lost": 0.0} if short else usual  # half of the lost answers are waited for, 15 s
        self._stage = SimulatedStage(folder, seed=seed, protocol=protocol, shares=shares)
        super().__init__(folder, self._stage, seed=seed, large=not short)
        self.rate = TRANSPORTS[protocol].rate
        self.story.append(protocol)

    async def cause(self, fault: Crash) -> None:
        stage = self._stage
        match fault:
            case Crash.PROVIDER:
                self._kill_provider()
                await stage.start_others()
            case Crash.ENDPOINT:
                stage.endpoint.end(signal.SIGKILL)
                await stage.start_others()
            case Crash.SERVICE:
                at = self._kill_service()
                await self._note_kill(at, stage.service.cluster().connect_arguments)
                await stage.service.start()
            case Crash.POWER | Crash.EVERYTHING:
                if fault is Crash.EVERYTHING:
                    self._kill_provider()
                    stage.endpoint.end(signal.SIGKILL)
                at = self._kill_service()
                await self._end_postgres(signal.SIGKILL)
                server = EmbeddedPostgres(stage.service.data_dir, clock=SystemClock())
                try:
                    await self._note_kill(at, await server.start())
                finally:
                    await server.stop()
                await stage.start()
            case _:
                await self._end_postgres(POSTGRES_ENDS[fault])

    def _kill_service(self) -> datetime:
        assert self._stage.service.end(signal.SIGKILL) == -signal.SIGKILL, "the service had ended by itself"
        return datetime.now(UTC)

    async def _note_kill(self, at: datetime, arguments: Mapping[str, Any]) -> None:
        claimed, kill = await noted_kill(at, arguments, self._stage.service.data_dir)
        self.tell(f"{claimed} messages were claimed, the calls of {len(kill.claimed)} had begun")
        self.kills.append(kill)

    async def _end_postgres(self, number: signal.Signals) -> None:
        self.database_deaths.append(datetime.now(UTC))
        await self._stage.service.end_postgres(number)

    def _kill_provider(self) -> None:
        assert self._stage.provider.end(signal.SIGKILL) == -signal.SIGKILL, "the provider had ended by itself"
        self.provider_kills.append(datetime.now(UTC))
