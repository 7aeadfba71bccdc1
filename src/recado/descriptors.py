"""The open files that the system allows this process, and who has how many of them: a flood of connections takes none
from the database and from calls (C31).
"""

import resource
from typing import Final, NamedTuple, Self

from recado.actors.push.departures import IN_FLIGHT
from recado.actors.webhooks.webhook_fair_queue import MOST_CALLS
from recado.channels.http.outbound_http import CONNECTIONS

WANTED: Final = 65_536
_OURS: Final = 256  # the database, uploads, processes that read bodies, logs, what a provider is asked besides sends
LARGEST_RESERVE: Final = CONNECTIONS + IN_FLIGHT + MOST_CALLS + _OURS
_FEWEST: Final = 16
_FEWEST_ARRIVING: Final = 8


def attainable(hard: int) -> int:
    """What a process under this hard limit raises its own to."""
    return WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)


class Descriptors(NamedTuple):
    """`inbound`: connections that clients may have; `arriving`: those beside them that are not ready yet; `outbound`:
    connections of sends to a provider; `push`: devices whose notification is under way; `webhooks`: calls.
    """

    inbound: int
    arriving: int
    outbound: int
    push: int
    webhooks: int

    @property
    def calls(self) -> tuple[int, int, int]:
        """What is kept from clients: `outbound`, `push`, `webhooks`."""
        return self.outbound, self.push, self.webhooks

    @classmethod
    def of(cls, limit: int) -> Self:
        """Share `limit`: half of it, but no more than all calls need, is kept from clients.

        What clients have is also for the connections that are not ready yet: an eighth, or a few where that is little.
        """
        reserve = min(limit // 2, LARGEST_RESERVE)
        clients = limit - reserve
        arriving = max(clients // 8, min(_FEWEST_ARRIVING, clients // 2))
        outbound = min(CONNECTIONS, max(_FEWEST, (reserve - _OURS) // 2))
        push = min(IN_FLIGHT, max(_FEWEST, (reserve - _OURS) // 8))
        webhooks = min(MOST_CALLS, max(_FEWEST, reserve - _OURS - outbound - push))
        return cls(clients - arriving, arriving, outbound, push, webhooks)

    @classmethod
    def allowed(cls) -> Self:
        """Raise the limit of this process as far as it may, and share what it is."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = attainable(hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return cls.of(limit)
