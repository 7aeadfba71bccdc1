"""The life of the service: its parts are started in order, and stopped in reverse."""

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from recado.actors.jobs.clock_watch import ClockWatch
from recado.actors.system import ActorSystem
from recado.assembly import Assembly
from recado.channels.core.adapters import Adapters
from recado.config.errors import SettingsError
from recado.config.forms import Listen
from recado.config.settings import Settings
from recado.descriptors import Descriptors
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import created_at
from recado.domain.dispatch.leases import RENEWED_EVERY
from recado.engine.clock import SystemClock
from recado.engine.loop_watch import LoopWatch
from recado.engine.periodic import Periodic
from recado.engine.service import Service
from recado.engine.shutdown import Shutdown
from recado.http.api.route import MIB, Route
from recado.http.callers.token_authenticator import TokenAuthenticator
from recado.http.routes.ops.stream import OperatorStream
from recado.http.server import HttpServer
from recado.installation import Installation
from recado.providers import adapters_of
from recado.route_table import route_table
from recado.storage.access.organizations import NewOrganization
from recado.storage.core.connections import server_clock
from recado.storage.core.idempotency import IdempotencyKeys
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.dispatch.ownership import Owned, Ownership, session_name
from recado.storage.messages.chat_windows import ChatWindows
from recado.storage.messages.recipients import RecipientLookup

USES_WRITTEN_EVERY = 60.0  # seconds
# Of the 20 s that a stop may take (C32): so many to finish what is under way; so many, with what is left of those, to
# close the database.
FLUSH_SECONDS = 16.0
CLOSE_SECONDS = 3.5
# Parts that only look: nothing is lost with them.
_READERS = (LoopWatch, ClockWatch, ChatWindows, RecipientLookup, OperatorStream)

log = structlog.get_logger(__name__)


class Application:
    """The whole service, from its settings.

    `made`: what the first start put into an empty data folder. `routes`: the table of everything it serves.
    """

    def __init__(self, settings: Settings, *, take_over: bool = False) -> None:
        """`take_over`: another process that serves the same database is to end."""
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
        self.made: NewOrganization | None = None
        self.owner_password: str | None = None
        self.left_untold: list[str] = []
        self.routes: tuple[Route, ...] = ()

    @property
    def address(self) -> str:
        """Where callers reach the API."""
        return self._settings.address(self._server.port if self._server else None)

    async def start(self) -> None:
        """Start everything, or nothing."""
        descriptors = Descriptors.allowed()
        await _try_address(self._settings.listen)
        try:
            await self._installation.start(take_over=self._take_over)
            self.made = self._installation.made
            self.owner_password = self._installation.owner_password
            self.left_untold = self._installation.left_untold
            adapters = adapters_of(self._settings, self._clock, descriptors.outbound)
            for sender in adapters.senders():
                self._shutdown.add("provider", sender.stop, flushes=False)
                await sender.start()
            await self._assemble(adapters, descriptors)
        except BaseException:
            await self.stop()
            raise

    async def _continue_ids(self) -> None:
        """A process before may have had a later clock: order by id is order of creation all the same (C2.1)."""
        newest = await server_clock.newest_id(self._installation.database, self._clock.now())
        if newest is not None:
            continued = self._installation.ids.continue_after(newest)
            log.error("clock_is_behind", newest=created_at(newest).isoformat(), ids_continue=continued)

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

    async def wait(self) -> None:
        """Wait until the service cannot go on; raises RuntimeError that says why."""
        if self._system is None:
            raise RuntimeError("the service is not started")
        why = await self._system.wait()
        if self._server is not None:
            self._server.hurry()
        raise RuntimeError(why)

    async def _assemble(self, adapters: Adapters, descriptors: Descriptors) -> None:
        settings, clock, installation = self._settings, self._clock, self._installation
        made = Assembly(settings, installation, adapters, clock, descriptors)
        self._system = made.system
        self.routes = route_table(made)
        server = self._server = HttpServer(
            self.routes,
            authenticator=TokenAuthenticator(made.directories.keys, made.directories.sessions),
            idempotency_store=IdempotencyKeys(installation.database),
            limits=settings.request_limits,
            ceilings=made.ceilings,
            clock=clock,
            ids=installation.ids,
            base_url=settings.address(),
            host=settings.listen.host,
            port=settings.listen.port,
            admin_token=settings.admin_token.get_secret_value() if settings.admin_token else None,
            trusted_proxies=settings.trusted_proxies,
            expects_large_bodies=True,
            body_memory=settings.body_memory * MIB,
            connections=descriptors.inbound,
            arriving=descriptors.arriving,
            connections_of_address=settings.connections_per_address,
            spool_folder=settings.data_dir if settings.database_url is None else None,
            figures=made.figures,
        )
        # Before the numbers are taken over: a service that cannot serve must not end the one that does.
        self._shutdown.add("address", server.stop, flushes=False)  # as a part, it flushes
        await _take_address(server, settings.listen)
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
        # After it: an owner that hangs may hold what these wait for.
        await self._continue_ids()
        await ensure_partitions(installation.database, clock.now())
        uses = Periodic("uses of credentials", USES_WRITTEN_EVERY, made.directories.flush_uses, clock)
        self._shutdown.add("last uses of credentials", made.directories.flush_uses)
        watch = ClockWatch(installation.database, clock)
        parts: tuple[Service, ...] = (made.loop_watch, uses, watch, *made.parts, server)
        for part in parts:
            self._shutdown.add(type(part).__name__, part.stop, flushes=not isinstance(part, _READERS))
            with _blaming(ownership):
                await part.start()


async def _try_address(listen: Listen) -> None:
    """Refuse an address that cannot be had before anything is made; it is let go at once, and taken later."""
    with _telling(listen):
        loop = asyncio.get_running_loop()
        tried = await loop.create_server(asyncio.Protocol, listen.host, listen.port, start_serving=False)
    tried.close()
    await tried.wait_closed()


async def _take_address(server: HttpServer, listen: Listen) -> None:
    """Make the address the server's."""
    with _telling(listen):
        await server.take_address()


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


@contextmanager
def _telling(listen: Listen) -> Iterator[None]:
    """SettingsError says what to do when the address cannot be had."""
    try:
        yield
    except OSError as error:
        match error:
            case OSError(errno=errno.EADDRINUSE):
                told = "is in use: stop what listens there, or choose another with --listen"
            case OSError(errno=errno.EADDRNOTAVAIL):
                told = "is not an address of this machine: choose one with --listen, such as 127.0.0.1:8080"
            case OSError(errno=errno.EACCES):
                told = "is not for this user: choose a port from 1024 on with --listen"
            case socket.gaierror():
                told = "has a host name that is not known: choose another with --listen"
            case _:
                told = f"cannot be listened on ({error.strerror or type(error).__name__}): choose another with --listen"
        raise SettingsError([f"{listen.host}:{listen.port} {told}"]) from None
