"""A cluster on the virtual clock: hosts with leases that share shards, and their database.

Leases, deadlines, hand-over and pace are the service's own rules; placement is the one that it would have
(`recado.domain.dispatch`). What is only a model, as the service has no cluster yet: hosts look at one another when they
renew, take what is theirs, and release what is another's. Time is the database's. A host has a clock that gains or
loses, and a present that is apart.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Final

from recado.domain.dispatch import leases
from recado.domain.dispatch.leases import RENEWED_EVERY, TTL, WINDOW, Lease, LeaseVerdict, closed_at, look, may_send
from recado.domain.dispatch.pacing import Pacer
from recado.domain.dispatch.placement import Placement
from recado.engine.clock import VirtualClock

DRIFT: Final = 100e-6  # most that a machine's clock gains or loses in a second
LEAST_WAY, MOST_WAY = 0.0002, 0.003  # seconds from a host to the database
READINGS: Final = 3  # of the database's clock
TICK: Final = 0.02  # seconds between the calls of a host that cannot renew
RATES: Final = (1, 20, 80)  # messages a second of senders whose departures are made
MOST_SAMPLES: Final = 300


@dataclass(frozen=True, slots=True)
class Rules:
    """What hosts obey: another rule than the service's shows that it is needed.

    `patience`: seconds for which a host that has the database again does not look at others.
    """

    opens_in: Callable[[float | None, float], float] = leases.opens_in
    lease: Callable[[Callable[[], float]], Lease] = Lease
    patience: float = 0.0


@dataclass(slots=True, eq=False)
class HostRow:
    """A life of a host, as the database knows it."""

    epoch: int
    name: str
    lease_until: float
    free_at: float | None = None
    ended: bool = False
    has: set[int] = field(default_factory=set)


@dataclass(slots=True)
class ShardRow:
    """Who has a shard, and when its last owner begins no call any more; None: there was none."""

    epoch: int | None = None
    closed_at: float | None = None
    wanted_by: str | None = None


@dataclass(slots=True)
class Seen:
    """What is counted; `refused`: hosts, for their clocks.

    Gaps in seconds, between the last call of an owner and the first of the next.
    """

    moved: int = 0
    renewals: int = 0
    refused: int = 0
    statements: Counter[int] = field(default_factory=Counter)  # by second
    paused: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))  # by shard, in all
    longest: float = 0.0
    least_gap: float = inf
    least_stamped: float = inf  # by the clocks of the two hosts
    broken: int = 0  # gates that overlapped
    samples: int = 0
    over_pace: int = 0  # of the samples


class Server:
    """The database: rows of hosts and shards. Nothing reaches it while it is away."""

    def __init__(self, clock: VirtualClock, placement: Placement, seen: Seen) -> None:
        self._now = clock.monotonic
        self._seen = seen
        self.placement = placement
        self.away = False
        self.shards = [ShardRow() for _ in placement.host_of]
        self._standing: OrderedDict[int, HostRow] = OrderedDict()  # the lease that ends first comes first
        self._epoch = 0
        self._to_take: defaultdict[str, set[int]] = defaultdict(set)
        self._to_release: defaultdict[int, set[int]] = defaultdict(set)
        self._place(range(len(self.shards)))

    def join(self, name: str) -> HostRow:
        """A new life of a host, which ends one before of the same name."""
        self._count()
        for row in [each for each in self._standing.values() if each.name == name]:
            self._end(row)
        self._epoch += 1
        row = self._standing[self._epoch] = HostRow(self._epoch, name, self._now() + TTL)
        self._place(self.placement.join(name))
        return row

    def renew(self, row: HostRow) -> bool:
        self._count()
        self._seen.renewals += 1
        if row.ended:
            return False
        row.lease_until = self._now() + TTL
        self._standing.move_to_end(row.epoch)
        return True

    def look_at_others(self) -> None:
        """End the epochs whose leases are over, as an index finds them."""
        while self._standing:
            row = next(iter(self._standing.values()))
            left = row.lease_until - self._now()
            if look(left=left, renewed=False, dead=False, take_over=False) is not LeaseVerdict.TAKE:
                return
            self._count()
            self._end(row)

    def take(self, row: HostRow) -> list[tuple[int, float | None]]:
        """Shards that are the host's now, and seconds until the one before begins no call any more."""
        taken = []
        for shard in sorted(self._to_take[row.name]):
            known = self.shards[shard]
            if known.epoch is not None:
                continue
            self._to_take[row.name].discard(shard)
            known.epoch = row.epoch
            row.has.add(shard)
            taken.append((shard, None if known.closed_at is None else known.closed_at - self._now()))
            self._seen.moved += known.closed_at is not None
        if taken:
            self._count()
        return taken

    def to_release(self, row: HostRow) -> list[int]:
        return sorted(self._to_release.pop(row.epoch, ()))

    def release(self, row: HostRow, shards: Iterable[int]) -> None:
        """The host has closed their gates."""
        self._count()
        for shard in shards:
            if self.shards[shard].epoch == row.epoch:
                self._free(row, shard, self._now())
        self._place(shards)

    def leave(self, row: HostRow) -> None:
        """The host has stopped in order."""
        self._count()
        if not row.ended:
            row.free_at = row.lease_until = self._now()
            self._end(row)

    def _end(self, row: HostRow) -> None:
        row.ended = True
        del self._standing[row.epoch]
        closed = closed_at(row.lease_until, free_at=row.free_at, dead_at=None)
        has = sorted(row.has)
        for shard in has:
            self._free(row, shard, closed)
        self._to_release.pop(row.epoch, None)
        self._place({*has, *self.placement.leave(row.name)})

    def _free(self, row: HostRow, shard: int, closed: float) -> None:
        row.has.discard(shard)
        self.shards[shard].epoch, self.shards[shard].closed_at = None, closed

    def _place(self, shards: Iterable[int]) -> None:
        for shard in shards:
            known, host = self.shards[shard], self.placement.host_of[shard]
            if known.wanted_by is not None:
                self._to_take[known.wanted_by].discard(shard)
            known.wanted_by = host
            holder = None if known.epoch is None else self._standing[known.epoch]
            if holder is not None and holder.name == host:
                self._to_release[holder.epoch].discard(shard)
                continue
            if host is not None:
                self._to_take[host].add(shard)
            if holder is not None:
                self._to_release[holder.epoch].add(shard)

    def _count(self) -> None:
        self._seen.statements[int(self._now())] += 1


