"""Answers that people who opted out by a keyword are owed: rows of the commit that records what they wrote (C28.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recado.storage.core.statements.rows import Executor, columns, reader
from recado.storage.core.statements.sql import load

SQL = load("opt_out_replies")

Key = tuple[str, str, str]
"""Organization, environment, contact."""

BEFORE_ALL: Key = ("", "", "")


@dataclass(frozen=True, slots=True)
class Owed:
    """One contact's answer, from the sender that it wrote to. `phone`: None when the contact is gone."""

    organization_id: str
    env: str
    channel: str
    contact_id: str
    sender_id: str
    asked_at: datetime
    phone: str | None = field(default=None, repr=False)

    @property
    def key(self) -> Key:
        return (self.organization_id, self.env, self.contact_id)


_read = reader(Owed)


async def owe(connection: Executor, answers: Sequence[Owed]) -> None:
    """Note answers, in the transaction of the refusals; of several for a contact the last one counts."""
    last = {each.key: each for each in answers}
    rows = [(*key, last[key].channel, last[key].sender_id, last[key].asked_at) for key in sorted(last)]
    if rows:
        await connection.execute(SQL.owe, *columns(rows, 6))


async def owed(executor: Executor, after: Key, limit: int) -> list[Owed]:
    """The next answers after a contact's, in the order of their keys."""
    return [_read(row) for row in await executor.fetch(SQL.owed, *after, limit)]


async def settle(executor: Executor, done: Sequence[Owed]) -> None:
    """Forget answers that are messages now, or never will be."""
    if done:
        await executor.execute(SQL.settle, *columns([(*each.key, each.asked_at) for each in done], 4))
