"""What the lanes of a process know of past waits, to be told with each departure (C34.4). In memory alone.

A gate that holds many messages is remembered once for all of them; what holds one message by itself, by its id.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.dispatch.placement import shard_of
from recado.domain.dispatch.waits import Closings, Held, sum_up, sum_up_one
from recado.domain.messages.message import WaitReason
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.owners import Owners
from recado.services.dispatch.row import Row

MOST = 50_000  # messages that were held by themselves: some 15 MB
OF_ONE = 10_000  # of them, of an organization
TIMES = 32  # of a message

WHOLE: None = None
"""The sender, among the things of it that are closed: else a class, or a template's id."""
Thing = int | str | None


class Handed(NamedTuple):
    """What goes with numbers to another process: sender, shard and thing of what was closed, and when that was;
    organization, id and shard of messages that were held by themselves, and when.
    """

    closings: "Sequence[tuple[str, int, Thing, Closings]]" = ()
    messages: "Sequence[tuple[str, str, int, list[Held]]]" = ()


class Waits:
    """Outlives lanes. Beyond its bounds the oldest is forgotten, and told as a wait for a turn."""

    __slots__ = ("_closings", "_count", "_messages", "_most", "_of_one", "_shards")

    def __init__(self, *, most: int = MOST, of_one: int = OF_ONE) -> None:
        self._most, self._of_one = most, of_one
        self._closings: dict[str, dict[Thing, Closings]] = {}
        self._shards: dict[str, int] = {}  # of those of them that other processes may have
        self._messages: dict[str, dict[str, tuple[int | None, list[Held]]]] = {}  # by organization; with their shard
        self._count = 0

    # Things that hold many --------------------------------------------------------------------------------------------

    def remembers(self, sender_id: str) -> bool:
        """Whether anything of the sender is closed, or was, since its lane began."""
        return sender_id in self._closings

    def closed_for(self, sender_id: str, thing: Thing = WHOLE) -> WaitReason | None:
        """For what it was closed when it was last looked at."""
        closings = self._closings.get(sender_id)
        found = None if closings is None else closings.get(thing)
        return None if found is None else found.reason

    def note(
        self,
        sender: SenderKey,
        thing: Thing,
        reason: WaitReason | None,
        now: datetime,
        since: datetime | None = None,
    ) -> None:
        """It is closed for this, or open; see `Closings.note`."""
        closings = self._closings.get(sender.sender_id)
        if closings is None:
            if reason is None:
                return
            closings = self._closings[sender.sender_id] = {}
            if (shard := _shard(sender)) is not None:
                self._shards[sender.sender_id] = shard
        found = closings.get(thing)
        if found is None:
            if reason is None:
                return
            found = closings[thing] = Closings()
        found.note(reason, now, since)

    def rest(self, sender_id: str, *, gone: bool) -> None:
        """Its lane leaves memory: what is closed is remembered, unless the sender is gone."""
        closings = self._closings.get(sender_id)
        if closings is None:
            return
        for thing, found in list(closings.items()):
            if gone or found.reason is None:
                del closings[thing]
        if not closings:
            del self._closings[sender_id]
            self._shards.pop(sender_id, None)

    # Messages that are held by themselves -----------------------------------------------------------------------------

    @property
    def any_held(self) -> bool:
        """Whether a message that was held by itself is remembered: where none is, nobody asks."""
        return self._count > 0

    def held(self, row: Row, reason: WaitReason | None, since: datetime, until: datetime) -> None:
        """It waited for this from then on, until then at the latest; see `Held`."""
        of_one = self._messages.setdefault(row.organization_id, {})
        found = of_one.get(row.id)
        if found is None:
            self._make_room(of_one)
            shard = _shard(SenderKey(row.organization_id, row.env, row.channel, row.sender_id))
            found = of_one[row.id] = shard, []
            self._count += 1
        times = found[1]
        if len(times) < TIMES:
            times.append((since, until, reason))

    def passed(self, row: Row, now: datetime) -> None:
        """It waits for none of that any more, maybe earlier than was said."""
        times = self._times(row)
        if times and times[-1][1] > now:
            since, _, reason = times[-1]
            times[-1] = (since, now, reason)

    def gone(self, row: Row) -> None:
        """It left the queue for good."""
        of_one = self._messages.get(row.organization_id)
        if of_one is None or of_one.pop(row.id, None) is None:
            return
        self._count -= 1
        if not of_one:
            del self._messages[row.organization_id]

    def _times(self, row: Row) -> list[Held] | None:
        if not self._count:
            return None
        found = self._messages.get(row.organization_id, {}).get(row.id)
        return None if found is None else found[1]

    def _make_room(self, of_one: dict[str, tuple[int | None, list[Held]]]) -> None:
        """Who holds too much loses its own; when all together do, who adds, or else the first one."""
        if len(of_one) < self._of_one and self._count < self._most:
            return
        if of_one:
            del of_one[next(iter(of_one))]
        else:
            first, others = next(each for each in self._messages.items() if each[1])
            del others[next(iter(others))]
            if not others:
                del self._messages[first]
        self._count -= 1

    # Numbers that go to another process -------------------------------------------------------------------------------

    def closed_among(self, shards: Collection[int]) -> Handed:
        """What is or was closed of numbers of these, before their lanes rest: then what is open is forgotten."""
        among = ((sender_id, shard) for sender_id, shard in self._shards.items() if shard in shards)
        return Handed([(*each, thing, found) for each in among for thing, found in self._closings[each[0]].items()])

    def take(self, shards: Collection[int], closed: Handed) -> Handed:
        """All of the numbers of these, which is remembered here no more; `closed`: as `closed_among` told."""
        for sender_id in [sender_id for sender_id, shard in self._shards.items() if shard in shards]:
            del self._closings[sender_id], self._shards[sender_id]
        messages = [
            (organization_id, message_id, shard, times)
            for organization_id, of_one in self._messages.items()
            for message_id, (shard, times) in of_one.items()
            if shard is not None and shard in shards
        ]
        for organization_id, message_id, *_ in messages:
            of_one = self._messages[organization_id]
            del of_one[message_id]
            if not of_one:
                del self._messages[organization_id]
        self._count -= len(messages)
        return Handed(closed.closings, messages)

    def add(self, handed: Handed) -> None:
        """Remember what another process did, before the lanes of these begin here."""
        for sender_id, shard, thing, found in handed.closings:
            self._closings.setdefault(sender_id, {})[thing] = found
            self._shards[sender_id] = shard
        for organization_id, message_id, shard, times in handed.messages:
            of_one = self._messages.setdefault(organization_id, {})
            if message_id not in of_one:
                self._make_room(of_one)
                self._count += 1
            of_one[message_id] = shard, times

    # What is told -----------------------------------------------------------------------------------------------------

    def told(self, row: Row, sent_at: datetime, owners: Owners) -> str | None:
        """Milliseconds by reason, as JSON, of a message that departs now, `LEAST` after it was due or later.

        None: each reason held it for less than that. `owners`: batches and journeys, which know their pauses.
        """
        closings = self._closings.get(row.sender_id)
        whole = None if closings is None else closings.get(WHOLE)
        parts = () if closings is None else self._parts(row, closings)
        pauses, times = owners.pauses(row.owner, sent_at), self._times(row)
        waited = None
        if not parts and not pauses and not times:
            waited = sum_up_one(row.due_at, sent_at, whole)
        if waited is None:
            paused = [(since, until, WaitReason.OWNER_PAUSED) for since, until in pauses]
            layers = (() if whole is None else whole.until(sent_at), paused, *(each.until(sent_at) for each in parts))
            waited = sum_up(row.due_at, sent_at, (*layers, times or ()))
        return orjson.dumps(waited).decode() if waited else None

    def _parts(self, row: Row, closings: Mapping[Thing, Closings]) -> Sequence[Closings]:
        """What was closed of its sender, which is less than the whole."""
        found = (closings.get(thing) for thing in (row.klass, row.template_id) if thing is not None)
        return [each for each in found if each is not None]


def _shard(sender: SenderKey) -> int | None:
    """None: no other process has it."""
    return shard_of(sender) if sender.channel == NUMBERS_CHANNEL else None
