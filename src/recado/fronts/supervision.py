"""The fronts of this process: begins them, tells them what was changed, replaces them, and ends them.

A change holds at all of them before it is answered (`reached`): each has followed it, or may answer nothing any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Final

import structlog

from recado.domain.core.clock import Clock
from recado.domain.messages.changes import Change
from recado.engine.periodic import Periodic
from recado.fronts import frames, gates, place
from recado.fronts.place import Around, Begin, FrontDoor, FrontPlace, Hearing, Processes, Sharing

DRAIN_LIMIT: Final = 6.5  # seconds

log = structlog.get_logger(__name__)


class FrontsFailed(Exception):
    """No front came up; the text is one line for the operator."""


class Fronts:
    """A service (`start`, `stop`)."""

    def __init__(
        self,
        count: int,
        *,
        door: FrontDoor,
        hearing: Hearing,
        begin: Begin,
        processes: Processes,
        inherited: Sequence[int],
        clock: Clock,
        elapsed: Callable[[], float],
        random: Random,
        shares: Sharing | None = None,
    ) -> None:
        """`begin`: says how each is begun, `processes` makes it; `inherited`: descriptors that all of them get.
        `elapsed`: the machine's seconds, which its processes read alike. `random`: spreads restarts. `shares`: where
        fronts send, too.
        """
        self._around = Around(door, hearing, begin, processes, inherited, clock, elapsed, random, shares)
        self._places = [FrontPlace(number, self._around) for number in range(1, count + 1)]
        self._beside: FrontPlace | None = None  # while one is replaced: the next one, or the one before
        self._beats = Periodic("beats", frames.BEATS_EVERY, self._beat, clock)
        self._started = False
        self._reloading: asyncio.Task[None] | None = None
        self._reload_again = False

    @property
    def wanted(self) -> int:
        """How many fronts should take requests."""
        return len(self._places)

    @property
    def restarts(self) -> int:
        """How often a front was begun again."""
        return self._around.restarts

    @property
    def dropped(self) -> int:
        """How many frames never went, in either direction."""
        return self._around.dropped

    @property
    def running(self) -> int:
        """How many fronts take requests."""
        return sum(each.ready for each in self._places)

    async def start(self) -> None:
        """Begin all, and wait until they listen. Raises FrontsFailed."""
        await self._beats.start()
        for each in self._places:
            each.begin()
        try:
            async with asyncio.timeout(place.READY_LIMIT):
                await asyncio.gather(*(each.listens.wait() for each in self._places))
        except TimeoutError:
            raise FrontsFailed("a process of --workers did not come up: the log above says why") from None
        self._started = True

    def reload(self) -> None:
        """Replace each front by a new one, one after the other, so that no client notices.

        While that is under way it follows, once: some of the new ones may have begun before what they are to take in.
        """
        if not self._started:
            log.info("reload_nothing_to_do")  # they are new, or about to end
        elif self._reloading is not None and not self._reloading.done():
            self._reload_again = True
            log.info("reload_follows")
        else:
            self._reloading = asyncio.get_running_loop().create_task(self._replace_all(), name="reload")

    async def stop(self) -> None:
        """Have them finish what is under way, and end; safe to call twice. Calls to providers end by themselves."""
        self._started = False
        if self._reloading is not None:
            self._reloading.cancel()
        try:
            async with asyncio.timeout(DRAIN_LIMIT):
                await asyncio.gather(*(each.drain() for each in self._all))
        except TimeoutError:
            log.warning("fronts_end_slowly")
        for each in self._all:
            if not each.ends_calls:
                each.end()
        await self._beats.stop()

    async def calls_end(self) -> None:
        """After the stop: until calls to providers are over, too. Who waits no longer ends them."""
        try:
            await asyncio.gather(*(each.gone() for each in self._all))
        finally:
            for each in self._all:
                each.end()

    def changed(self, change: Change) -> None:
        """Tell all fronts, where they have copies of it."""
        said = frames.said_of(change, to_senders=self._around.shares is not None)
        if said is not None:
            for each in self._all:
                each.say_changed(said)

    def gate(self, said: str) -> None:
        """Tell all fronts what closes gates of messages; a request waits for it as for a change."""
        for part in gates.parts(said):
            for each in self._all:
                each.say_changed([*part], frames.GATE)

    def clock_believed(self) -> None:
        """Have all fronts believe what the machine's clock shows, as this process does."""
        for each in self._all:
            each.clock_believed()

    async def claims_settled(self) -> None:
        """Until each claim that a front has begun so far is committed, or has failed, or its front is no more."""
        await asyncio.gather(*(each.claims_settled() for each in self._all))

    def reached(self) -> Awaitable[object] | None:
        """What to wait for until all that was changed so far holds everywhere; None: it does."""
        open_ = [each for each in self._all if each.owes]
        return asyncio.gather(*(each.settled() for each in open_)) if open_ else None

    @property
    def _all(self) -> "list[FrontPlace]":
        """All that have, or may soon have, a process."""
        return self._places if self._beside is None else [*self._places, self._beside]

    async def _beat(self) -> None:
        for each in self._all:
            each.beat()

    async def _replace_all(self) -> None:
        self._reload_again = True
        while self._reload_again:
            self._reload_again = False
            await self._replace_each()

    async def _replace_each(self) -> None:
        began = self._around.elapsed()
        log.info("reload_begun", fronts=self.wanted)
        for index in range(self.wanted):
            error = None
            try:
                replaced = await self._replace(index)
            except Exception as failure:  # noqa: BLE001 - nobody awaits a reload
                replaced, error = False, type(failure).__qualname__
                self._end_beside()
            if not replaced:
                # The front that has the place goes on, as do those behind it.
                log.error("reload_stopped", front=index + 1, error=error)
                return
        log.info("reload_ended", seconds=round(self._around.elapsed() - began, 1))

    async def _replace(self, index: int) -> bool:
        """The new one takes connections before the old one takes no more. False: it did not come up."""
        new = self._beside = FrontPlace(index + 1, self._around, stays=False)
        new.begin()
        if not await new.came_up():
            self._end_beside()
            return False
        new.stay()
        old, self._places[index] = self._places[index], new
        self._beside = old
        await old.leave()
        self._beside = None
        return True

    def _end_beside(self) -> None:
        """The place is another's, or stays that of the front before."""
        if self._beside is not None:
            self._beside.end()
            self._beside = None
