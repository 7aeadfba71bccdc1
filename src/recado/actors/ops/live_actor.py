"""A line of the supervisor tree that another process says, and what failed there (C34.1)."""

from datetime import datetime
from typing import Any

from recado.engine.child import Child, Node, State
from recado.engine.failure import Failure


def said_of_actor(child: Child) -> list[Any]:
    """Its line, without the place: it is another in each process."""
    state, mailbox, handled, restarts, failure, up_since = child.figures()
    since = None if up_since is None else up_since.isoformat()
    return [child.name, child.kind, state.value, mailbox, handled, restarts, said_of_failure(failure), since]


def actor_of(said: list[Any], parent: str) -> Node:
    """`parent`: the path below which it would be here."""
    name, kind, state, mailbox, handled, restarts, failure, since = said
    up_since = None if since is None else datetime.fromisoformat(since)
    return Node(
        f"{parent}/{name}", kind, name, State(state), mailbox, handled, restarts, failure_of(failure), up_since
    )  # fmt: skip


def said_of_failure(failure: Failure | None) -> list[str] | None:
    return None if failure is None else [failure.at.isoformat(), failure.type, failure.where]


def failure_of(said: list[str] | None) -> Failure | None:
    return None if said is None else Failure(datetime.fromisoformat(said[0]), said[1], said[2])
