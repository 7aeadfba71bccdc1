"""The owner's side of numbers that other processes send for: gives them shards, tells them hints, takes shards back.

Each has an epoch beside the owner's and goes by its lease (C14.5.7). One that ended has begun no call since then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

import structlog

from recado.actors.dispatch import hint_frames
from recado.actors.dispatch.lane_messages import LaneSituation
from recado.actors.dispatch.lanes import Lanes
from recado.actors.dispatch.places import Places, nowhere
from recado.actors.dispatch.rescuer import Rescuer
from recado.actors.dispatch.waits import Waits
from recado.actors.ops import live_number
from recado.actors.ops.live_number import LiveNumber
from recado.actors.ops.process_figures import ProcessFigures
from recado.actors.ops.provider_states import ProviderState, accounts_of
from recado.domain.core.clock import Clock
from recado.domain.dispatch.gates import Hold
from recado.domain.dispatch.leases import TOLERANCE, WINDOW
from recado.domain.dispatch.placement import OWNERS_SHARD, SHARDS, shard_of
from recado.domain.senders.sender import SenderKey
from recado.engine.turns import in_pieces
from recado.fronts import asks, frames, held
from recado.fronts.asks import Asks
from recado.storage.dispatch.begun_calls import BegunCalls, SeenCalls
from recado.storage.dispatch.ownership import Ownership
from recado.storage.ops.scope import Scope

AGAIN_AFTER: Final = 0.5  # seconds
READ_AT_ONCE: Final = 250  # numbers of an answer, in a turn of the event loop

log = structlog.get_logger(__name__)

Say = Callable[[str, Any], bool]
"""Gives a frame to a process; False where it is dropped."""
Room = Callable[[], Awaitable[None]]
"""Comes back when little of what was given is unread, or the process is gone."""


@dataclass(slots=True, eq=False)
class _Worker:
    """A process that has an epoch beside ours. `prepared`: it can send. `has`: it has its shards, or is about to."""

    epoch: int
    say: Say
    room: Room
    asks: Asks = field(default_factory=Asks)
    prepared: bool = False
    has: bool = False


class Shares:
    """Told of each process that begins, can send, and ends, until its `stop`.

    Each has a number, and the shards of that number. Where two have the same for a while, because one replaces the
    other, the one that came first has them until it ends: they go from one to the other then, past our own lanes.
    """

    def __init__(
        self,
        processes: int,
        *,
        ownership: Ownership,
        lanes: Lanes,
        places: Places,
        opens: list[float],
        waits: Waits,
        rescuer: Rescuer,
        begun: BegunCalls,
        clock: Clock,
        elapsed: Callable[[], float],
        snapshot: Callable[[], Iterator[tuple[str, bool]]],
    ) -> None:
        """`processes`: with the owner, which share the numbers evenly. `opens`: by shard, of this process,
        as `waits`. `begun`: its calls, beside whose file those of the others have theirs.
        `snapshot`: says all that closes the gates of messages now, in parts; with each whether more follow.
        """
        self._snapshot = snapshot
        self._ownership = ownership
        self._lanes = lanes
        self._places = places
        self._opens = opens
        self._waits = waits
        self._rescuer = rescuer
        self._clock = clock
        self._elapsed = elapsed
        self._shards = [tuple(range(number, SHARDS, processes)) for number in range(processes)]
        # Of each number, by process id, as they came.
        self._workers: list[dict[int, _Worker]] = [{} for _ in range(processes)]
        self._turns = [asyncio.Lock() for _ in range(processes)]
        self._begun = begun
        self._calls: dict[int, SeenCalls] = {}  # by epoch, of those prepared, until what they had in hand is sorted out
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def sends_until(self) -> float:
        """By the machine's seconds: nobody begins a call later than the owner may."""
        return self._ownership.lease.until

    async def stop(self) -> None:
        """Give nothing more; what is being taken back is the next owner's."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def ready(self, number: int, pid: int, say: Say, room: Room) -> None:
        """A process takes requests: it is to prepare to send."""
        self._do(number, self._join(number, pid, say, room))

    def sends(self, number: int, pid: int) -> None:
        """It is prepared."""
        worker = self._workers[number].get(pid)
        if worker is not None:
            worker.prepared = True
            if (seen := self._begun.beside(worker.epoch).seen()) is not None:
                self._calls[worker.epoch] = seen
            self._do(number, self._give(number))

    def ended(self, number: int, pid: int) -> None:
        """It is no more."""
        worker = self._workers[number].pop(pid, None)
        if worker is None or self._stopping:
            return
        if worker.has:
            self._places.put(self._shards[number], nowhere)
        self._do(number, self._take_back(number, worker, self._clock.monotonic() + WINDOW + TOLERANCE))

    def answered(self, number: int, pid: int, said: list[Any]) -> None:
        """It answers what it was asked."""
        worker = self._workers[number].get(pid)
        if worker is not None:
            worker.asks.answered(said)

    @property
    def unrecorded(self) -> int:
        """Calls of other processes whose outcomes are not recorded, by their files of them."""
        return sum(map(len, self._calls.values()))

    def called_at(self, message_id: str) -> datetime | None:
        """When another process began the call for a message whose outcome is not recorded yet, by its file of them."""
        moments = (each.moment_of(message_id) for each in self._calls.values())
        return next((each for each in moments if each is not None), None)

    def waited(self, number: int, pid: int, said: list[Any]) -> None:
        """It ends in order, and says what messages of its numbers waited for."""
        part, more = said
        held.add(self._waits, part, more)
        worker = self._workers[number].get(pid)
        if worker is not None and not more:
            worker.say(frames.TAKEN, None)

    async def situation(self, sender: SenderKey) -> LaneSituation | None:
        """What holds a sender of another process now; None where it does not answer in time."""
        return live_number.situation_of(await self._ask(sender, asks.SITUATION))

    async def trouble(self, sender: SenderKey) -> Hold | None:
        """What keeps it from reaching its provider."""
        return live_number.hold_of(await self._ask(sender, asks.TROUBLE))

    async def number(self, sender: SenderKey) -> LiveNumber | None:
        """What another process has in memory of a number; None: no other has it, or does not answer in time."""
        if self._places.away(sender) is None:
            return None
        said = await self._ask(sender, asks.NUMBER)
        return None if said is None else live_number.live_of(said)

    async def lane(self, sender: SenderKey) -> str | None:
        """The kind of its actor in another process; None: it has none there."""
        if self._places.away(sender) is None:
            return None
        kind: str | None = await self._ask(sender, asks.LANE)
        return kind

    async def restart_lane(self, sender: SenderKey) -> None:
        """Have another process restart it."""
        await self._ask(sender, asks.RESTART)

    async def numbers(self) -> dict[SenderKey, LiveNumber]:
        """What the other processes have in memory."""
        found: dict[SenderKey, LiveNumber] = {}
        async for some in in_pieces([row for part in await self._all_say(asks.NUMBERS) for row in part], READ_AT_ONCE):
            found.update((SenderKey(*key), live_number.live_of(said)) for key, said in some)
        return found

    async def lanes(self, scope: Scope, most: int | None) -> list[list[Any]]:
        """Lines of their trees of lanes."""
        parts = await self._all_say(asks.LANES, [scope.organization_id, scope.env, most])
        return [said for part in parts for said in part]

    async def accounts(self, scope: Scope, most: int) -> list[list[ProviderState]]:
        """What each of them has of the accounts of numbers."""
        about = [scope.organization_id, scope.env, most // len(self._workers)]
        return [[accounts_of(said) for said in parts] for parts in await self._ask_all(asks.ACCOUNTS, about)]

    async def figures(self) -> list[ProcessFigures]:
        """What each of them has in memory, counted."""
        return [ProcessFigures.said_by(part) for part in await self._all_say(asks.FIGURES)]

    async def _all_say(self, what: str, about: Any = None) -> list[Any]:
        """All parts of all answers."""
        return [part for parts in await self._ask_all(what, about) for part in parts]

    async def _ask_all(self, what: str, about: Any) -> list[list[Any]]:
        """The parts of each answer that came in time and says something."""
        having = [each for workers in self._workers for each in workers.values() if each.has]
        answers = await asyncio.gather(*(each.asks.ask(each.say, what, about) for each in having))
        return [said for parts in answers if (said := [part for part in parts if part is not None])]

    async def _ask(self, sender: SenderKey, what: str) -> Any:
        shard = shard_of(sender)
        having = self._workers[shard % len(self._workers)].values() if shard != OWNERS_SHARD else ()
        worker = next((each for each in having if each.has), None)
        parts = [] if worker is None else await worker.asks.ask(worker.say, what, list(sender))
        return parts[0] if parts else None

    async def _join(self, number: int, pid: int, say: Say, room: Room) -> None:
        taken = await self._ownership.join(pid)
        if taken is None:
            return  # the next look of this process finds that another has the numbers
        self._workers[number][pid] = _Worker(taken.epoch, say, room)
        for part in self._snapshot():  # what is changed from now on is said after the first part
            if not say(frames.GATES, part):
                if pid in self._workers[number]:
                    log.error("gates_not_said")  # without them its numbers would send what is held
                    self.ended(number, pid)
                return
            await room()  # however much it is: as fast as it is read there
        say(frames.JOIN, [taken.epoch, taken.at.isoformat()])

    async def _give(self, number: int) -> None:
        """Let the one that came first have the shards, unless somebody has them; first our own lanes let them go."""
        worker = next((each for each in self._workers[number].values() if each.prepared), None)
        if worker is None or any(each.has for each in self._workers[number].values()):
            return
        shards = self._shards[number]
        worker.has = True
        self._places.put(shards, nowhere)
        handed = await self._lanes.give_up(frozenset(shards))
        for part in held.parts(handed):
            worker.say(frames.WAITS, part)  # what does not go is told as a wait for the turn
            await worker.room()
        while True:
            try:
                await self._ownership.give(shards, worker.epoch)
                break
            except Exception as error:  # noqa: BLE001 - the database is away
                log.warning("share_not_given", epoch=worker.epoch, error=type(error).__name__)
                await self._clock.sleep(AGAIN_AFTER)
        if worker not in self._workers[number].values():
            return  # it ended meanwhile, and they are taken back
        if not worker.say(frames.SHARDS, [shards, self._elapsed() + WINDOW + TOLERANCE]):
            log.error("shards_not_said")
            self._end(number, worker)  # it has them by the table, and does not know: without its epoch it ends
            return
        self._places.put(shards, partial(self._tell, worker))

    async def _take_back(self, number: int, worker: _Worker, opens_at: float) -> None:
        """Have what it had in hand sorted out, and its shards be sent for by the one that follows, or here."""
        while True:
            try:
                await self._ownership.end(worker.epoch)
                await self._rescuer.rescue()
                break
            except Exception as error:  # noqa: BLE001 - the database is away, or a statement of it has not ended yet
                log.warning("share_not_taken_back", epoch=worker.epoch, error=type(error).__name__)
                await self._clock.sleep(AGAIN_AFTER)
        if (seen := self._calls.pop(worker.epoch, None)) is not None:
            seen.close()
        if not worker.has:
            return
        if any(each.prepared for each in self._workers[number].values()):
            await self._give(number)
            return
        for shard in self._shards[number]:
            self._opens[shard] = opens_at
        self._places.put(self._shards[number], None)

    def _end(self, number: int, worker: _Worker) -> None:
        for pid, each in list(self._workers[number].items()):
            if each is worker:
                self.ended(number, pid)

    def _tell(self, worker: _Worker, sender: SenderKey, hint: object) -> None:
        said = hint_frames.said_of(hint)
        if said is not None and not worker.say(frames.HINT, [*sender, said]):
            worker.say(frames.HINT, [*sender, hint_frames.LOOK])

    def _do(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._in_turn(number, work), name="share of numbers")
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _in_turn(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        async with self._turns[number]:
            await work

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("share_failed", error=type(task.exception()).__name__)
