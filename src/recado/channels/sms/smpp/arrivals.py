"""What came from an SMS centre and is not stored yet: in the order of its coming, bounded over all its connections."""

import asyncio
from collections import deque
from itertools import islice
from typing import Final, NamedTuple

from recado.channels.core.events import NotTaken, Status
from recado.channels.sms.smpp.connection import SmppConnection
from recado.channels.sms.smpp.pdu import Pdu

MOST_DELIVERIES: Final = 4_000
"""That wait for their answer: the SMS centre is told to come back with others."""
MOST_OCTETS: Final = 8 * 2**20
"""Of what those hold: a delivery may be of 64 KiB."""
MOST_REPORTS: Final = 10_000
"""Late answers: nothing more is read while there are so many, and a few that had been read already."""
AT_ONCE: Final = 500  # deliveries that are stored together
OCTETS_AT_ONCE: Final = 32 * 1024  # of them, with which this many are enough: reading texts holds the loop


class Arrival(NamedTuple):
    """What the SMS centre brought, and the connection on which it is answered."""

    connection: SmppConnection
    pdu: Pdu


class ArrivalBlock(NamedTuple):
    """What is stored together."""

    deliveries: list[Arrival]
    reports: list[Status | NotTaken]


class SmppArrivals:
    """`filled` is set while there is something to store."""

    def __init__(self) -> None:
        self.filled = asyncio.Event()
        self._deliveries: deque[Arrival] = deque()
        self._reports: list[Status | NotTaken] = []
        # With what is being stored.
        self._held = 0
        self._octets_held = 0
        self._reports_held = 0
        self._waiting: dict[SmppConnection, None] = {}  # to read on

    def bring(self, connection: SmppConnection, pdu: Pdu) -> bool:
        """Take a delivery; False where there is no room for it."""
        if self._held >= MOST_DELIVERIES or self._octets_held >= MOST_OCTETS:
            return False
        self._held += 1
        self._octets_held += pdu.content_length
        self._deliveries.append(Arrival(connection, pdu))
        self.filled.set()
        return True

    def report(self, report: Status | NotTaken) -> None:
        """Take what a late answer says: it comes once, and so there is always room for what was read."""
        self._reports_held += 1
        self._reports.append(report)
        self.filled.set()

    def may_read(self, connection: SmppConnection) -> bool:
        """Whether the connection may read on; if not, it is told when it may."""
        if self._reports_held < MOST_REPORTS:
            return True
        self._waiting[connection] = None
        return False

    def take(self) -> ArrivalBlock:
        """As much as is stored at once."""
        count = self._at_once()
        deliveries = [self._deliveries.popleft() for _ in range(min(count, len(self._deliveries)))]
        reports, self._reports = self._reports, []
        if not self._deliveries:
            self.filled.clear()
        return ArrivalBlock(deliveries, reports)

    def stored(self, block: ArrivalBlock) -> None:
        """It is no longer held here."""
        self._forget(block.deliveries)
        self._reports_held -= len(block.reports)
        if self._waiting and self._reports_held < MOST_REPORTS:
            waiting, self._waiting = self._waiting, {}
            for connection in waiting:
                connection.read_on()

    def not_stored(self, block: ArrivalBlock) -> None:
        """The SMS centre brings the deliveries again; late answers are stored with the next block."""
        self._forget(block.deliveries)
        self._reports = [*block.reports, *self._reports]
        if self._reports:
            self.filled.set()

    def _forget(self, deliveries: list[Arrival]) -> None:
        self._held -= len(deliveries)
        self._octets_held -= sum(pdu.content_length for _, pdu in deliveries)

    def _at_once(self) -> int:
        octets = 0
        for count, (_, pdu) in enumerate(islice(self._deliveries, AT_ONCE), start=1):
            octets += pdu.content_length
            if octets >= OCTETS_AT_ONCE:
                return count
        return AT_ONCE
