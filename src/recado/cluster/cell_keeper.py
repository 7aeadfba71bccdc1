"""Keeps the service of a cell running on the machine where it is, and says where it answers.

The first life that answers takes the numbers over from whoever has them: the cell is to be here now. Later ones do
not: a process that lost the numbers to another machine, which this one cannot see, must not take them back from it.
"""

import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from recado.cluster.cell_service import NotHere
from recado.engine.backoff import Backoff

LOOK_EVERY: Final = 0.2  # seconds, at its process
ASK_EVERY: Final = 1.0  # seconds, whether it answers
SILENT_FOR: Final = 10.0  # seconds without an answer, after which it is killed: it stands still
COMES_UP_WITHIN: Final = 120.0  # seconds
GIVES_UP_AFTER: Final = 300.0  # seconds without an answer: another machine may have what this one lacks
WELL_AFTER: Final = 30.0  # seconds of answers, after which a failure is the first again
AGAIN: Final = Backoff(first=0.5, ceiling=15.0)

ENDS_WITHIN: Final = 45.0
"""Seconds that a service has to end in order, which takes it 20 at most (C32), and its launcher a while longer."""

STARTS: Final = "its service starts"
STOPS: Final = "its service was told to stop"

log = structlog.get_logger(__name__)


class Begins(Protocol):
    """What is kept running."""

    @property
    def url(self) -> str: ...

    def begin(self, *, take_over: bool) -> "subprocess.Popen[bytes]": ...

    def answers(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """`url`: where the service answers; None: it does not, and `trouble` may say why.

    `life`: which try to begin it this is, 1 for the first, 0 before that; `ended`: it was told to end, and has.
    """

    url: str | None
    trouble: str | None = None
    life: int = 0
    ended: bool = False


class CellKeeper:
    """Runs on a thread of its own (`run`); `place`, `restart` and `end` are for others. These only say what shall be: a
    service that stops takes its time, and one that fails waits its pause first.
    """

    def __init__(
        self,
        cell: str,
        service: Begins,
        *,
        monotonic: Callable[[], float],
        wait: Callable[[float], object],
        chance: random.Random,
    ) -> None:
        """`wait`: for so many seconds."""
        self._cell = cell
        self._service = service
        self._monotonic = monotonic
        self._wait = wait
        self._chance = chance
        self._take_over = True
        self._life = 0
        self._restarts = False
        self._ends = False
        self.place = KeptPlace(None, STARTS)

    def restart(self) -> None:
        """Its service stops in order and begins again."""
        self._restarts = True

    def end(self) -> None:
        """Its service stops in order, and stays so: `run` comes back, and `place` says `ended`."""
        self._ends = True

    def run(self) -> None:
        """Begin it, and again whenever it ends, until it has not answered for too long."""
        failures = 0
        up = self._monotonic()
        try:
            while not self._ends:
                self._restarts = False
                self._life += 1
                began = self._monotonic()
                try:
                    process = self._service.begin(take_over=self._take_over)
                except (NotHere, OSError) as error:
                    self._fail(str(error) if isinstance(error, NotHere) else type(error).__name__)
                else:
                    log.info("service_begun", cell=self._cell, pid=process.pid)
                    answered = self._watch(process, began)
                    if answered is not None:
                        up = self._monotonic()
                        if up - answered >= WELL_AFTER:
                            failures = 0
                if self._ends or self._restarts:
                    continue
                if self._monotonic() - up >= GIVES_UP_AFTER:
                    log.error("cell_given_up", cell=self._cell, seconds=round(self._monotonic() - up, 1))
                    return
                failures += 1
                self._wait(AGAIN.delay(failures, self._chance))
        finally:
            self.place = KeptPlace(None, life=self._life, ended=self._ends)

    def _watch(self, process: "subprocess.Popen[bytes]", began: float) -> float | None:
        """Come back when it has ended; since when it answered."""
        answered_first: float | None = None
        last, ask_at = began, began
        while (status := process.poll()) is None:
            if self._ends or self._restarts:
                self._stop(process)
                return answered_first
            self._wait(LOOK_EVERY)
            now = self._monotonic()
            if now < ask_at:
                continue
            if self._service.answers():
                last = now
                if answered_first is None:
                    answered_first = now
                    self._take_over = False
                    self.place = KeptPlace(self._service.url, life=self._life)
                    log.info("service_answers", cell=self._cell, url=self._service.url, seconds=round(now - began, 1))
            elif now - last >= (COMES_UP_WITHIN if answered_first is None else SILENT_FOR):
                log.error("service_silent", cell=self._cell, pid=process.pid, seconds=round(now - last, 1))
                process.kill()
                status = process.wait()
                break
            ask_at = self._monotonic() + ASK_EVERY
        self._fail(f"its service ended with status {status}", status=status)
        return answered_first

    def _stop(self, process: "subprocess.Popen[bytes]") -> None:
        """Come back when it has ended in order, or was killed as it did not. That is no failure of it."""
        self.place = KeptPlace(None, STOPS, self._life)
        log.info("service_told_to_stop", cell=self._cell, pid=process.pid)
        process.terminate()
        told = self._monotonic()
        while (status := process.poll()) is None:
            if self._monotonic() - told >= ENDS_WITHIN:
                log.error("service_did_not_stop", cell=self._cell, pid=process.pid)
                process.kill()
                process.wait()
                return
            self._wait(LOOK_EVERY)
        log.info("service_stopped", cell=self._cell, pid=process.pid, status=status)

    def _fail(self, trouble: str, **more: object) -> None:
        self.place = KeptPlace(None, trouble, self._life)
        log.warning("service_ended" if more else "service_not_begun", cell=self._cell, reason=trouble, **more)
