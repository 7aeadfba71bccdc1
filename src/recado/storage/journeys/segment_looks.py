"""Journeys that take in whoever comes to match a segment (C9.7): their looks as rows, and whom each found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recado.storage.core.statements.rows import Executor, in_blocks, reader
from recado.storage.core.statements.sql import load

SQL: Final = load("segment_looks")

FORGET_BLOCK: Final = 2_000


@dataclass(frozen=True, slots=True)
class SegmentLook:
    """A journey that looks at its segment. `after_id`: contacts up to this one have been looked at."""

    organization_id: str
    env: str
    journey_id: str
    segment_id: str
    due_at: datetime
    after_id: str

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.organization_id, self.env, self.journey_id)


_read: Final = reader(SegmentLook)


async def begin(
    connection: Executor, organization_id: str, env: str, journey_id: str, segment_id: str, now: datetime
) -> None:
    """A journey that this transaction activates looks at its segment, at once and from then on."""
    await connection.execute(SQL.begin, organization_id, env, journey_id, segment_id, now)


async def claim_due(executor: Executor, now: datetime, until: datetime, most: int) -> list[SegmentLook]:
    """Looks that are due, one of an organization. They are due again at `until`, unless somebody says otherwise."""
    return [_read(row) for row in await executor.fetch(SQL.claim_due, now, until, most)]


async def lose(executor: Executor, look: SegmentLook, matching: Sequence[str], last_id: str) -> None:
    """No other contact but these matches after `look.after_id` and up to `last_id`: in blocks, as they may be many."""
    known = (*look.key, list(matching), look.after_id, last_id)
    await in_blocks(executor, SQL.gone, *known, block=FORGET_BLOCK)


async def saw(executor: Executor, look: SegmentLook, matching: Sequence[str]) -> None:
    """These contacts match; the new ones arrive."""
    await executor.execute(SQL.saw, *look.key, list(matching))


async def go_on(executor: Executor, look: SegmentLook, after_id: str, due_at: datetime) -> None:
    """The look goes on behind this contact, or begins again with the first, at that moment."""
    await executor.execute(SQL.go_on, *look.key, after_id, due_at)


async def rest(executor: Executor, look: SegmentLook) -> None:
    """Until the journey goes on, which a person has paused."""
    await executor.execute(SQL.rest, *look.key)


async def resume(connection: Executor, key: tuple[str, str, str], now: datetime) -> None:
    """This transaction lets a paused journey go on: it looks at once, if it has rested since."""
    await connection.execute(SQL.resume, *key, now)


async def forget(executor: Executor, look: SegmentLook) -> None:
    """The journey takes nobody in any more."""
    await in_blocks(executor, SQL.forget_matches, *look.key, block=FORGET_BLOCK)
    await executor.execute(SQL.forget, *look.key)
