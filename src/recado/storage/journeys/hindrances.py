"""What journeys pause themselves for, and go on by, as rows: failures in a row, and wallets (C9.7.5, C9.8.4)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from recado.domain.journeys.journey import FAILURES_IN_A_ROW
from recado.domain.messages.message import FailureCode
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.journeys.states import JourneyKey

SQL: Final = load("hindrances")

FIRST: Final[JourneyKey] = ("", "", "")
"""Before all journeys."""

_OF_PEOPLE: Final = [FailureCode.OPTED_OUT.value, FailureCode.WITHDRAWN.value]
"""What ends a message because somebody wants it so: no failure of its step."""


class FailingStep(NamedTuple):
    """A step whose messages failed in a row; the last of them."""

    journey: JourneyKey
    step_id: str
    message_id: str


class WaitingJourney(NamedTuple):
    """A journey that paused for want of coins. `covered`: its wallet has by now what one of its messages lacked."""

    key: JourneyKey
    covered: bool


async def any_failures(executor: Executor) -> bool:
    """Whether there is something to take: at most times there is not."""
    return await executor.fetchval(SQL.any_failures) is not None


async def take_failures(connection: Executor, most: int) -> list[tuple[str, str]]:
    """Messages of journeys that failed for certain, by organization and id; taken with the commit of the caller."""
    rows = await connection.fetch(SQL.take_failures, most)
    return [(row["organization_id"], row["message_id"]) for row in rows]


async def failing(executor: Executor, failed: Sequence[tuple[str, str]]) -> list[FailingStep]:
    """The steps at which these failures end a row of `FAILURES_IN_A_ROW`, in the order of their journeys."""
    rows = await executor.fetch(SQL.failing, *columns(failed, 2), FAILURES_IN_A_ROW, _OF_PEOPLE)
    return [
        FailingStep((row["organization_id"], row["env"], row["journey_id"]), row["step_id"], row["message_id"])
        for row in rows
    ]


async def without_coins(executor: Executor, after: JourneyKey, most: int) -> list[WaitingJourney]:
    """Some that paused for want of coins, in the order of their keys."""
    rows = await executor.fetch(SQL.without_coins, *after, most)
    return [WaitingJourney((row["organization_id"], row["env"], row["id"]), row["covered"]) for row in rows]


async def label(executor: Executor, organization_id: str, env: str, about: str) -> str | None:
    """What a template or a number is called, also one that is deleted; None where it has no name."""
    found: str | None = await executor.fetchval(SQL.label, organization_id, env, about)
    return found
