"""Departures with what follows of them in one statement: events, captured prices, the totals of batches and campaigns.

Between several statements of a transaction the program has other turns, and all traffic of an environment waits for its
wallet meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from recado.domain.billing.prices import FAMILY_OF
from recado.storage.batches.totals import TotalsKey
from recado.storage.billing.holds import store
from recado.storage.billing.prices import Captured
from recado.storage.core.rows import Executor, pack
from recado.storage.dispatch.settlements import PARTS, SQL, Departed, columns_of
from recado.storage.webhooks import events
from recado.storage.webhooks.events import Emission

DEPART = SQL.sent.replace("{following}", ",\n" + PARTS.following).replace("{answer}", PARTS.answer)

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


async def depart(executor: Executor, rows: Sequence[Departed], following: Following) -> Followed:
    """Record departures, given in the order of their ids, with what follows of them: all or nothing.

    Raises `HoldsRefused` when it takes a look at a wallet first: less is held than is captured.
    """
    found = await store(executor, DEPART, *columns_of(rows), *_columns(following))
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


def _columns(following: Following) -> list[Any]:
    months = following.months or {}
    return [
        None if following.entry_ids is None else pack(following.entry_ids),
        *events.columns_of(following.emissions),
        pack([e.message_id for e in following.emissions for _ in e.deliveries]),
        _KINDS,
        _FAMILIES,
        list(months),
        list(months.values()),
    ]
