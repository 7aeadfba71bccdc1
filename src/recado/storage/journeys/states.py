"""The moves of a journey from state to state (C9.12), each in the transaction of its caller.

Who moves a journey locks it before anything that belongs to it: its executions, their messages. A caller's moves take
the journey as it was locked; the others name it, and are no error when it is in another state.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from recado.domain.core.ids import EXECUTION, lowest_id
from recado.domain.journeys.graph import TriggerKind
from recado.domain.journeys.journey import (
    JOURNEY_MACHINE,
    AutomaticPause,
    Hindrance,
    JourneyEvent,
    JourneyStatus,
)
from recado.domain.messages.owner_pauses import KEPT, OwnerPauses, with_pause
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.dispatch import withdrawals
from recado.storage.journeys import arrivals, segment_looks
from recado.storage.journeys.journeys import JOURNEYS, Journey

SQL = JOURNEYS.sql

JourneyKey = tuple[str, str, str]  # organization, environment, journey

FIRST: Final[JourneyKey] = ("", "", "")
TESTED_WITHIN: Final = timedelta(days=30)
"""Whose messages may be queued still when a journey is archived: tests that began since then."""


async def lock_chain(connection: Executor, journey: Journey) -> None:
    """Let nobody else move any version of the journey. Before the journey itself is locked."""
    await connection.execute(SQL.lock_chain, journey.organization_id, journey.env, journey.chain_id)


async def activate(connection: Executor, before: Journey, now: datetime) -> tuple[Journey, list[str]]:
    """A draft runs, a paused one goes on; answers also the versions whose place it took (C9.11.3).

    Its chain is locked. Raises `IllegalMove`.
    """
    status = JOURNEY_MACHINE.move(before.status, JourneyEvent.ACTIVATE)
    began, paused_at = before.ativada_em or now, before.pausada_em
    pauses = before.pausas if paused_at is None else with_pause(before.pausas, paused_at, now)
    running = replace(before, status=status, ativada_em=began, pausada_em=None, pausada_por=None, pausas=pauses)
    after = await JOURNEYS.save(connection, before, running, now)
    key = (after.organization_id, after.env, after.id)
    if before.ativada_em is not None:
        await segment_looks.resume(connection, key, now)
        return after, []
    match after.gatilho["tipo"]:
        case TriggerKind.LISTA:
            await arrivals.arm(connection, *key, after.gatilho["listId"], now)
        case TriggerKind.SEGMENTO:
            await segment_looks.begin(connection, *key, after.gatilho["segmentId"], now)
    runs = [JourneyStatus.ATIVA, JourneyStatus.PAUSADA]
    rows = await connection.fetch(SQL.supersede, after.organization_id, after.env, after.chain_id, after.id, runs, now)
    return after, sorted(row["id"] for row in rows)


async def pause(connection: Executor, before: Journey, now: datetime) -> Journey:
    """By a customer, also of one that paused itself: it waits for a person then. Raises `IllegalMove`."""
    status = JOURNEY_MACHINE.move(before.status, JourneyEvent.PAUSE)
    paused = replace(before, status=status, pausada_em=before.pausada_em or now, pausada_por=None)
    return await JOURNEYS.save(connection, before, paused, now)


async def archive(connection: Executor, before: Journey, now: datetime) -> Journey:
    """By a customer, for good: what it has queued is withdrawn in blocks after the commit. Raises `IllegalMove`."""
    status = JOURNEY_MACHINE.move(before.status, JourneyEvent.ARCHIVE)
    key = (before.organization_id, before.env, before.id)
    tests = await connection.fetch(SQL.queued_tests, *key, lowest_id(EXECUTION, now - TESTED_WITHIN))
    owners = [before.id, *[row["id"] for row in tests]]
    await withdrawals.note(connection, [withdrawals.of_archived(*key[:2], owner) for owner in owners])
    archived = replace(before, status=status, arquivada_em=now, pausas=(), withdrawn=True)
    return await JOURNEYS.save(connection, before, archived, now)


async def pause_itself(
    connection: Executor, key: JourneyKey, cause: AutomaticPause, *, revision: int | None = None
) -> OwnerPauses | None:
    """An execution is hindered, and so would be each other one (C9.8.4). None when it does not run any more.

    `revision`: of the journey when the execution ran into it; one that was moved since then stays as it is.
    """
    states = _states(JourneyEvent.HINDERED)
    told = (cause.document(), JourneyStatus.PAUSADA, cause.at, states, cause.lacked, cause.failed, revision)
    row = await connection.fetchrow(SQL.pause_itself, *key, *told)
    return None if row is None else OwnerPauses(*key, row["revision"], cause.at, tuple(row["pausas"]))


async def runs(executor: Executor, key: JourneyKey) -> bool:
    """Whether it is active."""
    found = await JOURNEYS.get(executor, *key)
    return found is not None and found.status is JourneyStatus.ATIVA


async def go_on_credited(connection: Executor, keys: Collection[JourneyKey], now: datetime) -> list[JourneyKey]:
    """Their wallets have coins again: those of them that paused themselves for want of coins go on (C9.7.5).

    One that somebody else has locked stays as it is.
    """
    states = _states(JourneyEvent.CREDITED)
    cause, runs = Hindrance.NO_BALANCE, JourneyStatus.ATIVA
    rows = await connection.fetch(SQL.go_on, *columns(sorted(keys), 3), states, cause, runs, now, 2 * KEPT)
    return sorted((row["organization_id"], row["env"], row["id"]) for row in rows)


async def archive_emptied(connection: Executor, key: JourneyKey, now: datetime) -> bool:
    """None of its executions is on its way: it is over, if it takes no entries (C9.11.3). False when it does."""
    states = _states(JourneyEvent.EMPTIED)
    return await connection.fetchval(SQL.archive_emptied, *key, JourneyStatus.ARQUIVADA, now, states) is not None


async def archive_idle(
    executor: Executor, now: datetime, after: JourneyKey = FIRST, *, limit: int
) -> tuple[list[str], JourneyKey]:
    """Of the next versions that take no entries, those without an execution under way are over (C9.11.3).

    So those are found that had none when another took their place, or whose last one ended at that moment. Answers
    their ids, and after which version the next look goes on: `FIRST` when there is none.
    """
    rows = await executor.fetch(SQL.archive_idle, JourneyStatus.ARQUIVADA, now, *after, limit)
    last = (rows[-1]["organization_id"], rows[-1]["env"], rows[-1]["id"]) if len(rows) == limit else FIRST
    return [row["id"] for row in rows if row["archived"]], last


def _states(event: JourneyEvent) -> list[JourneyStatus]:
    return list(JOURNEY_MACHINE.sources(event))
