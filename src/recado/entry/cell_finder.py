"""Which cell has what a request shows: the cells are asked, and their answers kept for a moment.

The cells are the truth, and not the map: a move is one commit in a cell's database. A credential is in both cells while
its organization is on the way, and stands still in the one that it leaves. What was found is asked for again where it
was found; so a cell that is away keeps nobody waiting but those who were never seen, or are in it.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.entry.asked_cell import AskedCell
from recado.entry.places import CellList
from recado.storage.cells.whereabouts import Shown, Shows

KEPT: Final = 5.0  # seconds
KEPT_ON_THE_WAY: Final = 0.5  # seconds
CERTAIN: Final = 1.0
"""Seconds in which nobody can have left who did not stand still: a move takes longer from its begin to its end."""
MOST_KNOWN: Final = 50_000
MOST_NOWHERE: Final = 10_000  # apart, so that a stranger's guesses push out nobody
RETRY_AFTER: Final = 5  # seconds


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """`cell`: None where no cell has it. `moving`: it stands still there. `at`: monotonic seconds of the question."""

    cell: AskedCell | None
    moving: bool
    at: float


class CellFinder:
    """Finds cells. Of tokens and codes it keeps hashes only."""

    def __init__(self, cells: CellList, clock: Clock) -> None:
        self._cells = cells
        self._monotonic = clock.monotonic
        self._known: OrderedDict[bytes, Whereabouts] = OrderedDict()
        self._nowhere: OrderedDict[bytes, Whereabouts] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[Whereabouts]] = {}

    def known(self, shows: Shows, shown: Shown) -> Whereabouts | None:
        """What is at hand."""
        name, now = _name(shows, shown), self._monotonic()
        for kept in (self._known, self._nowhere):
            found = kept.get(name)
            if found is not None and now - found.at < (KEPT_ON_THE_WAY if found.moving else KEPT):
                kept.move_to_end(name)
                return found
        return None

    def is_certain(self, found: Whereabouts) -> bool:
        """Whether what is said there must be so: it cannot have moved since."""
        return not found.moving and self._monotonic() - found.at < CERTAIN

    async def find(self, shows: Shows, shown: Shown, by: str, *, held: bool = False) -> Whereabouts:
        """Ask. `by`: the caller, who waits for his own questions; `held`: neither cell has it during a move.

        Raises `Unavailable` where it is in no cell that answers, and may be in another one.
        """
        name = _name(shows, shown)
        task = self._asking.get(name)
        if task is None:
            task = self._asking[name] = asyncio.create_task(self._find(name, shows, shown, by, held), name="cell")
            task.add_done_callback(lambda done: self._asked(name, done))
        return await asyncio.shield(task)  # others wait for it, too

    def _asked(self, name: bytes, done: "asyncio.Task[Whereabouts]") -> None:
        del self._asking[name]
        if not done.cancelled():
            done.exception()  # those who waited know it, where any are left

    async def find_always(self, shows: Shows, shown: Shown, by: str) -> tuple[list[AskedCell], bool]:
        """Those that have it, first where it does not stand still, and whether no cell was away.

        The time that it takes does not tell whether anybody has it: all are asked, each time.
        """
        cells = list(self._cells.cells.values())
        said = await asyncio.gather(*(each.moving(shows, shown, by) for each in cells), return_exceptions=True)
        for error in said:
            if isinstance(error, BaseException) and not isinstance(error, Unavailable):
                raise error
        away = any(isinstance(each, BaseException) for each in said)
        having = [(cell, each) for cell, each in zip(cells, said, strict=True) if isinstance(each, bool)]
        having.sort(key=lambda each: each[1])
        return [cell for cell, _ in having], not away

    async def _find(self, name: bytes, shows: Shows, shown: Shown, by: str, held: bool) -> Whereabouts:
        found = await self._ask(name, shows, shown, by)
        if found.cell is None and self._cells.may_move:
            if held:
                raise _not_known()
            found = await self._ask(name, shows, shown, by)  # it may have changed cells between two answers
        kept, most = (self._nowhere, MOST_NOWHERE) if found.cell is None else (self._known, MOST_KNOWN)
        self._known.pop(name, None)
        self._nowhere.pop(name, None)
        kept[name] = found
        if len(kept) > most:
            kept.popitem(last=False)
        return found

    async def _ask(self, name: bytes, shows: Shows, shown: Shown, by: str) -> Whereabouts:
        now, before = self._monotonic(), self._known.get(name)
        others = list(self._cells.cells.values())
        there = None if before is None or before.cell is None else self._cells.cells.get(before.cell.cell.name)
        stands = False
        if there is not None:
            try:
                said = await there.moving(shows, shown, by)
            except Unavailable:
                stands = True  # as far as anybody knows
            else:
                if said is False:
                    return Whereabouts(there, False, now)
                stands = said is True
            others.remove(there)
        try:
            return await self._first(others, shows, shown, by, now, there if stands else None)
        except Unavailable:
            if not stands:
                raise
            return Whereabouts(there, True, now)

    async def _first(
        self, cells: Sequence[AskedCell], shows: Shows, shown: Shown, by: str, now: float, leaves: AskedCell | None
    ) -> Whereabouts:
        """The first that serves it; else the one that it is about to leave."""
        asked = {asyncio.ensure_future(each.moving(shows, shown, by)): each for each in cells}
        serves: AskedCell | None = None
        away, open_ = False, set(asked)
        try:
            while open_ and serves is None:
                done, open_ = await asyncio.wait(open_, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    if isinstance(each.exception(), Unavailable):
                        away = True
                    elif (said := each.result()) is not None:
                        serves, leaves = (serves, asked[each]) if said else (asked[each], leaves)
        finally:
            for each in open_:
                each.cancel()
        if serves is not None:
            return Whereabouts(serves, False, now)
        if leaves is None and away:
            raise _not_known()
        return Whereabouts(leaves, leaves is not None, now)


def _not_known() -> Unavailable:
    return Unavailable(
        "This cannot be found at the moment; nothing was done. Try again shortly.", retry_after=RETRY_AFTER
    )


def _name(shows: Shows, shown: Shown) -> bytes:
    text = shown if isinstance(shown, bytes) else shown.encode("utf-8", "surrogatepass")
    return hashlib.sha256(shows.encode() + b":" + text).digest()
