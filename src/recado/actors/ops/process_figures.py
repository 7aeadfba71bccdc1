"""Figures of what a process has in memory: each process that sends has its own, and they are shown as one (C34.1)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from recado.actors.dispatch.call_room import CallRoom
from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.lane_context import LaneContext
from recado.domain.dispatch.breaker import BreakerState
from recado.engine.actor_cell import ActorCell
from recado.engine.supervisor import Supervisor
from recado.engine.turns import in_pieces
from recado.storage.core.connections.batch import COMMIT_BOUNDS, batchers

PASSED_AT_ONCE: Final = 2_500  # gateways or actors in a turn of the event loop


@dataclass(slots=True)
class ProcessFigures:
    """`accounts`: of gateways that senders have of their own, by channel and environment: tokens, calls in flight, and
    circuits that are not closed. `waiting`: rows that are not committed, by batch. `actors`: by kind how many, the
    messages in their mailboxes, and those in the fullest one.
    """

    accounts: dict[tuple[str, str], tuple[float, int, int]] = field(default_factory=dict)
    waiting: Counter[str] = field(default_factory=Counter)
    actors: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    @classmethod
    async def of(cls, context: LaneContext, root: Supervisor) -> Self:
        """Those of this process; `root`: of its actors."""
        found = cls()
        now, used_by = context.records.clock.monotonic(), {room: key for key, room in context.rooms.items()}
        async for some in in_pieces(list(context.own_gateways()), PASSED_AT_ONCE):
            rooms: dict[CallRoom, list[Gateway]] = {}
            for own in some:
                if own.account is not None:
                    rooms.setdefault(own.room, []).append(own)
            for room, together in rooms.items():
                tokens = sum([own.pacer.tokens(now) for own in together])
                in_flight = sum([own.in_flight for own in together])
                broken = sum([own.breaker.state is not BreakerState.CLOSED for own in together])
                found._add_accounts(used_by[room], tokens, in_flight, broken)
        for batcher in batchers():
            found.waiting[batcher.name] += batcher.pending
        for supervisor in _supervisors(root):
            async for children in in_pieces(supervisor.children(), PASSED_AT_ONCE):
                depths: dict[str, list[int]] = {}
                for cell in children:
                    if isinstance(cell, ActorCell):
                        depths.setdefault(cell.kind, []).append(len(cell.mailbox))
                for kind, each in depths.items():
                    found._add_actors(kind, len(each), sum(each), max(each))
        return found

    @classmethod
    def said_by(cls, said: Sequence[Any]) -> Self:
        """Those of another process."""
        accounts, waiting, actors = said
        return cls(
            {(channel, env): (tokens, in_flight, broken) for channel, env, tokens, in_flight, broken in accounts},
            Counter(waiting),
            {kind: (count, messages, deepest) for kind, count, messages, deepest in actors},
        )

    @property
    def said(self) -> list[Any]:
        """As another process hears them."""
        accounts = [[*key, *each] for key, each in self.accounts.items()]
        return [accounts, self.waiting, [[kind, *each] for kind, each in self.actors.items()]]

    def add(self, other: "ProcessFigures") -> None:
        """Count those of another process."""
        for key, each in other.accounts.items():
            self._add_accounts(key, *each)
        self.waiting.update(other.waiting)
        for kind, figures in other.actors.items():
            self._add_actors(kind, *figures)

    def _add_accounts(self, key: tuple[str, str], tokens: float, in_flight: int, broken: int) -> None:
        before = self.accounts.get(key, (0.0, 0, 0))
        self.accounts[key] = before[0] + tokens, before[1] + in_flight, before[2] + broken

    def _add_actors(self, kind: str, count: int, messages: int, deepest: int) -> None:
        before = self.actors.get(kind, (0, 0, 0))
        self.actors[kind] = before[0] + count, before[1] + messages, max(before[2], deepest)


Committed = tuple[str, int, float, list[int]]
"""The name of a batch, its rows, the seconds of its commits, and how many took how long, by `COMMIT_BOUNDS`."""


class BatchFigures:
    """What batches have committed since the start, also those of other processes, which have the same names."""

    def __init__(self) -> None:
        self._others: dict[str, Committed] = {}
        self._taken: dict[str, Committed] = {}

    def all(self) -> Iterable[Committed]:
        """In the order of their names."""
        found = dict(self._others)
        for each in batchers():
            found[each.name] = _sum(found.get(each.name), (each.name, each.rows, each.seconds, each.commits))
        return [found[name] for name in sorted(found)]

    def taken(self) -> list[Committed]:
        """What was counted since the last time, for another process that counts it (`add`)."""
        new = []
        for each in self.all():
            before = self._taken.get(each[0])
            if before is None or each[3] != before[3]:
                new.append(each if before is None else _sum(each, before, -1))
                self._taken[each[0]] = each
        return new

    def add(self, taken: Iterable[Sequence[Any]]) -> None:
        """Count what another process has counted, or nobody has taken."""
        for name, rows, seconds, commits in taken:
            self._others[name] = _sum(self._others.get(name), (name, rows, seconds, commits))


def _sum(one: Committed | None, other: Committed, times: int = 1) -> Committed:
    name, rows, seconds, commits = one or (other[0], 0, 0.0, [0] * (len(COMMIT_BOUNDS) + 1))
    counts = [a + times * b for a, b in zip(commits, other[3], strict=True)]
    return name, rows + times * other[1], seconds + times * other[2], counts


def _supervisors(parent: Supervisor) -> Iterator[Supervisor]:
    """This one and all below; those of actors have nothing else."""
    yield parent
    for child in parent.children():
        if isinstance(child, Supervisor):
            yield from _supervisors(child)
