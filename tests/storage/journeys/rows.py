"""Journeys, entries and executions as rows, for tests."""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.people import insert_people

from recado.domain.core.ids import CONTACT, EXECUTION, JOURNEY, IdSource
from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.journeys.graph import Reentry, definition_of
from recado.domain.journeys.journey import JourneyStatus
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys import executions
from recado.storage.journeys.entries import EntryResult, NewEntry, enter
from recado.storage.journeys.executions import Execution, PassedStep, get
from recado.storage.journeys.journeys import JOURNEYS, Journey

IDS = IdSource(SystemClock(), random.Random(9))
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ORGANIZATION = "org_" + "0" * 21
ENV = "test"

END = {"id": "end", "tipo": "fim"}

QUEUE = """
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, source_kind, due_at, ttl_ms,
        expires_at, held_base_ms, force)
    select 'org_7', 'msg_' || lpad(i::text, 21, '0'), 'test', 'chatapp', 'num_' || i % 5, 1,
        case when i % 10 = 0 then 'jrn_' || i % 70 else 'single' end,
        case when i % 10 = 0 then 'journey' else 'single' end, now(), 1, now(), 0, false
    from generate_series(1, 20000) i;
"""


async def insert_journey(
    executor: Executor,
    steps: Sequence[Mapping[str, Any]] = (END,),
    *,
    organization_id: str = ORGANIZATION,
    status: JourneyStatus = JourneyStatus.ATIVA,
    chain_id: str | None = None,
    versao: int = 1,
    **changes: Any,
) -> Journey:
    """A journey that begins with the first of these steps. A contact enters once, unless `reentrada` says otherwise."""
    journey_id = IDS.new(JOURNEY)
    document = {"gatilho": {"tipo": "api"}, "inicio": steps[0]["id"], "passos": list(steps)}
    definition = definition_of(document)
    return await JOURNEYS.insert(
        executor,
        Journey(
            **{
                "organization_id": organization_id,
                "env": ENV,
                "id": journey_id,
                "chain_id": chain_id or journey_id,
                "versao": versao,
                "status": status,
                "name": "Welcome",
                "fuso_horario": "UTC",
                "gatilho": document["gatilho"],
                "inicio": document["inicio"],
                "passos": tuple(document["passos"]),
                "reentrada": Reentry.NUNCA,
                "intervalo_reentrada_horas": 24,
                "canais": definition.channels,
                "fluxo": definition.flow,
                "updated_at": NOW,
                **changes,
            }
        ),
    )


def new_entry(
    contact_id: str,
    journey: Journey,
    *,
    at: datetime = NOW,
    interval: timedelta | None = None,
    origin: ExecutionOrigin = ExecutionOrigin.API,
    **data: Any,
) -> NewEntry:
    return NewEntry(
        journey_id=journey.id,
        chain_id=journey.chain_id,
        versao=journey.versao,
        first_step=journey.inicio,
        interval=interval,
        contact_id=contact_id,
        execution_id=IDS.new(EXECUTION),
        origin=origin,
        at=at,
        data=data,
    )


async def entered(executor: Executor, entry: NewEntry, organization_id: str = ORGANIZATION) -> EntryResult:
    """What became of one entry."""
    (result,) = await enter(executor, organization_id, ENV, [entry])
    return result


async def begun(
    executor: Executor, journey: Journey, count: int = 1, *, at: datetime = NOW, **columns: Any
) -> list[Execution]:
    """Executions of new contacts, which are due; `columns`: of the contacts."""
    where = (journey.organization_id, journey.env)
    known = await executor.fetchval("select count(*) from contacts")
    people = [{"id": IDS.new(CONTACT), **columns} for _ in range(count)]
    contact_ids = [person["id"] for person in people]
    await insert_people(executor, *where, people, first=known + 1)
    entries = [new_entry(contact_id, journey, at=at) for contact_id in contact_ids]
    await enter(executor, *where, entries)
    found = [await get(executor, (*where, journey.id, entry.execution_id)) for entry in entries]
    return [execution for execution in found if execution is not None]


async def save_locked(database: Database, *changed: Execution, steps: Sequence[PassedStep] = ()) -> None:
    """Save executions, each locked before, as whoever moves one does."""
    async with database.transaction() as connection:
        for each in changed:
            locked = await executions.lock(connection, each.key)
            assert locked is not None
            each.place = locked.place
        await executions.save(connection, changed, steps)
