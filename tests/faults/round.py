"""A round of faults: the database, the service, its provider and the endpoint misbehave in turn under live traffic."""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from tests.crash.round import Outcome, Round
from tests.faults.providers import UNANSWERED, Mode
from tests.faults.proxy import FaultProxy
from tests.faults.stage import FaultStage
from tests.program import Program
from tests.waiting import until

TROUBLED_SENDS = (6, 25)  # five in a row open the circuit of a number, and there are four numbers
SHORT_FAULTS, LONG_FAULTS = 5, 9


class Trouble(Enum):
    """What goes wrong but for the provider's answers."""

    STALL = "the database stalls for 3 s"
    BLACK_HOLE = "the way to the database swallows everything for 5 s"
    RESET = "every connection to the database is reset"
    PAUSE = "the service is paused for 3 s"
    ENDPOINT = "the endpoint hangs for 4 s"


LAST_TOO_LONG = UNANSWERED - {Mode.RESET, Mode.NOT_HTTP}
"""What ends with the call's time-out of 15 s."""
MODES = [mode for mode in Mode if mode not in (Mode.WELL, Mode.SLOW_HUGE, Mode.FORGED)]
"""What can be made good again: a pause of six hours cannot, nor can a report that is never believed."""


def drawn(seed: int, *, short: bool) -> list[Enum]:
    """Every trouble once, and some modes of the provider, in any order. `short`: without calls that time out."""
    draw = random.Random(seed)
    modes = [mode for mode in MODES if not short or mode not in LAST_TOO_LONG]
    faults: list[Enum] = [*Trouble, *draw.sample(modes, SHORT_FAULTS if short else LONG_FAULTS)]
    draw.shuffle(faults)
    return faults


class FaultRound(Round[Enum]):
    """`server`: how to connect to the database past `proxy`."""

    rate = 80.0
    pause: ClassVar[tuple[int, int]] = (50, 150)

    def __init__(self, folder: Path, *, seed: int, server: Mapping[str, Any], proxy: FaultProxy) -> None:
        self._stage = FaultStage(folder, seed=seed, server=server, proxy=proxy)
        self._proxy = proxy
        super().__init__(folder, self._stage, seed=seed, large=False)

    async def run(self, faults: list[Enum]) -> Outcome:  # type: ignore[override]
        async with self._stage.bridge:
            return await super().run(faults)

    async def cause(self, fault: Enum) -> None:
        match fault:
            case Mode():
                await self._troubled(fault)
            case Trouble.STALL:
                self._proxy.stall()
                await asyncio.sleep(3)  # how long a fault lasts is what it is
                self._proxy.restore()
            case Trouble.BLACK_HOLE:
                self._proxy.black_hole()
                await asyncio.sleep(5)
                self._proxy.restore()
            case Trouble.RESET:
                self._proxy.reset()
            case Trouble.PAUSE:
                await _paused(self._stage.service, 3)
            case Trouble.ENDPOINT:
                await _paused(self._stage.endpoint, 4)

    async def _troubled(self, mode: Mode) -> None:
        bridge, reported = self._stage.bridge, self.random.random() < 0.5
        sends = self.random.randint(*TROUBLED_SENDS)
        self.tell(f"{sends} sends, {'reported' if reported else 'never reported'}")
        bridge.trouble(mode, sends, reported=reported)
        with contextlib.suppress(AssertionError):
            await until(lambda: not bridge.troubled, "so many have come")
        bridge.heal()


async def _paused(program: Program, seconds: float) -> None:
    os.kill(program.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        os.kill(program.pid, signal.SIGCONT)
