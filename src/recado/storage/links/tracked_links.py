"""Links in messages (C27.1) as rows: stored in the commit of their message, found by code, counted in batches."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.domain.links.tracked import LINKS_KEPT, TrackedLink
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.rows import Executor, columns, in_blocks
from recado.storage.core.statements.sql import load

SQL = load("tracked_links")

UNIQUE: Final = "tracked_links_pkey"
PURGE_BLOCK: Final = 5_000


class CodeTaken(Exception):
    """Another message has the code already: nothing was stored, and others are to be drawn."""


class DrawnLink(NamedTuple):
    """A link of a message that leaves."""

    code: str
    organization_id: str
    env: str
    channel: str
    message_id: str
    url: str


class FoundLink(NamedTuple):
    """A link that somebody opens."""

    code: str
    organization_id: str
    env: str
    channel: str
    message_id: str
    url: str

    @property
    def message(self) -> tuple[str, str, str, str]:
        return self[1:5]

    @property
    def kind(self) -> tuple[str, str, str]:
        """Organization, environment and channel."""
        return self[1:4]


class Clicked(NamedTuple):
    """A message with links that were clicked. `status`: as it is now; `fresh`: none of them was clicked before."""

    status: str
    fresh: bool
    campaign_id: str | None


def with_links(statement: str, place: int) -> str:
    """A statement that accepts messages, as one that stores their links as well; `place`: of the first of three arrays.

    The arrays are those of `stored_columns`.
    """
    return statement.replace("/*+links*/", _numbered(SQL.in_accept, place))


def stored_columns(links: Mapping[str, Sequence[TrackedLink]]) -> list[list[Any]]:
    """Links by the id of their message, as `with_links` takes them."""
    return columns([(message_id, *link) for message_id, some in links.items() for link in some], 3)


async def insert(
    connection: Executor, organization_id: str, env: str, channel: str, links: Mapping[str, Sequence[TrackedLink]]
) -> None:
    """Store links by the id of their message, in the transaction that stores those.

    Raises CodeTaken when another message has the code of one: the transaction must then be undone.
    """
    given = stored_columns(links)
    if len(await connection.fetch(SQL.insert, organization_id, env, channel, *given)) < len(given[0]):
        raise CodeTaken


async def insert_drawn(executor: Executor, links: Sequence[DrawnLink]) -> set[str]:
    """Store links of messages that were stored before. Answers the codes that are stored; others have the rest."""
    return {row["code"] for row in await executor.fetch(SQL.insert_drawn, *columns(links, 6))}


async def by_code(executor: Executor, codes: Sequence[str], now: datetime) -> dict[str, FoundLink]:
    """Those of these codes that still live."""
    rows = await executor.fetch(SQL.by_code, list(codes), lowest_id(MESSAGE, now - LINKS_KEPT))
    return {row[0]: FoundLink(*row) for row in rows}


async def of_messages(executor: Executor, message_ids: Sequence[str]) -> dict[str, list[TrackedLink]]:
    """The links of those of these messages that have some."""
    found: dict[str, list[TrackedLink]] = {}
    for message_id, code, url in await executor.fetch(SQL.of_messages, list(message_ids)):
        found.setdefault(message_id, []).append(TrackedLink(code, url))
    return found


async def count(
    connection: Executor, clicks: Sequence[tuple[FoundLink, Sequence[datetime]]], *, months: Months = ALL_MONTHS
) -> dict[str, Clicked]:
    """Count clicks, in a transaction: on the links, and as the last interaction of contacts.

    `clicks`: of each link their moments, in order. Answers what was clicked, by message; what was erased meanwhile is
    not among it.
    """
    clicks = sorted(clicks, key=_by_code)  # in one order, so that no two processes wait for each other
    rows: Sequence[Any] = await months.fetch(
        connection,
        SQL.count,
        [link.message_id for link, _ in clicks],
        [link.code for link, _ in clicks],
        [len(moments) for _, moments in clicks],
        [moments[0] for _, moments in clicks],
        [moments[-1] for _, moments in clicks],
        list({link.message_id for link, _ in clicks}),
    )
    whose = {row[0]: row[3] for row in rows if row[3] is not None}
    if whose:
        people = [
            (link.organization_id, link.env, whose[link.message_id], moments[-1])
            for link, moments in clicks
            if link.message_id in whose
        ]
        organizations, envs, person_ids, moments = columns(people, 4)
        await connection.execute(SQL.lock_contacts, organizations, envs, person_ids)
        await connection.execute(SQL.touch, organizations, envs, person_ids, moments)
    return {message_id: Clicked(status, fresh, campaign_id) for message_id, status, campaign_id, _, fresh in rows}


async def erase(connection: Executor, message_ids: Sequence[str]) -> None:
    """These messages have no links any more (C12.6)."""
    await connection.execute(SQL.erase, list(message_ids))


async def purge(executor: Executor, until: datetime) -> None:
    """Remove the links of messages older than 180 days, in blocks."""
    await in_blocks(executor, SQL.purge, lowest_id(MESSAGE, until - LINKS_KEPT), block=PURGE_BLOCK)


def _by_code(click: tuple[FoundLink, Sequence[datetime]]) -> str:
    return click[0].code


def _numbered(text: str, place: int) -> str:
    return text.format(ids=f"${place}", codes=f"${place + 1}", urls=f"${place + 2}")