class Gates:
    """Who may let messages of a shard depart, in truth; and for how long nobody did."""

    def __init__(self, clock: VirtualClock, seen: Seen) -> None:
        self._now = clock.monotonic
        self._seen = seen
        self._last: dict[int, tuple[Host, float | None]] = {}  # the owner, and when it closed the gate
        self.shut_since: dict[int, float] = {}

    def opened(self, shard: int, host: "Host") -> None:
        before = self._last.get(shard)
        self._last[shard] = host, None
        if before is not None:
            self._follows(*before, host)
        self._resumed(shard)

    def closed(self, shard: int, host: "Host") -> None:
        owner, closed = self._last.get(shard, (None, None))
        if owner is host and closed is None:
            last = host.last_call()
            self.paused(shard, host, last)
            self._last[shard] = host, last

    def paused(self, shard: int, host: "Host", since: float) -> None:
        """Nothing leaves any more, where the host has the gate still."""
        if self._last.get(shard) == (host, None):
            self.shut_since.setdefault(shard, since)

    def went_on(self, shard: int, host: "Host") -> None:
        """What the host has leaves again."""
        if self._last.get(shard) == (host, None):
            self._resumed(shard)

    def _resumed(self, shard: int) -> None:
        since = self.shut_since.pop(shard, None)
        if since is not None:
            pause = self._now() - since
            self._seen.paused[shard] += pause
            self._seen.longest = max(self._seen.longest, pause)

    def _follows(self, before: "Host", closed: float | None, host: "Host") -> None:
        now, seen = self._now(), self._seen
        last = before.last_call() if closed is None else closed
        gap = now - last
        seen.least_gap = min(seen.least_gap, gap)
        stamped = gap + host.offset - before.offset
        seen.least_stamped = min(seen.least_stamped, stamped)
        # A host cannot see of its clock what the way to the database hides.
        if gap < WINDOW - 1e-9 or stamped < WINDOW - MOST_WAY:
            seen.broken += 1
        if seen.samples < MOST_SAMPLES:
            seen.over_pace += not _in_pace(RATES[seen.samples % len(RATES)], last, now)
            seen.samples += 1


