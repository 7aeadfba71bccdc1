"""A front: a process that takes connections, accepts messages and follows links, and tells the owner what to send.

It answers only what needs no actor but by a hint, and hands every other connection over to the owner, which can answer
everything. What it knows from memory may be as old as the last beat of the owner: without one it answers nothing.
Where fronts send, it has lanes of its own once the owner says so (`JOIN`, then `SHARDS`), under the owner's lease.
"""

import asyncio
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog
import uvloop

from recado.actors.dispatch import hint_frames
from recado.assembly import Assembly
from recado.config.logging import configure_logging, log_loop_errors
from recado.descriptors import Descriptors
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.clock import Clock
from recado.domain.dispatch.leases import Lease
from recado.domain.dispatch.placement import SHARDS
from recado.domain.messages.changes import (
    Change,
    ConsentRefused,
    DeliveriesQueued,
    NumberChanged,
    OrganizationChanged,
    TemplateChanged,
    WithdrawalsLeft,
)
from recado.domain.senders.sender import SenderKey
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.clock import SystemClock
from recado.engine.link import Link
from recado.engine.periodic import Periodic
from recado.engine.process.collector import spare_the_collector
from recado.engine.process.family import end_with_parent, take_name
from recado.engine.process.stacks import below_its_name, tell_stacks
from recado.engine.service import ServiceGroup
from recado.engine.supervisor import Supervisor
from recado.fronts import frames, held
from recado.fronts.answers import AnswersToOwner
from recado.fronts.frames import FrontBeginning
from recado.fronts.gates import FollowedGates
from recado.fronts.processes import beginning_from
from recado.fronts.program import OTHER_PROGRAM, program_on_disk
from recado.http.api.local_requests import local_of
from recado.http.callers.shared_buckets import SharedBuckets
from recado.http.server import HttpServer, ServerPart
from recado.http.wire.handover import Giving
from recado.installation import Installation, Joined
from recado.providers import adapters_of
from recado.route_table import route_table
from recado.services.dispatch.crossing import packed
from recado.services.dispatch.hints import Arrived
from recado.serving import USES_WRITTEN_EVERY, http_server
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.batches.totals import TotalsKey
from recado.storage.core.connections import server_clock
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.dispatch import epochs
from recado.storage.dispatch.epochs import TakenEpoch

# Connections to the database: what a front asks for a request is mostly at hand, and what it stores goes in batches.
POOL, HOT = 4, 5
LANES_READ_AT_ONCE = 2  # of the four: the others are for requests
FIGURES_EVERY = 1.0  # seconds
MONTHS_EVERY = 3_600.0  # seconds
# Seconds of a stop: for what is under way, which is short here, and in all, but for the end of calls to providers. The
# owner's own stop comes after it.
ANSWER_SECONDS = 4.0
STOP_LIMIT = 6.0
# Seconds of a front that another has replaced, before its stop: in which connections end with their next answer; until
# the owner has those that rest; and for what is under way, as a body that comes slowly, which has so long anyway.
RESTING_AFTER = 3.0
LEAVE_LIMIT = 5.0
UNDER_WAY_LIMIT = 60.0
WAITS_TAKEN_WITHIN = 2.0  # seconds, of what messages waited for
NAME = "recado-front"  # of its process

_TO_LANES = (ConsentRefused, NumberChanged, OrganizationChanged, TemplateChanged)

log = structlog.get_logger(__name__)


