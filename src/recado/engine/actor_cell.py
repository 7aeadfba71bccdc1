"""The life of an actor at its address: incarnations begin, serve, rest, fail and end.

Its task runs only while there is something to do: `_run` starts an incarnation, serves the mailbox until it is empty
and then takes the one step that the outcome asks for (rest, stop, halt, passivate or fail).
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextvars import Context
from typing import Any

from recado.engine.address import ActorAddress, Incarnation
from recado.engine.child import State
from recado.engine.errors import HandlerCancelled
from recado.engine.failure import Crash, Failure
from recado.engine.mailbox import ActorStop, Envelope, Halt, Mailbox
from recado.engine.reply import ReplyFuture
from recado.engine.runtime import Runtime
from recado.engine.serving import serve

_log = logging.getLogger(__name__)


class ActorCell(ActorAddress):
    """One actor, whichever incarnation it is in. Belongs to the event loop's thread."""

    __slots__ = ()

    @classmethod
    def unsupervised(cls, actor: Incarnation, runtime: Runtime) -> None:
        """Run one incarnation that nobody restarts."""
        cls(actor.actor_urn, lambda: actor, runtime).launch()

    # --- an incarnation's beginning -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Launch and wait until `started()` has run; its error is raised here instead of reported to the supervisor."""
        if self.state is State.RUNNING:
            return
        self._starting = starting = ReplyFuture[None]()
        try:
            self.launch()
            await starting
        finally:
            self._starting = None

    def launch(self) -> None:
        """Begin an incarnation without waiting for `started()`. Raises what the actor's constructor raised."""
        if self.actor is None:
            self._adopt(self._make())
        self.reopen()
        self._passivating = self._killed = False
        self.mark_up(self.runtime.clock.now(), self.runtime.clock.monotonic())
        assert self.actor is not None  # noqa: S101 - adopted above
        self.actor._start_actor_loop()

    def begin(self) -> None:
        """The body of pykka's `_start_actor_loop`: wake only for what there is to do."""
        assert self.actor is not None  # noqa: S101 - called by launch
        if not self.actor._has_start:
            self._mark_begun()
        if not self._begun or self.mailbox.queue:
            self.wake()
        else:
            self.mailbox.rest()

    def wake(self) -> None:
        """Start the task that serves the mailbox."""
        self.mailbox.rise()
        self.stir()
        # An empty context: the actor must not run under the log context of anyone who happened to wake it.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def _adopt(self, actor: Incarnation) -> None:
        """Give a new incarnation the lasting address, also where its constructor handed its own ref on."""
        self.mailbox.cell = self
        actor._address = self
        actor.actor_inbox = actor.actor_ref.actor_inbox = self.mailbox
        self.actor = actor
        self._begun = False

    def _mark_begun(self) -> None:
        self._begun = True
        if self._starting is not None:
            # Cleared here, not by who waits: a failure right after the start is no failed start any more.
            self._starting.set(None)
            self._starting = None
        self.runtime.signals.emit("actor.started", self.path)

    # --- serving --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        actor = self.actor
        if actor is None:
            return
        await self._live(actor)
        if self._task is asyncio.current_task():
            self._task = None

    async def _live(self, actor: Incarnation) -> None:
        """Serve until there is a reason not to, then do what the reason asks for."""
        if not self._begun:
            try:
                await actor.started()
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - any failure is the supervisor's
                await self._fail(actor, error, None)
                return
            self._mark_begun()
        pause = await serve(self, actor)
        if pause.error is not None:
            await self._fail(actor, pause.error, pause.in_hand)
        elif pause.order is None:
            await self._rest(actor)
        elif isinstance(pause.order.message, Halt):
            await self._farewell(actor)
            self._forget(State.BACKING_OFF)
            _obeyed(pause.order)
            self._obey_halts()
        else:
            self.mailbox.close()
            await self._farewell(actor)
            if self.mailbox.closed:
                self.end()
            else:
                self._follow()
            _obeyed(pause.order)

    # --- an incarnation's end -------------------------------------------------------------------------------------

    async def _rest(self, actor: Incarnation) -> None:
        if not self._passivating:
            self._task = None
            self.mailbox.rest()
            return
        self._passivating = False
        await self._farewell(actor)
        if self.mailbox.queue:
            self._follow()
        else:
            self._leave()

    def _follow(self) -> None:
        """Begin the next incarnation: what was told during the farewell of the last one is for it."""
        self._forget(State.BACKING_OFF)
        try:
            self.launch()
        except Exception as error:  # noqa: BLE001 - a constructor's failure is the supervisor's
            self._report(error)

    async def _fail(self, actor: Incarnation, error: BaseException, message: object) -> None:
        supervised = self.owner is not None and not self._killed
        self._forget(State.BACKING_OFF)
        self.last_failure = failure = Failure.of(error, self.runtime.clock.now())
        if not supervised:
            _log.error("actor failed: %s (%s in %s)", self.path, failure.type, failure.where)
            self.mailbox.close()
        await self._guarded("failed", actor.failed(error))
        if self._on_crash is not None:
            await self._guarded("crash hook", self._on_crash(Crash(self.path, self.key, failure, message, error)))
        if not supervised:
            self.end()
        elif self._starting is not None:
            self._starting.fail(error if isinstance(error, Exception) else HandlerCancelled("cancelled while starting"))
        elif not self._obey_halts():
            self._report(error)  # else anyone who ordered the halt is restarting this actor anyway

    def _report(self, error: BaseException) -> None:
        if self.owner is not None:
            self.owner.child_failed(self, error)
        else:
            self.end()

    async def _farewell(self, actor: Incarnation) -> None:
        if actor._has_stop:
            await self._guarded("stopping", actor.stopping())

    async def _guarded(self, what: str, step: Awaitable[None]) -> None:
        """Run a hook whose error must not keep the actor from ending; the error is shown as the last failure."""
        try:
            await step
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the end goes on
            self.last_failure = failure = Failure.of(error, self.runtime.clock.now())
            _log.error("%s of %s failed (%s in %s)", what, self.path, failure.type, failure.where)

    def _forget(self, state: State) -> None:
        """Let go of the incarnation and its timers; the address stays."""
        self.actor = None
        self.mailbox.rise()
        self.timers.cancel_all()
        self.mark_down(state)

    def end(self) -> None:
        """Dead for good: refuse what still waits and leave the tree."""
        self.mailbox.close()
        self._forget(State.STOPPED)
        dropped = self.mailbox.refuse_all()
        if dropped:
            _log.debug("actor stopped: %s, %d messages told after its stop are dropped", self.path, dropped)
        self._left("actor.stopped")

    def _leave(self) -> None:
        """Out of memory until the next message."""
        if self.owner is None:
            self.end()
            return
        self.mailbox.close()
        self._passivated = True
        self._forget(State.STOPPED)
        self._left("actor.passivated")

    def _left(self, signal: str) -> None:
        self.runtime.signals.emit(signal, self.path)
        if self.owner is not None:
            self.owner.child_ended(self)

    # --- orders ---------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop after what was told before, and wait for it."""
        if self.state is State.RUNNING and not self.mailbox.closed:
            if self.mailbox.resting and self.actor is not None and not self.actor._has_stop:
                self.end()
            else:
                await self._order(ActorStop())
            return
        if not self.mailbox.closed:
            self.end()
        if self._task is not None:
            await asyncio.wait([self._task])  # still at a farewell, or at the hooks of a failure

    async def halt(self) -> None:
        """End this incarnation after the message in hand; the mailbox waits for the next."""
        if self.state is State.RUNNING and not self.mailbox.closed:
            await self._order(Halt())
        elif self._task is not None:
            await asyncio.wait([self._task])

    async def _order(self, order: ActorStop | Halt) -> None:
        """Have an order obeyed; what is still in hand after `grace` seconds is cancelled."""
        done: ReplyFuture[None] = ReplyFuture()
        final = isinstance(order, ActorStop)
        envelope = Envelope(order, done)
        self.mailbox.put_urgent(envelope, first=not final)
        clock = self.runtime.clock
        timer = None if self.grace is None else clock.call_at(clock.monotonic() + self.grace, lambda: self._cut(final))
        try:
            await done
        except asyncio.CancelledError:
            # Anyone who wanted the halt is gone: nobody would start the actor again. A stop stands.
            if not final and envelope in self.mailbox.queue:
                self.mailbox.queue.remove(envelope)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def passivate(self) -> None:
        """Leave memory as soon as the mailbox is empty."""
        self._passivating = True
        if self.mailbox.resting:
            if self.actor is not None and self.actor._has_stop:
                self.wake()
            else:
                self._leave()

    def successor(self) -> Mailbox | None:
        """For a message to a closed mailbox: the mailbox of the next incarnation, None when the actor is dead."""
        if not self._passivated or self.owner is None:
            return None
        present = self.owner.readmit(self)
        return present.mailbox if isinstance(present, ActorCell) else None

    def _obey_halts(self) -> bool:
        """Answer every halt that waits, now that nothing runs; whether there was one."""
        queue = self.mailbox.queue
        met = False
        while queue and isinstance(queue[0].message, Halt):
            _obeyed(queue.popleft())
            met = True
        return met

    def _cut(self, final: bool) -> None:
        """Cancel what is in hand; `final`: and with it the actor."""
        self._killed = final
        if self._task is not None:
            self._task.cancel()


def _obeyed(order: Envelope[Any]) -> None:
    if order.reply_to is not None:
        order.reply_to.set(None)