def _in_pace(rate: int, last: float, opened: float) -> bool:
    """Whether no sliding second holds too many of one sender's departures, as fast as two owners may let them go."""
    departures: list[float] = []
    for begin, end in ((last - 1.5, last), (opened, opened + 1.5)):
        pacer = Pacer(rate, start=begin)
        while (at := pacer.ready_at(begin)) <= end:
            pacer.take(at)
            departures.append(at)
            begin = at
    departures.sort()
    return all(later - at >= WINDOW - 1e-9 for at, later in zip(departures, departures[rate:], strict=False))


class Host:
    """One life of a host. `offset`: seconds by which its present is ahead of the database's."""

    def __init__(self, name: str, world: "World", offset: float) -> None:
        self.name = name
        self.offset = offset
        self.alive = True
        self.cut_off = False
        self._world = world
        self._clock, self._server, self._gates = world.clock, world.server, world.gates
        self._rate = 1.0 + world.random.uniform(-DRIFT, DRIFT)
        self._origin = world.random.uniform(0.0, 1e6)
        self.lease = world.rules.lease(self._elapsed)
        self._row: HostRow | None = None
        self._known_offset = 0.0
        self._open: dict[int, bool] = {}  # by shard: whether its gate was opened
        self._watched = False
        self._held_at = -inf  # when a call began last, while it could not renew
        self._renewed_since = -inf
        self._lapsed = False

    def start(self) -> None:
        """Take part, unless its clock is too far from the database's."""
        self._known_offset = self._measured()
        if not may_send(self._known_offset):
            self._world.seen.refused += 1
            return
        asked_at = self.lease.asked()
        self._row = self._server.join(self.name)
        self.lease.renewed(asked_at)
        self._world.later(self._world.random.uniform(0.0, RENEWED_EVERY), self._turn)

    def kill(self) -> None:
        self.alive = False
        for shard in self._open:
            self._gates.closed(shard, self)

    def stop(self) -> None:
        """End in order."""
        row = self._row
        self.kill()
        if row is not None:
            self._world.later(self._world.way(), lambda: self._server.leave(row))

    def last_call(self) -> float:
        """When it began its last call, by its lease alone."""
        return self._clock.monotonic() if self.lease.holds() else self._held_at

    def away(self) -> None:
        """The database is away: nothing can be claimed."""
        for shard, opened in self._open.items():
            if opened:
                self._gates.paused(shard, self, self._clock.monotonic())
        self._lapsed = True

    def back(self) -> None:
        """What it has may leave again, where its lease holds."""
        if self.alive and self._lapsed and not self._server.away and not self.cut_off and self.lease.holds():
            self._lapsed = False
            for shard, opened in self._open.items():
                if opened:
                    self._gates.went_on(shard, self)

    def _turn(self) -> None:
        if not self.alive:
            return
        self._world.later(RENEWED_EVERY, self._turn)
        asked_at, way = self.lease.asked(), self._world.way()
        self._world.later(way, lambda: self._reach(asked_at, way))

    def _reach(self, asked_at: float, way: float) -> None:
        row = self._row
        if row is None or not self.alive:
            return
        if self._server.away or self.cut_off:
            self._renewed_since = inf
            if not self._watched:
                self._watched = True
                self._watch()
            return
        now = self._clock.monotonic()
        self._renewed_since = min(self._renewed_since, now)
        if not self._server.renew(row):
            self._world.later(way, self._lost)
            return
        if now - self._renewed_since >= self._world.rules.patience:
            self._server.look_at_others()
        taken, release = self._server.take(row), self._server.to_release(row)
        self._world.later(way, lambda: self._answer(row, asked_at, taken, release))

    def _answer(self, row: HostRow, asked_at: float, taken: list[tuple[int, float | None]], release: list[int]) -> None:
        if not self.alive:
            return
        self.lease.renewed(asked_at)
        self.back()
        for shard in release:
            self._open.pop(shard, None)
            self._gates.closed(shard, self)
        if release:
            self._world.later(self._world.way(), lambda: self._server.release(row, release))
        for shard, busy_for in taken:
            self._open[shard] = False
            wait = max(0.0, self._world.rules.opens_in(busy_for, self._known_offset))
            self._world.later(wait / self._rate, lambda shard=shard: self._opens(shard))  # type: ignore[misc]

    def _opens(self, shard: int) -> None:
        if self.alive and self._open.get(shard) is False:
            self._open[shard] = True
            self._gates.opened(shard, self)

    def _lost(self) -> None:
        """Another took its place: it begins anew."""
        if not self.alive:
            return
        self.kill()
        self.lease.lost()
        self._world.start(self.name, self.offset)

    def _watch(self) -> None:
        """Call all the time, as long as the lease holds."""
        if self.alive and self.lease.holds() and (self._server.away or self.cut_off):
            self._held_at = self._clock.monotonic() + TICK
            self._world.later(TICK, self._watch)
            return
        self._watched = False
        if self.alive and not self.lease.holds():
            self._lapsed = True
            for shard, opened in self._open.items():
                if opened:
                    self._gates.paused(shard, self, self._held_at)

    def _measured(self) -> float:
        readings, way = [], self._world.way
        for number in range(READINGS):
            asked = number + 0.0
            there = asked + way()
            readings.append((asked + self.offset, there, there + way() + self.offset))
        return leases.offset_of(readings)

    def _elapsed(self) -> float:
        return self._origin + self._clock.monotonic() * self._rate


