"""What a failed database call means: the connection is lost, the moment is bad, or the data are.

The first two are worth another try of the same work; the third never is.
"""

from typing import Final

import asyncpg

from recado.domain.core.errors import Unavailable

# OSError covers refused connections and time-outs; class 57 is the server going down, coming up or cancelling;
# class 53 is the server out of connections, memory or disk. asyncpg reports a socket that broke between two messages as
# InternalClientError, and a primary that became a standby refuses writes with 25006.
_LOST = (
    OSError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
)
# What a server that is there and answers may say to a write, and what is wrong with it then.
_REFUSALS: Final = {"53100": "its disk is full", "53200": "it is out of memory", "25006": "it is read-only"}
_COLLISIONS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)


class Collided(Unavailable):
    """503: another transaction wanted the same rows, and this one had to give way; nothing of it was done."""

    def __init__(self) -> None:
        super().__init__("Another change wants the same records at this moment; try again shortly.")


def connection_lost(error: BaseException) -> bool:
    """Whether the server or the way to it failed: the statement may or may not have taken effect."""
    if isinstance(error, _LOST):
        return True
    # asyncpg has one class for a connection that is gone and for misuse of one; its data errors quote the value and
    # therefore are told apart first. A pooled connection that breaks between two statements counts as released.
    return (
        isinstance(error, asyncpg.InterfaceError)
        and not isinstance(error, ValueError)
        and any(text in str(error) for text in ("is closed", "is closing", "released back to the pool"))
    )


def connection_broke(error: BaseException) -> bool:
    """Whether the server or the way to it failed for no reason of the work: it was not too slow either."""
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    return (
        cause is not None
        and connection_lost(cause)
        and not isinstance(cause, TimeoutError | asyncpg.QueryCanceledError)
    )


def refusal_to_write(error: BaseException) -> str | None:
    """Why a server that answers does not write; None where that is not what the error says."""
    return _REFUSALS.get(getattr(error, "sqlstate", None) or "")


def collided(error: BaseException) -> bool:
    """Whether the server rolled the statement and its transaction back for the sake of another transaction."""
    return isinstance(error, _COLLISIONS)


def worth_repeating(error: BaseException) -> bool:
    """Whether the same work may succeed when it is tried again as it is."""
    return isinstance(error, Unavailable) or collided(error) or connection_lost(error)


def timed_out(error: BaseException) -> bool:
    """Whether a statement took too long: it may do so each time, for what it is about."""
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    return isinstance(cause, TimeoutError | asyncpg.QueryCanceledError)


def blames_the_statement(error: BaseException) -> bool:
    """Whether the SQL itself is wrong (class 42), so that no single row of a batch can be at fault."""
    return isinstance(error, asyncpg.SyntaxOrAccessError)
