"""For whom the database works at this moment: whose share of its connections a call takes.

The dispatcher says so for each request: its network while its credential is looked up, then its organization. Actors,
pollers and batchers have said nothing, and are the service itself.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

SERVICE: Final = ""
STRANGER: Final = "?"
"""Before the network of a caller who has not shown who it is: callbacks, public routes, a credential that is looked up.
Each network has a share of its own, so that none keeps the credentials of the others waiting."""

working_for: ContextVar[str] = ContextVar("working_for", default=SERVICE)
"""The id of an organization, `SERVICE`, or `STRANGER` and a network."""

before_commit: ContextVar[Callable[[Any], Awaitable[None]] | None] = ContextVar("before_commit", default=None)
"""What is written in each transaction of a request as its last statement; takes the connection."""
