"""Totals of batches and campaigns: how many of their messages stand where, as deltas of the commits that move them.

Each message is in exactly one of the counts from `queued` on, that of the status it shows; `queued` also holds what is
being sent. So those counts sum up to `accepted` (C15.5, C15.6).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.channels.policies import shown
from recado.domain.messages.message import GenericStatus
from recado.storage.core.statements.moves import Moved
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("totals")

BATCH, CAMPAIGN = "batch", "campaign"

TotalsKey = tuple[str, str, str, str]
"""Organization, environment, `batch` or `campaign`, and its id."""

_ACCEPTED, _HELD, _CHARGED, _WIDTH = 0, 7, 8, 9
_COUNT_OF = {
    GenericStatus.QUEUED.value: 1,
    GenericStatus.SENDING.value: 1,
    GenericStatus.SENT.value: 2,
    GenericStatus.DELIVERED.value: 3,
    GenericStatus.READ.value: 4,
    GenericStatus.FAILED.value: 5,
    GenericStatus.ARCHIVED.value: 6,
}
_GONE = frozenset({GenericStatus.SENT.value, GenericStatus.DELIVERED.value, GenericStatus.READ.value})


@dataclass(frozen=True, slots=True)
class TotalChange:
    """A total after a change, and the number of its messages that are queued or sending."""

    key: TotalsKey
    queued: int


def deltas(moved: Sequence[Moved]) -> dict[TotalsKey, list[int]]:
    """What moves change, by total: accepted, queued, sent, delivered, read, failed, archived, held and charged coins.

    Moves that change nothing, as `sending` → `queued`, are left out.
    """
    found: dict[TotalsKey, list[int]] = {}
    for move in moved:
        for kind, key in ((BATCH, move.batch_id), (CAMPAIGN, move.campaign_id)):
            if key is not None:
                delta = found.setdefault((move.organization_id, move.env, kind, key), [0] * _WIDTH)
                _add(delta, move)
    return {key: delta for key, delta in found.items() if any(delta)}


def _add(delta: list[int], move: Moved) -> None:
    to_status = shown(move.channel, move.to_status)
    if move.from_status is None:
        delta[_ACCEPTED] += 1
        delta[_HELD] += move.coins
    else:
        delta[_COUNT_OF[shown(move.channel, move.from_status)]] -= 1
        if move.left_queue:
            delta[_HELD] -= move.coins
        if to_status in _GONE:
            delta[_CHARGED] += move.captured
        if move.money is not None:
            delta[_HELD] += move.money.kept - move.money.freed
            delta[_CHARGED] += move.money.adjusted
    delta[_COUNT_OF[to_status]] += 1


async def add(executor: Executor, changes: dict[TotalsKey, list[int]], now: datetime) -> list[TotalChange]:
    """Add deltas, in the transaction of the moves; `now`: when what is new among them was accepted."""
    if not changes:
        return []
    arguments = columns([(*key, *delta) for key, delta in changes.items()], 4 + _WIDTH)
    if any(delta[_ACCEPTED] for delta in changes.values()):
        rows = await executor.fetch(SQL.count_new, *arguments, now)
    else:
        rows = await executor.fetch(SQL.count_moved, *arguments)
    return [TotalChange((row["organization_id"], row["env"], row["kind"], row["key"]), row["queued"]) for row in rows]
