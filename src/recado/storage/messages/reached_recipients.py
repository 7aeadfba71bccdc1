"""Whom organizations have lately sent to from senders that they share: whose it is what comes back there (C28.1)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import reduce
from typing import Protocol

from recado.domain.channels.policies import CARRIED, SHARED
from recado.domain.channels.source import Source
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("reached_recipients")


class Leaving(Protocol):
    """A message that leaves."""

    @property
    def env(self) -> str: ...
    @property
    def channel(self) -> str: ...


def any_shared(rows: Iterable[Leaving]) -> bool:
    """Whether any of these leaves, in live, from a sender that organizations share."""
    return any(row.channel in SHARED and row.env == "live" for row in rows)


def _reached(leaving: str) -> str:
    """The part of a statement that notes whom messages reach; `leaving`: the query of those that leave by it."""
    shared = ", ".join(f"'{each}'" for each in sorted(SHARED))
    cases = "".join(f" when '{sender}' then '{carrier}'" for sender, carrier in sorted(CARRIED.items()))
    carrier = f"case l.sender_id{cases} else l.channel end" if cases else "l.channel"
    parts = {"leaving": leaving, "shared": f"array[{shared}]::text[]", "carrier": carrier}
    return reduce(lambda sql, part: sql.replace(f"{{{part[0]}}}", part[1]), parts.items(), SQL.reached)


ANSWERED, REPORTED = _reached(SQL.answered), _reached(SQL.reported)
"""That part of `sent`, and of `apply`."""


async def dedicated(executor: Executor, accounts: Sequence[str]) -> dict[str, str]:
    """The organizations whose own sender these are."""
    rows = await executor.fetch(SQL.dedicated, list(accounts))
    return {row["dedicated_sender"]: row["id"] for row in rows}


async def senders_to(
    executor: Executor, source: Source, address_hashes: Sequence[bytes], since: datetime
) -> dict[bytes, list[tuple[str, str]]]:
    """(organization, sender) of each that has sent to these addresses since then, the last one first."""
    found: dict[bytes, list[tuple[str, str]]] = {}
    for row in await executor.fetch(SQL.senders_to, source.env, source.channel, list(address_hashes), since):
        found.setdefault(row["address_hash"], []).append((row["organization_id"], row["sender_id"]))
    return found
