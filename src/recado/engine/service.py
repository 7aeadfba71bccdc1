"""The one contract of everything that runs: start and stop. A group starts in order and stops in reverse."""

from collections.abc import Iterable
from typing import Protocol

from recado.engine.child import Child, State
from recado.engine.runtime import Runtime


class Service(Protocol):
    """Something with a running time.

    `start` that raises has released what it took. `stop` flushes, then releases; it is safe twice and without a start.
    """

    async def start(self) -> None:
        """Run; returns when the service can be used."""

    async def stop(self) -> None:
        """Flush and end."""


class ServiceGroup:
    """Several services as one: later ones may use earlier ones."""

    def __init__(self, services: Iterable[Service]) -> None:
        self._services = tuple(services)
        self._running: list[Service] = []

    async def start(self) -> None:
        """Start all in order. When one fails, those already running are stopped in reverse and its error is raised."""
        if self._running:
            return
        for service in self._services:
            try:
                await service.start()
            except BaseException as error:
                try:
                    await self.stop()
                except ExceptionGroup as unwinding:
                    error.add_note(f"and while unwinding: {unwinding!r}")
                raise
            self._running.append(service)

    async def stop(self) -> None:
        """Stop all in reverse, each even when another fails to; then raise their errors as an ExceptionGroup."""
        errors: list[Exception] = []
        while self._running:
            service = self._running.pop()
            try:
                await service.stop()
            except Exception as error:  # noqa: BLE001 - the others must stop all the same; raised below
                errors.append(error)
        if errors:
            raise ExceptionGroup("services failed to stop", errors)


class ServiceChild(Child):
    """A service under a supervisor."""

    __slots__ = ("runtime", "service")

    def __init__(self, name: str, service: Service, runtime: Runtime) -> None:
        super().__init__(name)
        self.service = service
        self.runtime = runtime

    @property
    def kind(self) -> str:
        return type(self.service).__name__

    async def start(self) -> None:
        if self.state is State.RUNNING:
            return
        await self.service.start()
        self.mark_up(self.runtime.clock.now(), self.runtime.clock.monotonic())

    async def halt(self) -> None:
        self.mark_down(State.BACKING_OFF)
        await self.service.stop()

    async def stop(self) -> None:
        self.mark_down(State.STOPPED)
        await self.service.stop()
