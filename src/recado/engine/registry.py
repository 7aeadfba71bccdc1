"""Actors by key: found in one dict look-up, spawned on first use, and out of memory again when idle.

It is a view of one supervisor's children, so that what the supervisor restarts or ends needs no second record.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from recado.domain.core.clock import TimerHandle
from recado.engine.actor import Actor
from recado.engine.actor_cell import ActorCell
from recado.engine.failure import CrashHook
from recado.engine.ref import ActorRef
from recado.engine.supervisor import Supervisor

SWEPT_AT_ONCE: Final = 200  # actors
SWEEP_PAUSE: Final = 0.01  # seconds

Key = TypeVar("Key", bound=str | int | tuple[Any, ...])


class Registry(Generic[Key]):
    """The keyed actors under `supervisor`, which holds nothing else.

    An actor that handled nothing for `idle_after` seconds (up to twice that) and has no timer set is passivated; None:
    never.
    A message told to a passivated actor's ref, or while it is leaving, goes to its next incarnation.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        *,
        idle_after: float | None = None,
        mailbox_limit: int | None = None,
        on_crash: CrashHook | None = None,
    ) -> None:
        self._supervisor = supervisor
        self._idle_after = idle_after
        self._mailbox_limit = mailbox_limit
        self._on_crash = on_crash
        self._sweep_timer: TimerHandle | None = None

    def get(self, key: Key) -> ActorRef[Any] | None:
        """The actor of that key if it is in memory."""
        child = self._supervisor.find(key)
        return child.ref if isinstance(child, ActorCell) else None

    def get_or_spawn(self, key: Key, make: Callable[[Key], Actor]) -> ActorRef[Any]:
        """The actor of that key, made by `make(key)` when it is not in memory. Raises ActorDeadError after
        the supervisor's stop."""
        child = self._supervisor.find(key)
        if isinstance(child, ActorCell):
            child.stay()
            return child.ref
        ref: ActorRef[Any] = self._supervisor.spawn(
            key,
            partial(make, key),
            mailbox_limit=self._mailbox_limit,
            on_crash=self._on_crash,
        )
        return ref

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[ActorCell]:
        return (child for child in self._supervisor.children() if isinstance(child, ActorCell))

    async def start(self) -> None:
        """Begin to look for idle actors. A service, to be started after the supervisor; safe to call twice."""
        if self._sweep_timer is None:
            self._plan_sweep(self._supervisor.runtime.clock.monotonic())

    async def stop(self) -> None:
        """Look no more; the supervisor stops the actors."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None

    def _plan_sweep(self, after: float) -> None:
        if self._idle_after is not None:
            self._sweep_timer = self._supervisor.runtime.clock.call_at(after + self._idle_after, self._sweep)

    def _sweep(self) -> None:
        self._sweep_on(iter(list(self)), self._supervisor.runtime.clock.monotonic())

    def _sweep_on(self, cells: Iterator[ActorCell], began: float) -> None:
        """Look at the next few, and at the rest a moment later: thousands that leave at once would hold up the loop."""
        some = list(islice(cells, SWEPT_AT_ONCE))
        if len(some) < SWEPT_AT_ONCE:
            self._plan_sweep(began)
        else:
            clock = self._supervisor.runtime.clock
            self._sweep_timer = clock.call_at(clock.monotonic() + SWEEP_PAUSE, partial(self._sweep_on, cells, began))
        for cell in some:
            if cell.idle():
                cell.passivate()
