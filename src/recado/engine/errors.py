"""What can go wrong between an actor and those who talk to it. `ActorDeadError` is pykka's own."""

import pykka
from pykka import ActorDeadError

__all__ = ["ActorDeadError", "AskTimeout", "HandlerCancelled", "MailboxFull", "UnhandledMessage"]


class MailboxFull(Exception):
    """The actor's mailbox is at its bound; the message was not taken."""


class AskTimeout(pykka.Timeout, TimeoutError):
    """No reply came within the time that the asker allowed; the actor may still handle the message."""


class UnhandledMessage(TypeError):
    """The actor has no handler for this type of message. Carries the type's name, never the message."""


class HandlerCancelled(Exception):
    """The handler was cancelled from within or without; the asker itself was not."""
