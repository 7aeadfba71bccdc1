"""Lists of the executions of a journey, newest first (C9.10).

A journey may have a million, and a filter may match the last of them only. So a page looks at so many of those that an
index finds, and no more: it is shorter then than it may be, and the next one begins where this one looked last.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from recado.domain.journeys.execution import ExecutionStatus
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import Executor, Page
from recado.storage.core.statements.sql import fragments
from recado.storage.core.statements.wide_rows import bounded, rows_of
from recado.storage.journeys.executions import Execution, read

SQL: Final = fragments("execution_pages")

MOST_LOOKED_AT: Final = 5_000  # executions, for a page of a filter that no index has


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """What a list shows: from `first_id` on, and before `before_id`. `step_id`: of those under way that stand there.

    `kept_from`: those that ended before are past their time (C32).
    """

    organization_id: str
    env: str
    journey_id: str
    first_id: str
    before_id: str
    kept_from: datetime
    status: ExecutionStatus | None = None
    contact_id: str | None = None
    step_id: str | None = None
    test: bool | None = None

    @property
    def impossible(self) -> bool:
        """Who is over stands nowhere."""
        return self.step_id is not None and self.status not in {None, ExecutionStatus.ATIVA}


async def reach(executor: Executor, wanted: ExecutionFilter, *, most: int = MOST_LOOKED_AT) -> str | None:
    """The last execution that a page looks at; None where it may look at all that an index finds.

    Such a page begins its list with it (`first_id`), and the list goes on before it.
    """
    if wanted.impossible or not _source(wanted)[1]:
        return None
    sql, arguments = reach_query(wanted, most)
    found: str | None = await executor.fetchval(sql, *arguments)
    return found


async def list_page(executor: Executor, wanted: ExecutionFilter, *, limit: int) -> Page[Execution]:
    """Newest first: one page, or what is read of it at once. It is not counted."""
    if wanted.impossible:
        return Page([], 0, estimated=False)
    sql, arguments = page_query(wanted, limit + 1)
    rows = await executor.fetch(sql, *arguments)
    items = [read(row) for row in rows[:limit]]
    return Page(items, 0, estimated=False, more=rows_of(rows) > len(items))


def page_query(wanted: ExecutionFilter, limit: int) -> tuple[str, list[Any]]:
    """The query of one page, and its arguments."""
    found, conditions = _source(wanted)
    text = SQL.page.replace("{found}", found).replace("{conditions}", "\n    ".join(conditions))
    return compose(bounded(text, ("entrada",), "p.id desc"), {**asdict(wanted), "limit": limit})


def reach_query(wanted: ExecutionFilter, most: int) -> tuple[str, list[Any]]:
    """The query of the last execution that is looked at, and its arguments."""
    found, _ = _source(wanted)
    return compose(SQL.reach.replace("{found}", found), {**asdict(wanted), "most": most})


def _source(wanted: ExecutionFilter) -> tuple[str, list[str]]:
    """The conditions that an index answers, and those that are looked at row by row."""
    asked = [] if wanted.test is None else [SQL.if_test if wanted.test else SQL.if_no_test]
    status = wanted.status if wanted.step_id is None else ExecutionStatus.ATIVA
    if status is not None:
        asked.append(SQL.if_active if status is ExecutionStatus.ATIVA else SQL.if_ended)
    if wanted.step_id is not None:
        asked.append(SQL.if_step)
    if wanted.contact_id is not None:
        return SQL.of_contact, [SQL.if_journey, *asked]
    # One of these serves: of several the one with fewer rows.
    index = next((each for each in (SQL.if_test, SQL.if_active, SQL.if_ended) if each in asked), None)
    if index is None:
        return SQL.of_journey, asked
    return f"{SQL.of_journey}\n    {index}", [each for each in asked if each != index]
