"""The life of the service: its parts are started in order, and stopped in reverse."""

import os
import resource
from collections.abc import Mapping
from contextlib import AsyncExitStack

from recado.actors.system import ActorSystem
from recado.assembly import Assembly
from recado.channels.provider import ChatAppProvider
from recado.config.settings import Settings
from recado.engine.clock import SystemClock
from recado.engine.periodic import Periodic
from recado.http.route import Route
from recado.http.server import HttpServer
from recado.http.token_authenticator import TokenAuthenticator
from recado.installation import Installation
from recado.providers import chatapp_providers
from recado.route_table import route_table
from recado.storage.idempotency import IdempotencyKeys
from recado.storage.organizations import NewOrganization
from recado.storage.partitions import ensure_partitions

OPEN_FILES = 65_536
USES_WRITTEN_EVERY = 60.0  # seconds


class Application:
    """The whole service, from its settings.

    `made`: what the first start put into an empty data folder. `routes`: the table of everything it serves.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._installation = Installation(settings, clock=self._clock, random_bytes=os.urandom)
        self._running = AsyncExitStack()
        self._system: ActorSystem | None = None
        self._server: HttpServer | None = None
        self.made: NewOrganization | None = None
        self.owner_password: str | None = None
        self.routes: tuple[Route, ...] = ()

    @property
    def address(self) -> str:
        """Where callers reach the API."""
        return self._settings.address(self._server.port if self._server else None)

    async def start(self) -> None:
        """Start everything, or nothing."""
        _allow_open_files()
        async with AsyncExitStack() as running:
            running.push_async_callback(self._installation.stop)
            await self._installation.start()
            self.made = self._installation.made
            self.owner_password = self._installation.owner_password
            await ensure_partitions(self._installation.database, self._clock.now())
            providers = chatapp_providers(self._settings, self._clock)
            for provider in providers.values():
                running.push_async_callback(provider.stop)
                await provider.start()
            await self._assemble(running, providers)
            self._running = running.pop_all()

    async def stop(self) -> None:
        """Take nothing more, finish what is under way, close everything. Safe to call twice."""
        await self._running.aclose()

    async def wait(self) -> None:
        """Wait until the service cannot go on; raises RuntimeError that says why."""
        if self._system is None:
            raise RuntimeError("the service is not started")
        raise RuntimeError(await self._system.wait())

    async def _assemble(self, running: AsyncExitStack, providers: Mapping[str, ChatAppProvider]) -> None:
        settings, clock, installation = self._settings, self._clock, self._installation
        made = Assembly(settings, installation, providers, clock)
        self._system = made.system
        self.routes = route_table(made)
        server = self._server = HttpServer(
            self.routes,
            authenticator=TokenAuthenticator(made.directories.keys, made.directories.sessions),
            idempotency_store=IdempotencyKeys(installation.database),
            limits=settings.request_limits,
            clock=clock,
            ids=installation.ids,
            base_url=settings.address(),
            host=settings.listen.host,
            port=settings.listen.port,
            admin_token=settings.admin_token.get_secret_value() if settings.admin_token else None,
            trusted_proxies=settings.trusted_proxies,
            spool_folder=settings.data_dir if settings.database_url is None else None,
        )
        # Before the numbers are taken over: a service that cannot serve must not end the one that does.
        running.push_async_callback(server.stop)
        await server.take_address()
        uses = Periodic("uses of credentials", USES_WRITTEN_EVERY, made.directories.flush_uses, clock)
        running.push_async_callback(made.directories.flush_uses)
        for part in (uses, *made.parts, server):
            running.push_async_callback(part.stop)
            await part.start()


def _allow_open_files() -> None:
    """Thousands of calls in flight are thousands of sockets (C31)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
