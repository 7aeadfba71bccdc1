"""The bounded queue in front of an actor, in pykka's inbox shape. Putting the first message wakes the actor.

The bound counts tells and asks. What an actor owes itself (its stop, its own due timers) is let through, as refusing it
would lose it.
"""

import uuid
from collections import deque
from typing import Any, Final, Protocol

from pykka._envelope import Envelope
from pykka.messages import _ActorStop as ActorStop

from recado.engine.errors import ActorDeadError, MailboxFull
from recado.engine.runtime import Runtime

__all__ = ["CONTROL", "DEFAULT_LIMIT", "ActorStop", "Consumer", "Envelope", "Halt", "Mailbox"]

DEFAULT_LIMIT: Final = 10_000


class Halt:
    """Control message: end this incarnation after the message in hand and keep the mailbox for the next."""

    __slots__ = ()


CONTROL: Final = frozenset({ActorStop, Halt})

# An empty deque weighs more than the rest of an idle actor's address. Takes nothing, should anybody put something in.
_NOTHING: Final[deque[Envelope[Any]]] = deque(maxlen=0)


class Consumer(Protocol):
    """The actor's cell, as its mailbox and those who tell and ask see it."""

    runtime: Runtime

    def wake(self) -> None:
        """Look into the mailbox: a message has come while it rested."""

    def successor(self) -> "Mailbox | None":
        """For a message to a closed mailbox: the mailbox of the next incarnation, None when the actor is dead."""


class Mailbox:
    """First in, first out; belongs to the event loop's thread."""

    __slots__ = ("_limit", "_room", "_urn", "cell", "queue", "resting")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.queue: deque[Envelope[Any]] = deque()
        self.cell: Consumer | None = None
        # True while an empty mailbox's actor sleeps and has to be woken by the next message.
        self.resting = False
        self._limit = limit
        self._room = limit
        self._urn: str | None = None

    @property
    def urn(self) -> str:
        """The name that pykka gives to each actor: made when somebody asks, which is rare."""
        if self._urn is None:
            self._urn = uuid.uuid4().urn
        return self._urn

    def put(self, envelope: Envelope[Any]) -> None:
        """Take a message. Raises `MailboxFull` at the bound and `ActorDeadError` after the actor's end."""
        queue = self.queue
        # A closed mailbox and one that rests have no room: one comparison on the hot path covers all that is unusual.
        if len(queue) >= self._room:
            self._put_unusual(envelope)
        else:
            queue.append(envelope)

    def put_urgent(self, envelope: Envelope[Any], *, first: bool = False) -> None:
        """Take what the bound must not refuse (`first`: ahead of everything); dropped when the mailbox is closed."""
        if self.closed:
            return
        if self.resting:
            self._wake()
        if first:
            self.queue.appendleft(envelope)
        else:
            self.queue.append(envelope)

    def get(self) -> Envelope[Any]:
        """Take out the oldest message; IndexError when there is none (the runtime only looks when there is one)."""
        return self.queue.popleft()

    def empty(self) -> bool:
        """Whether no message waits."""
        return not self.queue

    def __len__(self) -> int:
        return len(self.queue)

    @property
    def closed(self) -> bool:
        """Whether the actor has ended and nothing is taken any more."""
        return self._room < 0

    def close(self) -> None:
        """Take nothing more."""
        self._room = -1

    def open(self, limit: int | None = None) -> None:
        """Take messages (again), up to `limit` where given."""
        self._limit = self._limit if limit is None else limit
        self._room = self._limit
        self.resting = False
        if self.queue is _NOTHING:
            self.queue = deque()

    def rest(self) -> None:
        """Nothing waits, and nobody looks: the next message has to wake the actor. Empty and open mailboxes only."""
        self.queue = _NOTHING
        self._room = 0
        self.resting = True

    def rise(self) -> None:
        """The actor looks again, or has ended."""
        if self.closed:
            self.resting = False
        elif self.resting:
            self.open()

    def refuse_all(self) -> int:
        """Empty the mailbox of a dead actor: orders count as obeyed, asks fail. Returns how many tells are dropped."""
        dropped = 0
        while self.queue:
            envelope = self.queue.popleft()
            if envelope.reply_to is None:
                dropped += type(envelope.message) not in CONTROL
            elif type(envelope.message) in CONTROL:
                envelope.reply_to.set(None)
            else:
                dead = ActorDeadError("the actor stopped before handling the message")
                envelope.reply_to.set_exception((ActorDeadError, dead, None))
        return dropped

    def _wake(self) -> None:
        assert self.cell is not None  # noqa: S101 - a cell sent it to rest
        self.cell.wake()

    def _put_unusual(self, envelope: Envelope[Any]) -> None:
        if self.resting:
            self._wake()
            self.put(envelope)
        elif self.closed:
            successor = None if self.cell is None else self.cell.successor()
            if successor is None:
                raise ActorDeadError("the actor has stopped")
            successor.put(envelope)
        elif isinstance(envelope.message, ActorStop):
            self.put_urgent(envelope)
        else:
            raise MailboxFull(f"{self._limit} messages wait already")
