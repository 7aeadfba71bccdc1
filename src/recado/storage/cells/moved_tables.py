"""The tables that hold what belongs to one organization, as the database itself lists them.

A table that is added later is moved as well, where it names the organization; a test wants of every other one why it
stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("moved_tables")

STAYS: Final[Mapping[str, str]] = {
    "callbacks": "what providers brought, before it is known whom it is for",
    "claims": "notes of what the processes of one database have in hand",
    "dispatchers": "the epochs of earlier versions",
    "email_identities": "what the account of this cell at its provider was told",
    "hosts": "the leases of the processes of one database",
    "login_attempts": "known by e-mail address only, for a quarter of an hour",
    "schema_migrations": "the schema of one database",
    "shards": "the epochs of the processes of one database",
}
"""Tables that are no organization's, and why."""
CALLERS: Final = frozenset({"organizations", "accounts", "api_keys", "api_key_tokens", "sessions"})
"""By these a caller is known: they stay where they are until the end, so that he is told of the move."""
CLAIMS: Final = frozenset({"business_accounts", "sender_owners"})
"""Whose an account at a provider is: these stay until the end, too, so that nobody else takes it meanwhile."""
STAY_UNTIL_THE_END: Final = CALLERS | CLAIMS
MADE_BY_TRIGGERS: Final = frozenset(
    {"event_entries", "execution_signals", "journey_failures", "list_arrivals", "step_count_changes"}
)
"""What is written to other tables may add rows to these."""
_WHOSE: Final[Mapping[str, str]] = {
    "organizations": "id = $1",
    "account_invites": "account_id in (select id from accounts where organization_id = $1)",
}


@dataclass(frozen=True, slots=True)
class MovedTable:
    """One table.

    `columns`: in order, as SQL names them, but for those that the database fills in. `identity`: the column whose
    numbers it draws. `whose`: the condition for the rows of organization $1. `fires`: a trigger follows what is written
    to it.
    """

    name: str
    columns: tuple[str, ...]
    identity: str | None
    whose: str
    fires: bool

    @property
    def listed(self) -> str:
        return ", ".join(self.columns)

    @property
    def all_listed(self) -> str:
        return self.listed if self.identity is None else f"{self.listed}, {self.identity}"

    @property
    def ordered(self) -> str:
        """What lets a query keep the order of the numbers that are drawn anew."""
        return "" if self.identity is None else f"order by {self.identity}"


async def moved_tables(executor: Executor) -> list[MovedTable]:
    """First those that triggers follow: what these make elsewhere is removed before the others have their turn."""
    return [
        MovedTable(
            row["name"],
            tuple(row["columns"]),
            row["identity"],
            _WHOSE.get(row["name"], "organization_id = $1"),
            row["fires"],
        )
        for row in await executor.fetch(SQL.tables)
        if row["name"] not in STAYS and (row["owned"] or row["name"] in _WHOSE)
    ]
