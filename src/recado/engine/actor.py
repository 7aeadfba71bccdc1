"""The base of all actors: pykka's `Actor`, executed by asyncio, one message at a time.

An idle actor has no task: `ActorCell` starts one when the first message arrives and lets it end with the last.
"""

from typing import Any, ClassVar, Self

import pykka

from recado.engine.actor_cell import ActorCell
from recado.engine.address import ActorAddress
from recado.engine.context import ActorContext
from recado.engine.errors import UnhandledMessage
from recado.engine.mailbox import DEFAULT_LIMIT, Mailbox
from recado.engine.ref import ActorRef
from recado.engine.reply import ReplyFuture
from recado.engine.runtime import Runtime


class Actor(pykka.Actor):
    """Override `handle`, and where needed `started`, `stopping` and `failed`; `__init__` only keeps what it is given.

    The synchronous hooks of pykka (`on_receive`, `on_start`, `on_stop`, `on_failure`) are the defaults of these four.
    """

    mailbox_limit: ClassVar[int] = DEFAULT_LIMIT
    actor_inbox: Mailbox
    _address: ActorAddress
    _has_start: ClassVar[bool] = False
    _has_stop: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Known per class, so that an actor with nothing to do at its start or end costs no task then.
        cls._has_start = cls.started is not Actor.started or cls.on_start is not pykka.Actor.on_start
        cls._has_stop = cls.stopping is not Actor.stopping or cls.on_stop is not pykka.Actor.on_stop

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        # Not pykka's constructor: a name, an event and a weak reference for each actor outweigh an idle one.
        self.actor_inbox = self._create_actor_inbox()
        self._actor_ref = ActorRef(type(self), self.actor_inbox)

    _actor_ref: ActorRef[Any]

    @property
    def context(self) -> ActorContext:
        """What the actor may ask of its surroundings; not yet in the constructor."""
        return ActorContext(self._address)

    @property
    def actor_urn(self) -> str:  # type: ignore[override]  # read only
        """The actor's name, which lasts as long as its address."""
        return self.actor_inbox.urn

    @property
    def actor_ref(self) -> ActorRef[Self]:
        """The actor's lasting address; the same for every incarnation of a supervised actor."""
        return self._actor_ref

    @classmethod
    def start(cls, *args: Any, **kwargs: Any) -> ActorRef[Self]:
        """Run an actor without a supervisor: it ends at its first failure, as in pykka. In no global registry."""
        actor = cls(*args, **kwargs)
        ActorCell.unsupervised(actor, Runtime.system())
        return actor.actor_ref

    async def handle(self, message: Any) -> Any:
        """Handle one message; the value returned goes to the asker. One call runs at a time."""
        return self.on_receive(message)

    async def started(self) -> None:
        """Run before the first message of an incarnation; an exception counts as a failure of the actor."""
        self.on_start()

    async def stopping(self) -> None:
        """Run after the last message, at a stop, restart on order, or passivation; not after a failure."""
        self.on_stop()

    async def failed(self, error: BaseException) -> None:
        """Run after an unhandled exception, before the supervisor decides."""
        self.on_failure(type(error), error, error.__traceback__)

    def is_fatal(self, error: Exception) -> bool:
        """Whether an exception that was answered to an asker fails the actor too. Default: no."""
        return False

    def may_passivate(self) -> bool:
        """Whether the actor may leave memory when idle; asked only with an empty mailbox and no timer set."""
        return True

    def on_receive(self, message: Any) -> Any:
        """Refuse by type; pykka would log the message itself."""
        raise UnhandledMessage(f"{type(self).__name__} does not handle {type(message).__name__}")

    def stop(self) -> None:
        """Stop this actor once everything already in its mailbox is handled."""
        self._address.request_stop()

    @staticmethod
    def _create_actor_inbox() -> Mailbox:
        return Mailbox()

    @staticmethod
    def _create_future() -> ReplyFuture[Any]:
        return ReplyFuture()

    def _start_actor_loop(self) -> None:
        self._address.begin()
