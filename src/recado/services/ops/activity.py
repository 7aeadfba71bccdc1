"""Counts what commits tell of messages, for operators (C34.1): totals, and what senders and connections did lately.

Filled where a batch is committed, never in the turn of an actor. Nothing of it is stored: a restart forgets it.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.clock import Clock
from recado.domain.ops.recent_calls import RecentCalls
from recado.domain.ops.sender_activity import SenderActivity, SenderFailure
from recado.domain.senders.sender import SenderKey
from recado.engine.turns import in_pieces
from recado.storage.dispatch.settlements import Departed, Failed
from recado.storage.ops.ops import SenderId

MOST_SENDERS: Final = 20_000
MOST_CONNECTIONS: Final = 10_000
LAST_FALLEN: Final = 4_096
"""Failed messages of which it is remembered whose they were."""
AT_ONCE: Final = 500  # senders in a turn of the event loop


class ConnectionKey(NamedTuple):
    """An organization's connection to a provider. `gateway`: of those that senders share; None: their own."""

    organization_id: str
    env: str
    channel: str
    gateway: str | None


class Activity:
    """One for the process. `accepted`, `sent`: messages by channel; `failed`: by channel and code.

    `fallen`: how many messages of numbers failed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.accepted: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.failed: Counter[tuple[str, str]] = Counter()
        self.fallen = 0
        self._fallen: deque[SenderKey] = deque(maxlen=LAST_FALLEN)
        self._senders: dict[str, SenderActivity] = {}
        self._connections: dict[ConnectionKey, RecentCalls] = {}

    @property
    def minute(self) -> int:
        """The present one, since 1970."""
        return minute_of(self._clock.now())

    @property
    def connections(self) -> Mapping[ConnectionKey, RecentCalls]:
        """The last calls by connection."""
        return self._connections

    def sender(self, sender_id: str) -> SenderActivity | None:
        """What a number did lately; None: nothing that is known."""
        return self._senders.get(sender_id)

    def fallen_since(self, fallen: int) -> list[SenderId] | None:
        """The numbers of the messages that failed since the count was this; None: they are too many to remember."""
        count = self.fallen - fallen
        if count > LAST_FALLEN:
            return None
        return [(key.organization_id, key.sender_id) for key in islice(reversed(self._fallen), count)]

    def fallen_lately(self) -> Iterator[SenderKey]:
        """Those of the last failed messages whose numbers still show them among the last minutes' errors."""
        minute = self.minute
        for key in dict.fromkeys(self._fallen):
            activity = self._senders.get(key.sender_id)
            if activity is not None and activity.lately(minute)[1]:
                yield key

    def departed(self, rows: Sequence[Departed]) -> None:
        """These departures are committed."""
        minute = self.minute
        for row in rows:
            took = row.settled_at - row.sent_at
            milliseconds = 86_400_000 * took.days + 1_000 * took.seconds + took.microseconds // 1_000
            self.sent[row.channel] += 1
            if row.channel == NUMBERS_CHANNEL:
                self._sender(row.sender_id, minute).left(minute, max(0, milliseconds))
            self._connection(row.organization_id, row.env, row.channel, row.gateway).add(milliseconds, ok=True)

    def ended(self, rows: Sequence[Failed]) -> None:
        """These failures are committed."""
        self._ended(rows, late=False)

    def ended_late(self, rows: Sequence[Failed]) -> None:
        """So are these, of messages that had left: a report told it."""
        self._ended(rows, late=True)

    def _ended(self, rows: Sequence[Failed], *, late: bool) -> None:
        minute = self.minute
        for row in rows:
            code = str(row.cause.code)
            self.failed[row.channel, code] += 1
            if row.sender_id is not None and row.channel == NUMBERS_CHANNEL:
                failure = SenderFailure(row.failed_at, row.id, code)
                self._sender(row.sender_id, minute).fell(minute, failure, late=late)
                self.fallen += 1
                self._fallen.append(SenderKey(row.organization_id, row.env, row.channel, row.sender_id))

    def taken_on(self, channel: str, messages: int) -> None:
        """So many are accepted, in a commit of their own."""
        self.accepted[channel] += messages

    def counted(self, channel: str, sent: int, failed: Mapping[str, int]) -> None:
        """So many are committed of a channel whose messages go to many; `failed`: by code."""
        self.sent[channel] += sent
        for code, count in failed.items():
            self.failed[channel, code] += count

    def called(self, connection: ConnectionKey, seconds: float, *, ok: bool) -> None:
        """A call for one of these ended; `ok`: the provider took it."""
        self._connection(*connection).add(int(seconds * 1_000), ok=ok)

    def call_failed(self, connection: ConnectionKey, began: datetime) -> None:
        """A call was not taken by the provider."""
        took = self._clock.now() - began
        self._connection(*connection).add(int(took.total_seconds() * 1_000), ok=False)

    async def waits(self, queued: Mapping[str, int]) -> None:
        """So many messages of these are queued, and none of all others; who was idle for an hour is forgotten."""
        minute = self.minute
        async for some in in_pieces(list(queued.items()), AT_ONCE):
            for sender_id, count in some:
                self._sender(sender_id, minute).waits(minute, count)
        async for others in in_pieces([each for each in self._senders if each not in queued], AT_ONCE):
            for sender_id in others:
                activity = self._senders.get(sender_id)
                if activity is not None and activity.idle(minute):
                    del self._senders[sender_id]
                elif activity is not None:
                    activity.waits(minute, 0)

    def _sender(self, sender_id: str, minute: int) -> SenderActivity:
        found = self._senders.get(sender_id)
        if found is None:
            if len(self._senders) >= MOST_SENDERS:
                del self._senders[next(iter(self._senders))]
            found = self._senders[sender_id] = SenderActivity(minute)
        return found

    def _connection(self, organization_id: str, env: str, channel: str, gateway: str | None) -> RecentCalls:
        key = ConnectionKey(organization_id, env, channel, gateway)
        found = self._connections.get(key)
        if found is None:
            if len(self._connections) >= MOST_CONNECTIONS:
                del self._connections[next(iter(self._connections))]
            found = self._connections[key] = RecentCalls()
        return found


def minute_of(at: datetime) -> int:
    """Since 1970."""
    return int(at.timestamp()) // 60