class TheirActors:
    """The process that has the actors, as a front speaks to it."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._clock = clock
        self._expected: datetime | None = None  # what was said last

    def tell(self, sender: SenderKey, message: object) -> None:
        if hint_frames.said_of(message) is None:
            return  # of a change: the owner knows it, or is told that
        rows = [packed(row) for row in message.rows] if isinstance(message, Arrived) else []
        if not self._link.give(frames.ROWS, [*sender, rows]) and rows:
            self._link.give(frames.ROWS, [*sender, []])  # too long: the lane reads them itself

    def queued(self, subscriptions: Iterable[SubscriptionKey]) -> None:
        self._link.give(frames.QUEUED, [list(key) for key in subscriptions])

    def emptied(self, keys: Sequence[TotalsKey]) -> None:
        self._link.give(frames.EMPTIED, list(keys))

    def expected(self, due_at: datetime) -> None:
        """The owner looks for the next one at the moment that was said: until then later ones need not be said."""
        if self._expected is not None and self._clock.now() < self._expected <= due_at:
            return
        if self._link.give(frames.EXPECTED, due_at.isoformat()):
            self._expected = due_at

    def changed(self, change: Change) -> None:
        match change:
            case DeliveriesQueued(subscriptions):
                self.queued(subscriptions)
            case WithdrawalsLeft():
                self._link.give(frames.LEFT, None)
            case _ if (said := frames.said_of(change, to_senders=True)) is not None:
                self._link.give(frames.CHANGED, said)


class Front:
    """One front, from its beginning to its end."""

    def __init__(self, beginning: FrontBeginning, clock: SystemClock, elapsed: Callable[[], float]) -> None:
        """`elapsed`: the machine's seconds, by which the owner says until when a front answers."""
        self._beginning = beginning
        self._clock = clock
        self._elapsed = elapsed
        self._answers_until = 0.0
        self._link: Link | None = None
        self._made: Assembly | None = None
        # What the owner was told so far: accepted by channel, sent, failed, restarted, refused by wallets, frames that
        # never went.
        self._told: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._restarts: Counter[str] = Counter()
        self._refused = self._dropped = 0
        self._lease = Lease(elapsed)
        self._following = FollowedGates()
        self._under_way: set[asyncio.Task[None]] = set()
        self._preparing: asyncio.Task[None] | None = None  # to send
        self._tree: Supervisor | None = None  # of what sends
        self._left = asyncio.Event()  # or drained
        self._drained = asyncio.Event()
        self._waits_taken = asyncio.Event()

    async def run(self) -> int:
        """Serve until the owner says that it is enough. Where the owner is gone this process ends at once."""
        begun, settings, clock = self._beginning, self._beginning.settings, self._clock
        descriptors = Descriptors.allowed()
        installation = Installation(
            settings,
            clock=clock,
            random_bytes=os.urandom,
            pool_size=POOL,
            hot_size=HOT,
            application_name=begun.sessions,
            joined=Joined(begun.keys, begun.server),
        )
        await installation.start()
        await server_clock.continue_ids(installation.database, clock, installation.ids)
        await self._know_months(installation)
        link = self._link = await Link.over(
            socket.socket(fileno=begun.link),
            {
                frames.BEAT: self._beat,
                frames.CHANGE: self._change,
                frames.JOIN: self._join,
                frames.SHARDS: self._take,
                frames.HINT: self._hint,
                frames.GATE: self._gate,
                frames.GATES: self._gates,
                frames.SETTLE: self._settle,
                frames.ASK: self._ask,
                frames.CLOCK: self._believe_clock,
                frames.WAITS: self._waited,
                frames.TAKEN: lambda _: self._waits_taken.set(),
                frames.LEAVE: lambda _: self._left.set(),
                frames.DRAIN: self._drain,
            },
            lost=_end_at_once,
        )
        adapters = adapters_of(settings, clock, descriptors.outbound)
        made = self._made = Assembly(
            settings, installation, adapters, clock, descriptors, elsewhere=TheirActors(link, clock)
        )
        table = route_table(made)
        routes = tuple(route for route in table if route.at_fronts)
        local = local_of(routes, table)
        giving = Giving(socket.socket(fileno=begun.gives), lambda first: self._answers(local, first))
        limits = SharedBuckets.at(begun.limits, begun.salt)
        server = http_server(
            made,
            routes,
            descriptors,
            part=ServerPart(
                listening=[socket.socket(fileno=each) for each in begun.listening],
                gives=giving,
                shared_buckets=limits,
                answer_seconds=ANSWER_SECONDS,
            ),
        )
        parts = ServiceGroup(
            [
                made.loop_watch,
                *made.accepting,
                Periodic("months", MONTHS_EVERY, lambda: self._know_months(installation), clock),
                Periodic("uses of credentials", USES_WRITTEN_EVERY, made.directories.flush_uses, clock),
                Periodic("figures", FIGURES_EVERY, self._tell_figures, clock),
                server,
            ]
        )
        spare_the_collector()  # before the watch over the loop, which this holds
        await parts.start()
        link.give(frames.READY, begun.program)
        await self._left.wait()
        await self._leave(server)
        loop = asyncio.get_running_loop()
        limit = loop.time() + STOP_LIMIT
        sending = asyncio.create_task(self._stop_sending(), name="lanes")
        with suppress(TimeoutError):
            async with asyncio.timeout_at(limit):
                await server.stop()
        link.give(frames.ANSWERED)
        answered_at = loop.time()
        await sending  # calls that are under way end: how long they have, the owner says
        async with asyncio.timeout_at(limit + loop.time() - answered_at):
            await parts.stop()
            await made.directories.flush_uses()
            await self._tell_figures()
            await self._clock.sleep(0)  # what is given goes with the next turn
            await installation.stop()
        link.close()
        return 0

    async def _leave(self, server: HttpServer) -> None:
        """Let no client notice that this front ends, unless the whole service does."""
        if self._drained.is_set():
            return
        leaving = asyncio.create_task(_let_go(server), name="leave")
        drained = asyncio.create_task(self._drained.wait(), name="drained")
        await asyncio.wait({leaving, drained}, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            leaving.result()
        for each in (leaving, drained):
            each.cancel()

    def _believe_clock(self, _: object) -> None:
        self._clock.now()  # sees how far it was set
        self._clock.follow()

    async def _stop_sending(self) -> None:
        """Stop the lanes; where others send on, say what their messages waited for."""
        if self._preparing is not None:
            self._preparing.cancel()  # of one that has just begun: what ends here begins to send no more
            await asyncio.wait({self._preparing})
        if self._tree is None or self._made is None or self._link is None:
            return
        waits, every = self._made.system.lane_context.waits, range(SHARDS)
        closed = waits.closed_among(every)
        await self._tree.stop()
        if not self._drained.is_set():  # else nobody sends for its numbers before the next start
            for part in held.parts(waits.take(every, closed)):
                self._link.give(frames.WAITS, part)
                await self._link.room()
            with suppress(TimeoutError):
                async with asyncio.timeout(WAITS_TAKEN_WITHIN):
                    await self._waits_taken.wait()  # what is not read when this process has ended is lost

    def _drain(self, _: object) -> None:
        self._drained.set()
        self._left.set()

    def _answers(self, local: Callable[[bytes], bool], first: bytes) -> bool:
        return self._elapsed() < self._answers_until and local(first)

    def _beat(self, said: list[Any]) -> None:
        number, moment, *until = said
        self._answers_until = moment + frames.ANSWERS_FOR
        if until:
            self._lease.extended(min(self._answers_until, *until))
        self._followed(number)

    def _join(self, said: list[Any]) -> None:
        if self._left.is_set():
            return  # whoever follows has the numbers sooner so
        epoch, moment = said
        taken = TakenEpoch(epoch, datetime.fromisoformat(moment), 0.0, None)
        self._preparing = asyncio.get_running_loop().create_task(self._prepare(taken), name="prepares to send")

    async def _prepare(self, taken: TakenEpoch) -> None:
        """Begin what sends; numbers come with their shards."""
        made, link = self._made, self._link
        if made is None or link is None:
            return
        try:
            made.system.own(taken, self._lease)
            made.begun.open_beside(taken.epoch, taken.at)
            await epochs.note_opened(made.installation.database, taken.epoch)
            for env in ENVIRONMENTS:
                sender = made.sender_for(NUMBERS_CHANNEL, env)
                if sender is not None:
                    await sender.start()
            await made.media_use.start()
            made.system.lane_context.turn = asyncio.Semaphore(LANES_READ_AT_ONCE)
            tree = self._tree = made.system.sending_tree(lambda error: _end_at_once())
            await tree.start()
        except Exception as error:  # noqa: BLE001 - the next process tries it anew
            log.error("not_prepared_to_send", error=type(error).__qualname__)
            _end_at_once()
        link.give(frames.SENDS)
        self._do(_end_with(tree), "end of what sends")

    def _take(self, said: list[Any]) -> None:
        shards, moment = said
        if self._made is not None:
            opens_at = self._clock.monotonic() + moment - self._elapsed()
            for shard in shards:
                self._made.system.lane_context.opens[shard] = opens_at
            self._made.system.places.put(shards, None)

    def _waited(self, said: list[Any]) -> None:
        if self._made is not None:
            held.add(self._made.system.lane_context.waits, *said)

    def _hint(self, said: list[Any]) -> None:
        *sender, hint = said
        if self._made is not None:
            self._made.system.lanes.tell_here(SenderKey(*sender), hint_frames.hint_of(hint))

    def _change(self, said: list[Any]) -> None:
        try:
            number, *change = said
            if self._made is not None:  # else nothing is remembered yet
                changed = frames.change_of(change)
                self._made.directories.forget(changed)
                if self._tree is not None and isinstance(changed, _TO_LANES):
                    self._made.system.follow(changed)
        except Exception as error:  # noqa: BLE001 - the next beat would say that this was followed, too
            log.error("change_not_followed", error=type(error).__qualname__)
            _end_at_once()
        self._followed(number)

    def _gate(self, said: list[Any]) -> None:
        number, *part = said
        try:
            self._following.change(None if self._made is None else self._made.records, *part)
        except Exception as error:  # noqa: BLE001 - as of a change
            log.error("change_not_followed", error=type(error).__qualname__)
            _end_at_once()
        self._followed(number)

    def _gates(self, said: list[Any]) -> None:
        try:
            if self._made is not None:
                self._following.snapshot(self._made.records, *said)
        except Exception as error:  # noqa: BLE001 - without it everything would leave
            log.error("change_not_followed", error=type(error).__qualname__)
            _end_at_once()

    def _settle(self, asked: int) -> None:
        self._do(self._settles(asked), "settles claims")

    def _ask(self, said: list[Any]) -> None:
        if self._made is not None and self._link is not None and self._tree is not None:
            answers = AnswersToOwner(self._made.system, self._tree, self._link)
            self._do(answers.answer(*said), "answers the owner")

    def _do(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _settles(self, asked: int) -> None:
        if self._made is not None and self._link is not None:
            await self._made.system.sending.claims_settled()
            self._link.give(frames.SETTLED, asked)

    def _followed(self, number: int) -> None:
        if self._link is not None:
            self._link.give(frames.ACK, number)

    async def _know_months(self, installation: Installation) -> None:
        await ensure_partitions(installation.database, self._clock.now())

    async def _tell_figures(self) -> None:
        if self._made is None or self._link is None:
            return
        accepted = self._made.system.activity.accepted
        new = {channel: count for channel in accepted if (count := accepted[channel] - self._told[channel])}
        refused = self._made.system.admission.refused
        requests = self._made.figures.taken()
        dropped = self._link.dropped
        activity = self._made.system.activity
        sent, failed = activity.sent - self._sent, activity.failed - self._failed
        batches, restarts = self._made.batches.taken(), self._made.runtime.restarts - self._restarts
        told = {
            "accepted": new, "refused": refused - self._refused, "requests": requests,
            "dropped": dropped - self._dropped, "sent": sent,
            "failed": [(*key, count) for key, count in failed.items()], "batches": batches, "restarts": restarts,
        }  # fmt: skip
        if any(told.values()) and self._link.give(frames.FIGURES, told):
            self._told.update(new)
            self._sent.update(sent)
            self._failed.update(failed)
            self._restarts.update(restarts)
            self._refused, self._dropped = refused, dropped
        else:
            self._made.figures.add(requests)  # told with the next ones
            self._made.batches.add(batches)


async def _let_go(server: HttpServer) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LEAVE_LIMIT):
            await server.leave(RESTING_AFTER)
    await server.settled(UNDER_WAY_LIMIT)


async def _end_with(tree: Supervisor) -> None:
    await tree.failed
    _end_at_once()


def _end_at_once() -> None:
    """Nothing may be answered any more, nor written: what was accepted is committed, and the rest had no answer."""
    os._exit(1)


async def _serve(beginning: FrontBeginning) -> int:
    log_loop_errors(asyncio.get_running_loop())
    return await Front(beginning, SystemClock(since=beginning.present), SystemClock.elapsed).run()


def main() -> int:
    """Run the front whose beginning is read from standard input. The argument: the program that its owner is."""
    _leave_signals_to_owner()
    tell_stacks()
    if sys.argv[1:] != [program_on_disk()]:
        return OTHER_PROGRAM  # it would not understand its beginning either
    return _run()


def forked() -> int:
    """The same in a fork of its owner, which had loaded the program, and nothing more."""
    _leave_signals_to_owner()
    return _run()


def _leave_signals_to_owner() -> None:
    """It says when to end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _run() -> int:
    take_name(NAME)
    end_with_parent()  # the link tells of the owner's end only once there is one
    with socket.socket(fileno=os.dup(0)) as told:
        beginning = beginning_from(told)
    if beginning is None:
        return 0
    if os.getppid() != beginning.owner:
        _end_at_once()  # it ended before this process was to end with it
    configure_logging(beginning.settings.log_level, beginning.settings.log_format)
    structlog.contextvars.bind_contextvars(front=beginning.number)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return below_its_name(f"front {beginning.number}", lambda: runner.run(_serve(beginning)))


if __name__ == "__main__":
    sys.exit(main())
