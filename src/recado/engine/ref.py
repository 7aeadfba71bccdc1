"""The address of an actor: how others tell, ask and stop it. It survives the actor's restarts and passivation."""

from typing import Any, TypeVar

import pykka
from pykka._envelope import Envelope

from recado.engine.errors import ActorDeadError, MailboxFull
from recado.engine.mailbox import ActorStop, Mailbox
from recado.engine.reply import ReplyFuture

A = TypeVar("A", bound=pykka.Actor)


class ActorRef(pykka.ActorRef[A]):
    """Everything here returns at once; what `ask` and `stop` return is awaited. Call from the event loop's thread."""

    __slots__ = ("actor_class", "actor_inbox")

    def __init__(self, actor_class: type[A], inbox: Mailbox) -> None:
        # Not pykka's constructor: it keeps three more things for each actor, which the mailbox knows as well.
        self.actor_class = actor_class
        self.actor_inbox: Mailbox = inbox

    @property
    def actor_urn(self) -> str:  # type: ignore[override]  # read only
        """The actor's name, which lasts as long as its address."""
        return self.actor_inbox.urn

    def is_alive(self) -> bool:
        """Whether messages are taken: until the actor's stop, through its restarts."""
        return not self.actor_inbox.closed

    def tell(self, message: Any) -> None:
        """Send without waiting. Raises `MailboxFull` at the mailbox's bound, `ActorDeadError` after a stop."""
        self.actor_inbox.put(Envelope(message))

    def ask(self, message: Any, timeout: float | None = None) -> ReplyFuture[Any]:  # type: ignore[override]  # never blocks
        """Send and await the handler's return value, or its exception.

        Awaiting raises `MailboxFull`, `ActorDeadError`, or `AskTimeout` after `timeout` seconds of the actor's clock.
        """
        reply: ReplyFuture[Any] = ReplyFuture()
        try:
            self.actor_inbox.put(Envelope(message, reply))
        except (ActorDeadError, MailboxFull) as refusal:
            reply.fail(refusal)
        else:
            cell = self.actor_inbox.cell
            if timeout is not None and cell is not None:
                reply.expire_after(timeout, cell.runtime.clock)
        return reply

    def stop(self) -> ReplyFuture[bool]:  # type: ignore[override]  # never blocks
        """Stop once everything told before is handled; await True when it has stopped, False if it was dead already."""
        if not self.is_alive():
            dead: ReplyFuture[bool] = ReplyFuture()
            dead.set(False)
            return dead
        return self.ask(ActorStop()).stopped_by_us()

    def proxy(self) -> pykka.ActorProxy[A]:
        """Not offered: messages are values matched by type, and assignment through a proxy would block."""
        raise NotImplementedError("send a message instead")
