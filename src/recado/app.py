"""The life of the service: its parts are started in order, and stopped in reverse."""

import asyncio
import os
import random
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import structlog

from recado.actors.jobs.clock_watch import ClockWatch
from recado.actors.system import ActorSystem
from recado.address import telling, try_address
from recado.assembly import Assembly
from recado.channels.core.adapters import Adapters
from recado.config.settings import Settings
from recado.cores import workers_by_connections, workers_by_cores
from recado.descriptors import Descriptors
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.leases import RENEWED_EVERY
from recado.engine.clock import SystemClock
from recado.engine.periodic import Periodic
from recado.engine.process.loop_watch import LoopWatch
from recado.engine.process.shutdown import Shutdown
from recado.engine.service import Service
from recado.fronts import gates
from recado.fronts.frames import FrontBeginning
from recado.fronts.processes import FrontProcesses
from recado.fronts.program import program_on_disk
from recado.fronts.shares import Shares
from recado.fronts.supervision import Fronts
from recado.http.api.route import Route
from recado.http.callers.shared_buckets import SharedBuckets
from recado.http.routes.ops.metrics import FrontCounts
from recado.http.routes.ops.stream import OperatorStream
from recado.http.server import HttpServer, ServerPart
from recado.installation import Installation
from recado.providers import adapters_of
from recado.route_table import route_table
from recado.serving import USES_WRITTEN_EVERY, http_server
from recado.storage.access.organizations import NewOrganization
from recado.storage.core.connections import server_clock
from recado.storage.core.connections.allowed import connections_allowed
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.dispatch.ownership import Owned, Ownership, session_name
from recado.storage.messages.chat_windows import ChatWindows
from recado.storage.messages.recipients import RecipientLookup

# Of the 20 s that a stop may take (C32): so many to finish what is under way; so many, with what is left of those, to
# close the database.
FLUSH_SECONDS = 16.0
CLOSE_SECONDS = 3.5
# Parts that only look: nothing is lost with them.
_READERS = (LoopWatch, ClockWatch, ChatWindows, RecipientLookup, OperatorStream)

log = structlog.get_logger(__name__)


class PlaceLost(RuntimeError):
    """Another process serves the database now; the text says why."""


