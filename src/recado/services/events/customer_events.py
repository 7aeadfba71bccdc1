"""Takes in customer events (C21): many of them in a commit, and who repeats one gets what is stored."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.events.customer_event import CustomerEvent, NewCustomerEvent
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.events import customer_events

IN_A_COMMIT: Final = 200
IN_FLIGHT: Final = 3  # commits: one is written while another is flushed; the last is for those who are no crowd
MOST_WAITING: Final = 5_000  # events, of up to 26 KB each


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is stored under the caller's `eventId`. `duplicate`: by an earlier request (C21.3)."""

    event: CustomerEvent
    duplicate: bool


class CustomerEvents:
    """A service (`start`, `stop`)."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._events: Batcher[NewCustomerEvent, Recorded] = Batcher(
            "customer events",
            self._store,
            clock=clock,
            max_rows=IN_A_COMMIT,
            max_queue=MOST_WAITING,
            concurrency=IN_FLIGHT,
            owner=attrgetter("organization_id"),
        )

    async def start(self) -> None:
        await self._events.start()

    async def stop(self) -> None:
        """Stores what was given."""
        await self._events.stop()

    def record(self, new: NewCustomerEvent) -> "asyncio.Future[Recorded]":
        """Store the event, unless its `event_id` is taken; known after the commit. Raises `Unavailable` under load."""
        return self._events.put(new)

    async def _store(self, batch: Sequence[NewCustomerEvent]) -> Sequence[Recorded | Exception]:
        async with self._db.hot.transaction() as connection:
            stored = await customer_events.store(connection, batch)
        taken = [_key(new) for new in batch if new.id not in stored]
        # Looked for after that commit: what was stored by others while it ran was not there for it to see.
        known = await customer_events.known(self._db.hot, taken) if taken else {}
        results: list[Recorded | Exception] = []
        for new in batch:
            event = stored.get(new.id)
            if event is not None:
                results.append(Recorded(event, duplicate=False))
            elif (event := known.get(_key(new))) is not None:
                # Its own id: an earlier run of this batch stored it, whose answer was lost.
                results.append(Recorded(event, duplicate=event.id != new.id))
            else:  # gone in between, past its time
                results.append(Unavailable("The event could not be stored: send it again."))
        return results


def _key(new: NewCustomerEvent) -> customer_events.EventKey:
    return (new.organization_id, new.env, new.event_id)
