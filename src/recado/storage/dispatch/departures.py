"""Departures with what follows of them in one statement: events, captured prices, totals, and what is due after them.

Between several statements of a transaction the program has other turns, and all traffic of an environment waits for its
wallet meanwhile.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from recado.domain.billing.prices import FAMILY_OF
from recado.domain.channels.policy import Deadline
from recado.storage.batches.totals import TotalsKey
from recado.storage.billing.holds import store
from recado.storage.billing.prices import Captured
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.rows import Executor, pack, pack_moments, pack_numbers
from recado.storage.dispatch.settlements import PARTS, Departed, captures_of, columns_of, look_ups_of, sent
from recado.storage.messages.reached_recipients import ANSWERED, any_shared
from recado.storage.webhooks import events
from recado.storage.webhooks.events import Emission

_PARAMETER: Final = re.compile(r"\$(\d+)")


class _Statement:
    """One that has some of the parts: only the parameters that these name."""

    def __init__(self, text: str) -> None:
        self._used = sorted({int(number) for number in _PARAMETER.findall(text)})
        places = {number: place for place, number in enumerate(self._used, 1)}
        self.text = _PARAMETER.sub(lambda found: f"${places[int(found[1])]}", text)

    def arguments(self, every: Sequence[Any]) -> list[Any]:
        """Those that it takes."""
        return [every[number - 1] for number in self._used]


_ALL: Final = {
    "planned": PARTS.planned,
    "told": PARTS.told,
    "totals": ",\n" + PARTS.totals,
    "emptied": PARTS.emptied,
    "planned_rows": " + (select count(*) from planned)",
    "told_rows": " + (select count(*) from emitted) + (select count(*) from told)",
    "due": f"\n{PARTS.due}",
    "due_rows": " + (select count(*) from due)",
    "reached": f"\n{ANSWERED},",
    "reached_rows": " + (select count(*) from reached)",
}


def _departing(*without: str) -> _Statement:
    """The statement, but for some of its parts."""
    parts = {name: "" if name.removesuffix("_rows") in without else part for name, part in _ALL.items()}
    return _Statement(sent(accounts=47, following=",\n" + PARTS.following, answer=PARTS.answer, **parts))


DEPART, DEPART_WITH_MORE = _departing("due", "reached"), _departing()
"""The second where some have deadlines, or a sender that organizations share."""
_OF_SOME: Final = ("planned", "told", "totals", "emptied", "due")
PLAIN, PLAIN_FROM_SHARED = _departing(*_OF_SOME, "reached"), _departing(*_OF_SOME)
"""Where nobody is told and nothing is totaled, planned or due: a part takes its time also where it has no rows."""

_KINDS, _FAMILIES = list(FAMILY_OF), list(FAMILY_OF.values())


@dataclass(frozen=True, slots=True)
class Following:
    """What follows of each departure, if it moves its message.

    `emissions`: of those whose event somebody takes. `entry_ids`: of the ledger, one for each departure in ascending
    order; None when nothing is billed. `months`: by organization, in which its units count.
    """

    emissions: Sequence[Emission] = ()
    entry_ids: Sequence[str] | None = None
    months: Mapping[str, date] | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """`left`: messages that were left alone, as another statement changed them at the same moment, or a report was
    faster; `captured`: the month's volumes; `emptied`: totals of which nothing is queued or sending any more."""

    left: frozenset[str]
    captured: tuple[Captured, ...]
    emptied: tuple[TotalsKey, ...]


async def depart(
    executor: Executor, rows: Sequence[Departed], following: Following, *, months: Months = ALL_MONTHS
) -> Followed:
    """Record departures, given in the order of their ids, with what follows of them: all or nothing.

    Raises `HoldsRefused` when it takes a look at a wallet first: less is held than is captured.
    """
    arguments = [*columns_of(rows), *_entries(following), *captures_of(rows), *_columns(following)]
    deadlines = [(row, each) for row in rows for each in row.deadlines]
    arguments += _deadlines(deadlines)
    arguments += look_ups_of(rows)
    more = bool(deadlines) or any_shared(rows)
    if not (deadlines or following.emissions or any(row.totaled or row.planned for row in rows)):
        statement = PLAIN_FROM_SHARED if more else PLAIN
    else:
        statement = DEPART_WITH_MORE if more else DEPART
    ids = [row.id for row in rows]
    found = await store(months.fetch(executor, statement.text, ids, *statement.arguments(arguments)))
    left, captured, emptied = set(), [], []
    for row in found:
        match row["answer"]:
            case "left":
                left.add(row["key"])
            case "volume":
                captured.append(Captured(row["organization_id"], row["kind"], row["month"], row["number"]))
            case "emptied":
                emptied.append((row["organization_id"], row["env"], row["kind"], row["key"]))
    return Followed(frozenset(left), tuple(captured), tuple(emptied))


def _entries(following: Following) -> list[str | None]:
    return [None if following.entry_ids is None else pack(following.entry_ids)]


def _columns(following: Following) -> list[Any]:
    months = following.months or {}
    return [
        *events.columns_of(following.emissions),
        pack([e.message_id for e in following.emissions for _ in e.deliveries]),
        _KINDS,
        _FAMILIES,
        list(months),
        list(months.values()),
    ]


def _deadlines(deadlines: Sequence[tuple[Departed, Deadline]]) -> list[Any]:
    return [
        pack([row.organization_id for row, _ in deadlines]),
        pack([row.env for row, _ in deadlines]),
        pack([row.channel for row, _ in deadlines]),
        pack([row.id for row, _ in deadlines]),
        pack([each.kind for _, each in deadlines]),
        pack_moments([each.due_at for _, each in deadlines]),
        pack_numbers([int(each.holds_rest) for _, each in deadlines]),
    ]