class Application:
    """The whole service, from its settings.

    `made`: what the first start put into an empty data folder. `routes`: the table of everything it serves.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        take_over: bool = False,
        cores: float = 1.0,
        processes: FrontProcesses | None = None,
        listening: Sequence[socket.socket] = (),
        owner_restarts: int = 0,
    ) -> None:
        """`take_over`: another process that serves the same database is to end. `cores`: that the service may use, by
        which it is of several processes where the settings do not say of how many. `processes`: of fronts, where some
        were begun before. `listening`: sockets that have the address, where a launcher holds it; `owner_restarts`: how
        often it began the owner again.
        """
        self._listening = listening
        self._owner_restarts = owner_restarts
        self._processes = processes
        self._cores = cores
        self._settings = settings
        self._take_over = take_over
        self._clock = SystemClock()
        self._sessions = session_name(os.urandom)
        self._installation = Installation(
            settings, clock=self._clock, random_bytes=os.urandom, application_name=self._sessions
        )
        self._shutdown = Shutdown()
        self._flushed = True  # of everything that was stopped so far
        self._system: ActorSystem | None = None
        self._server: HttpServer | None = None
        self._fronts: Fronts | None = None
        self.made: NewOrganization | None = None
        self.owner_password: str | None = None
        self.left_untold: list[str] = []
        self.routes: tuple[Route, ...] = ()

    @property
    def address(self) -> str:
        """Where callers reach the API."""
        return self._settings.address(self._server.port if self._server else None)

    async def start(self, *, assembled: Callable[[], object] = lambda: None) -> None:
        """Start everything, or nothing. `assembled`: called when all is made, and nobody waits for this process yet."""
        descriptors = Descriptors.allowed()
        if not self._listening:
            await try_address(self._settings.listen, self._clock)
        try:
            await self._installation.start(take_over=self._take_over)
            self.made = self._installation.made
            self.owner_password = self._installation.owner_password
            self.left_untold = self._installation.left_untold
            await self._choose_workers()
            if self._processes is not None:
                self._processes.keep(self._settings.processes - 1)
            adapters = adapters_of(self._settings, self._clock, descriptors.outbound)
            for sender in adapters.senders():
                self._shutdown.add("provider", sender.stop, flushes=False)
                await sender.start()
            await self._assemble(adapters, descriptors, assembled)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> bool:
        """Take nothing more, finish what is under way, close everything, within 20 s. Safe to call twice.

        Answers whether everything is written, also by an earlier stop, as that of a start which failed. What is not is
        left as after a kill: calls to the rescuer of the next process, requests to their callers, who had no answer.
        """
        end = self._clock.monotonic() + FLUSH_SECONDS + CLOSE_SECONDS
        ended = await self._shutdown.run(FLUSH_SECONDS)
        unrecorded = self._system.unrecorded if self._system is not None else 0
        self._flushed = self._flushed and not unrecorded and not ended.not_flushed
        if ended.cut_off or ended.not_flushed or unrecorded:
            log.error(
                "stopped_before_the_end",
                unrecorded_calls=unrecorded,
                not_flushed=ended.not_flushed,
                cut_off=ended.cut_off,
            )
        await self._installation.stop(within=end - self._clock.monotonic())
        return self._flushed

    def reload(self) -> None:
        """Replace the processes beside this one, so that no client notices; where there are none, say so."""
        if self._fronts is None:
            log.info("reload_nothing_to_do")
        else:
            self._fronts.reload()

    async def wait(self) -> None:
        """Wait until the service cannot go on; raises RuntimeError that says why."""
        if self._system is None:
            raise RuntimeError("the service is not started")
        why = await self._system.wait()
        if self._server is not None:
            self._server.hurry()
        raise PlaceLost(why) if self._system.lost else RuntimeError(why)

    async def _choose_workers(self) -> None:
        """Say of how many processes the service is, and why; of no more than the database has connections for."""
        given, workers = self._settings.workers, workers_by_cores(self._cores)
        if given is not None:
            log.info("workers", count=given, because="setting")
            return
        because = "cores"
        if workers > 1:
            allowed = workers_by_connections(await connections_allowed(self._installation.database))
            if allowed < workers:
                workers, because = allowed, "max_connections of the database"
        log.info("workers", count=workers, because=because, cores=self._cores)
        self._settings = self._settings.model_copy(update={"workers": workers})

    async def _assemble(self, adapters: Adapters, descriptors: Descriptors, assembled: Callable[[], object]) -> None:
        settings, clock, installation = self._settings, self._clock, self._installation
        made = Assembly(settings, installation, adapters, clock, descriptors)
        self._system = made.system
        made.fronts = lambda: FrontCounts(0, 0, 0, 0, self._owner_restarts)
        self.routes = route_table(made, document_at_once=True)  # later its making would keep callers waiting
        several = settings.processes > 1
        shared = SharedBuckets.make() if several else None
        if shared is not None:
            self._shutdown.add("shared limits", partial(_close, shared), flushes=False)
        server = self._server = http_server(
            made,
            self.routes,
            descriptors,
            part=ServerPart(
                expects_large_bodies=True,
                has_fronts=several,
                shared_buckets=shared,
                reached=self._reached if several else None,
                listening=self._listening,
            ),
        )
        assembled()
        # Before the numbers are taken over: a service that cannot serve must not end the one that does.
        self._shutdown.add("address", server.stop, flushes=False)  # as a part, it flushes
        with telling(settings.listen):
            await server.take_address()
        ownership = Ownership(
            installation.database.server,
            clock=clock,
            elapsed=clock.elapsed,
            host=socket.gethostname(),
            pid=os.getpid(),
            sessions=self._sessions,
        )
        self._shutdown.add("ownership of the database", ownership.stop, flushes=False)
        made.system.own(await ownership.take(take_over=self._take_over), ownership.lease)
        kept = Periodic("ownership of the database", RENEWED_EVERY, ownership.keep, clock)
        self._shutdown.add("renewals", kept.stop, flushes=False)
        await kept.start()  # the start may take longer than the lease
        self._shutdown.add("calls of other processes", self._calls_of_fronts_end)
        # After it: an owner that hangs may hold what these wait for.
        await server_clock.continue_ids(installation.database, clock, installation.ids)
        await ensure_partitions(installation.database, clock.now())
        uses = Periodic("uses of credentials", USES_WRITTEN_EVERY, made.directories.flush_uses, clock)
        self._shutdown.add("last uses of credentials", made.directories.flush_uses)
        watch = ClockWatch(installation.database, clock, self._clock_believed)
        parts: tuple[Service, ...] = (made.loop_watch, uses, watch, *made.parts, server)
        for part in parts:
            self._shutdown.add(type(part).__name__, part.stop, flushes=not isinstance(part, _READERS))
            with _blaming(ownership):
                await part.start()
        if shared is not None:
            processes = self._processes or FrontProcesses(await asyncio.to_thread(program_on_disk))
            shares: Shares | None = None
            if settings.workers_send:
                shares = Shares(
                    settings.processes,
                    ownership=ownership,
                    lanes=made.system.lanes,
                    places=made.system.places,
                    opens=made.system.lane_context.opens,
                    waits=made.system.lane_context.waits,
                    rescuer=made.system.rescuer,
                    begun=made.begun,
                    clock=clock,
                    elapsed=clock.elapsed,
                    snapshot=partial(gates.snapshot, made.records),
                )
                self._shutdown.add("shares of numbers", shares.stop, flushes=False)
            fronts = self._fronts = Fronts(
                settings.processes - 1,
                door=server,
                hearing=made,
                begin=partial(self._beginning, shared, processes.program),
                processes=processes,
                inherited=[shared.descriptor],
                clock=clock,
                elapsed=clock.elapsed,
                random=random.Random(os.urandom(8)),  # noqa: S311 - spreads restarts; guards nothing
                shares=shares,
            )
            made.also_told = fronts.changed
            if shares is not None:
                gates.follow(made.records, fronts.gate)
                made.system.others_settled = fronts.claims_settled
                made.system.have_away(shares)
            made.fronts = lambda: FrontCounts(
                fronts.running, fronts.wanted, fronts.restarts, fronts.dropped, self._owner_restarts
            )
            self._shutdown.add("fronts", fronts.stop, flushes=False)
            await fronts.start()

    def _clock_believed(self) -> None:
        """Processes beside this one have its clock."""
        if self._fronts is not None:
            self._fronts.clock_believed()

    async def _calls_of_fronts_end(self) -> None:
        """They have as long for them as this process has for its own."""
        if self._fronts is not None:
            await self._fronts.calls_end()

    def _reached(self) -> Awaitable[object] | None:
        """Until what was changed holds in the processes beside this one."""
        return None if self._fronts is None else self._fronts.reached()

    def _beginning(
        self, limits: SharedBuckets, program: str, number: int, link: int, gives: int, listening: Sequence[int]
    ) -> FrontBeginning:
        installation = self._installation
        return FrontBeginning(
            owner=os.getpid(),
            present=(self._clock.now(), self._clock.elapsed()),
            settings=self._settings,
            keys=installation.keys,
            server=dict(installation.database.server),
            sessions=self._sessions,
            number=number,
            program=program,
            link=link,
            gives=gives,
            listening=tuple(listening),
            limits=limits.descriptor,
            salt=limits.salt,
        )


async def _close(shared: SharedBuckets) -> None:
    shared.close()


@contextmanager
def _blaming(ownership: Ownership) -> Iterator[None]:
    """Owned says who is in the way, where the database is not to be had and an owner before could not be ended."""
    try:
        yield
    except Unavailable as error:
        if ownership.not_ended is None:
            raise
        raise Owned(
            f"{ownership.not_ended} still has sessions on the database, and the user of this one could not end them:"
            " end that process, then start again"
        ) from error