class World:
    """A cluster whose hosts all run, each with the shards that are its own.

    `most_offset`: their clocks are nearly so many seconds ahead of the database's, or behind.
    """

    def __init__(
        self, clock: VirtualClock, placement: Placement, *, random: Random, rules: Rules, most_offset: float
    ) -> None:
        self.clock = clock
        self.random = random
        self.rules = rules
        self.seen = Seen()
        self.server = Server(clock, deepcopy(placement), self.seen)
        self.gates = Gates(clock, self.seen)
        self.hosts: dict[str, Host] = {}
        for name in sorted(placement.hosts):
            self.start(name, random.choice((-1.0, 1.0)) * random.uniform(0.9, 1.0) * most_offset)

    def start(self, name: str, offset: float) -> None:
        """Begin a life of a host."""
        host = self.hosts[name] = Host(name, self, offset)
        host.start()

    def cut_off(self, name: str) -> None:
        """A host that lives, and does not reach the database any more."""
        self.hosts[name].cut_off = True
        self.hosts[name].away()

    def database_away(self) -> None:
        self.server.away = True
        for host in self.hosts.values():
            if host.alive:
                host.away()

    def database_back(self) -> None:
        self.server.away = False
        for host in self.hosts.values():
            host.back()

    def way(self) -> float:
        """Seconds from a host to the database, or back."""
        return self.random.uniform(LEAST_WAY, MOST_WAY)

    def later(self, seconds: float, callback: Callable[[], object]) -> None:
        self.clock.call_at(self.clock.monotonic() + seconds, callback)
