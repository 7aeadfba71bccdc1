"""How many connections there may be: in all, so that descriptors are left for the database and for calls, and from one
address (C31). Near a limit those are closed first that have been idle longest.
"""

from collections.abc import Reversible
from itertools import islice
from operator import attrgetter
from typing import Final, Protocol

from recado.http.wire.client_ip import ClientAddresses, network_of

IN_ALL: Final = 16_384
ARRIVING: Final = 2_048  # beside those in all
OF_ADDRESS: Final = 1_000
_LOOKED_AT = 4_096  # of the oldest connections, then of the newest: what one arrival may cost
_AT_ONCE = 8  # an eighth of a limit is closed at a time, so that a flood does not look for the oldest at each arrival


class Idle(Protocol):
    """A connection, as the limits see it."""

    @property
    def idle(self) -> bool:
        """Whether no request is under way, nor waits for its turn, and no answer is still being sent."""

    @property
    def unread(self) -> bool:
        """Whether nothing is left but an answer that its client has not taken."""

    @property
    def rested_since(self) -> tuple[bool, float]:
        """Whether it ever asked for something, and since when it waits: the smaller, the sooner it goes."""

    def close_idle(self) -> None:
        """End it, at once: nothing that its client does may put that off."""


class ConnectionLimits:
    """Counts connections. `refused`: how many found no place."""

    def __init__(self, in_all: int, of_address: int, addresses: ClientAddresses) -> None:
        """Trusted proxies of `addresses` speak for many callers: they count in all only.

        An address has at most half of what there is in all.
        """
        self._in_all = in_all
        self._of_address = max(1, min(of_address, in_all // 2))
        self._addresses = addresses
        self._by_network: dict[str, dict[Idle, None]] = {}  # the oldest first, as are those below
        self._networks: dict[Idle, str] = {}
        self._making_way: set[Idle] = set()  # until they are gone, a turn of the event loop later
        self.refused = 0

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len(self._networks) + len(self._making_way)

    def enter(self, connection: Idle, address: str | None) -> bool:
        """Give `connection` a place, if need be that of an idle one; False when none is to be had.

        `address`: of the peer, None for a local socket.
        """
        shared = address is None or self._addresses.trusts(address)
        network = "" if address is None or shared else network_of(address)
        group = self._by_network.get(network, {})
        full = not shared and len(group) >= self._of_address and not self._make_room(group, self._of_address)
        if full or (len(self._networks) >= self._in_all and not self._make_room(self._networks, self._in_all)):
            self.refused += 1
            return False
        self._by_network.setdefault(network, {})[connection] = None
        self._networks[connection] = network
        return True

    def leave(self, connection: Idle) -> None:
        """The connection is gone; safe to call twice."""
        self._making_way.discard(connection)
        network = self._networks.pop(connection, None)
        if network is None:
            return
        group = self._by_network[network]
        group.pop(connection, None)
        if not group:
            del self._by_network[network]

    def _make_room(self, among: Reversible[Idle], limit: int) -> bool:
        """Close some of the idle connections; whether any were found among the oldest, else among the newest.

        Where none is idle, those go whose answers are not taken: who never reads would keep everybody out. Those of the
        one who has most go first, then those that never asked, then those that rest longest.
        """
        idle: list[Idle] = []
        for state in (attrgetter("idle"), attrgetter("unread")):
            for order in (among, reversed(among)):
                idle = idle or [connection for connection in islice(order, _LOOKED_AT) if state(connection)]
        idle.sort(key=lambda connection: (-self._neighbours(connection), connection.rested_since))
        for connection in idle[: max(1, limit // _AT_ONCE)]:
            self.leave(connection)
            self._making_way.add(connection)
            connection.close_idle()
        return bool(idle)

    def _neighbours(self, connection: Idle) -> int:
        """How many connections the caller has; those that come through proxies have many callers."""
        network = self._networks[connection]
        return len(self._by_network[network]) if network else 0
