"""The lasting part of an actor: ref, mailbox, timers and counters stay while incarnations come and go."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Protocol

from recado.engine.child import Child, Figures
from recado.engine.failure import CrashHook
from recado.engine.mailbox import ActorStop, Envelope, Mailbox
from recado.engine.ref import ActorRef
from recado.engine.reply import ReplyFuture
from recado.engine.runtime import Runtime
from recado.engine.timers import Timers


class Incarnation(Protocol):
    """An actor, as the address at which it lives sees it: thrown away at a failure (see `Actor`)."""

    mailbox_limit: ClassVar[int]
    actor_inbox: Mailbox
    _address: "ActorAddress"
    _has_start: ClassVar[bool]
    _has_stop: ClassVar[bool]

    @property
    def actor_urn(self) -> str: ...

    @property
    def actor_ref(self) -> ActorRef[Any]: ...

    async def handle(self, message: Any) -> Any: ...

    async def started(self) -> None: ...

    async def stopping(self) -> None: ...

    async def failed(self, error: BaseException) -> None: ...

    def is_fatal(self, error: Exception) -> bool: ...

    def may_passivate(self) -> bool: ...

    def _start_actor_loop(self) -> None: ...


class ActorAddress(Child):
    """Where messages to one actor go. `ActorCell` adds the actor's life."""

    __slots__ = (
        "_begun",
        "_killed",
        "_make",
        "_on_crash",
        "_passivated",
        "_passivating",
        "_starting",
        "_task",
        "actor",
        "grace",
        "handled",
        "mailbox",
        "ref",
        "runtime",
        "seen_by_sweep",
        "timers",
    )

    def __init__(
        self,
        key: Hashable,
        make: Callable[[], Incarnation],
        runtime: Runtime,
        *,
        mailbox_limit: int | None = None,
        on_crash: CrashHook | None = None,
        grace: float | None = None,
    ) -> None:
        super().__init__(key)
        self.runtime = runtime
        self.handled = 0
        self.seen_by_sweep = -1
        self.grace = grace
        self._make = make
        self._on_crash = on_crash
        self.timers = Timers()
        self._task: asyncio.Task[None] | None = None
        self._starting: ReplyFuture[None] | None = None
        self._begun = self._killed = self._passivating = self._passivated = False
        actor = make()
        self.actor: Incarnation | None = actor
        self.ref: ActorRef[Any] = actor.actor_ref
        self.mailbox: Mailbox = self.ref.actor_inbox
        self.mailbox.open(actor.mailbox_limit if mailbox_limit is None else mailbox_limit)
        self._adopt(actor)

    @property
    def kind(self) -> str:
        return self.ref.actor_class.__name__

    @property
    def spawned(self) -> bool:
        return True

    def figures(self) -> Figures:
        return self.state, len(self.mailbox), self.handled, self.restarts, self.last_failure, self.up_since

    def reopen(self) -> None:
        """Take messages (again), whether or not an incarnation is there to handle them."""
        self.mailbox.open()
        self._passivated = False

    def request_stop(self) -> None:
        """Stop once everything already in the mailbox is handled."""
        self.mailbox.put_urgent(Envelope(ActorStop()))

    def stay(self) -> None:
        """Undo a stop that has reached its farewell: new messages wait for the next incarnation.

        That of its supervisor stands: an incarnation that followed would outlive it.
        """
        if self.mailbox.closed and not (self.owner is not None and self.owner.closed):
            self.reopen()

    def idle(self) -> bool:
        """Whether nothing was handled since the last call and the actor is free to leave."""
        before, self.seen_by_sweep = self.seen_by_sweep, self.handled
        return (
            before == self.handled
            and self.mailbox.resting
            and not self.timers
            and self.actor is not None
            and self.actor.may_passivate()
        )

    def begin(self) -> None:
        """Begin to serve the incarnation that was given this address."""
        raise NotImplementedError

    def passivate(self) -> None:
        """Leave memory as soon as the mailbox is empty."""
        raise NotImplementedError

    def _adopt(self, actor: Incarnation) -> None:
        """Give a new incarnation this address."""
        raise NotImplementedError
