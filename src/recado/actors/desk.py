"""The desk at which all number actors of a process work: what they share, and what outlives each of them."""

import asyncio
from dataclasses import dataclass

from recado.actors.calls import Calls
from recado.actors.number_view import Records
from recado.actors.sending import Sending
from recado.domain.day_usage import DayUsage
from recado.domain.moments import Moments
from recado.domain.pacing import Pacer


@dataclass(frozen=True, slots=True)
class Desk:
    """What all number actors share. `pacers` and `days` outlive the actors: a restarted one remembers what has left.

    `moments`: one wall clock for the departures of all, before and after a restart.

    `owner_since`: monotonic moment at which this process became the owner of its numbers.

    `reads`: admits a few actors at a time to the database. Thousands may wake at once, and callers use it too.
    """

    records: Records
    sending: Sending
    calls: Calls
    pacers: dict[str, Pacer]
    days: dict[str, DayUsage]
    moments: Moments
    owner_since: float
    reads: asyncio.Semaphore
