"""Pages of a static list without other filters: `skip` costs the same at any depth, as long as the members stay (C5.1).

A look that goes deep passes every thousandth member and remembers it: a milestone, from which later pages begin. The
statement that reads a page also says whether the milestones still hold in its snapshot, and begins at the top if not.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from recado.storage.contacts.contacts import WIDE
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.wide_rows import bounded

SQL = load("list_pages")
PAGE: Final = bounded(SQL.page, WIDE, "p.id desc")

STEP: Final = 1_000  # members; what an index scan skips in 0.1 ms
LISTS: Final = 100  # whose milestones are remembered: some 10 kB each, with a `skip` of up to 100,000

_TOP: Final = ("", 0, "")  # of no version: the statement begins with the newest member

Key = tuple[str, str, str]
"""Organization, environment, list."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The members that end the first, the second, … thousand; `version`: of the list in which they do."""

    version: str = ""
    ids: tuple[str, ...] = ()


class Milestones:
    """What this process remembers of lists: of those that were asked for last."""

    def __init__(self, *, step: int = STEP, lists: int = LISTS) -> None:
        self.step = step
        self._lists = lists
        self._known: OrderedDict[Key, Passed] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def before(self, key: Key, skip: int) -> Passed:
        """Those that a page behind so many members is behind, as far as they are known."""
        known = self._known.get(key, Passed())
        return Passed(known.version, known.ids[: skip // self.step])

    def keep(self, key: Key, passed: Passed) -> None:
        """Remember these, unless more are known of the same version."""
        known = self._known.get(key, Passed())
        if known.version != passed.version or len(known.ids) < len(passed.ids):
            self._known[key] = passed
        self._known.move_to_end(key)
        if len(self._known) > self._lists:
            self._known.popitem(last=False)


async def page(
    executor: Executor, key: Key, milestones: Milestones, *, limit: int, skip: int = 0, after_id: str | None = None
) -> tuple[list[Any], int]:
    """The first rows of the contacts, newest first, and the size of the list; nobody when there is no such list.

    `after_id`: begin after this contact, member or not, instead of skipping.
    """
    if after_id is not None:
        rows = await executor.fetch(PAGE, *key, None, 0, after_id, 0, limit, milestones.step)
    else:
        rows = await _skipped(executor, key, milestones, limit, skip)
    return [row for row in rows if row["id"] is not None], rows[0]["size"] if rows else 0


async def _skipped(executor: Executor, key: Key, milestones: Milestones, limit: int, skip: int) -> Any:
    known = milestones.before(key, skip)
    start = (known.version, milestones.step * len(known.ids), known.ids[-1]) if known.ids else _TOP
    rows = await executor.fetch(PAGE, *key, *start, skip, limit, milestones.step)
    if rows:
        version, passed = rows[0]["version"], tuple(rows[0]["milestones"])
        ids = known.ids + passed if version == known.version else passed
        if ids:
            milestones.keep(key, Passed(version, ids))
    return rows
