"""What is known of a failure: what may be shown (`Failure`) and what only the restart hook gets (`Crash`)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """When, which type of error and in which function: never the error's text, which may hold message content."""

    at: datetime
    type: str
    where: str

    @classmethod
    def of(cls, error: BaseException, at: datetime) -> "Failure":
        """Describe `error` by its type and the innermost function it came from (`module.function:line`)."""
        traceback = error.__traceback__
        if traceback is None:
            return cls(at, type(error).__qualname__, "unknown")
        while traceback.tb_next is not None:
            traceback = traceback.tb_next
        frame = traceback.tb_frame
        module = frame.f_globals.get("__name__", "unknown")
        return cls(at, type(error).__qualname__, f"{module}.{frame.f_code.co_qualname}:{traceback.tb_lineno}")


@dataclass(frozen=True, slots=True)
class Crash:
    """A failed incarnation, handed to the restart hook before the next one begins.

    `message` is what the actor had in hand, None when it failed while starting; it is not handled again by itself.
    """

    path: str
    key: object
    failure: Failure
    message: object = field(repr=False)
    error: BaseException = field(repr=False)


CrashHook = Callable[[Crash], Awaitable[None]]
"""Awaited between a crash and the restart; an error in it is logged and does not stop the restart."""
