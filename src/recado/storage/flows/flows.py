"""Flows (C19): content and state. `version` counts the edits of what was published, `revision` every change (C6.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import conflict
from recado.domain.core.ids import Identified
from recado.domain.flows.flow import FlowCategory, FlowProviderStatus, FlowStatus, entry_screen
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table, Unique

MAX_FLOWS: Final = 100  # of a number (C31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow(Identified):
    """One flow of a number. `provider_flow_id`: what the provider calls the version that was published last.

    `paused_by_customer`: what the provider clears stays paused. `reported_at`: of when the latest report of its state
    was, by the provider's clock.
    """

    organization_id: str
    id: str
    env: str
    number_id: str
    name: str
    description: str | None = None
    status: FlowStatus = FlowStatus.DRAFT
    version: int = 1
    provider_flow_id: str | None = None
    provider_status: FlowProviderStatus = FlowProviderStatus.DRAFT
    provider_categories: tuple[FlowCategory, ...]
    flow_json: Mapping[str, Any]
    published_at: datetime | None = None
    paused_by_customer: bool = False
    reported_at: datetime | None = None
    revision: int = 1
    updated_at: datetime


FLOWS: Final = Table(
    "flows",
    Flow,
    "flow",
    own=load("flows"),
    convert={
        "status": FlowStatus,
        "provider_status": FlowProviderStatus,
        "provider_categories": lambda categories: tuple(map(FlowCategory, categories)),
    },
    unseen=("paused_by_customer", "reported_at"),
    unique=Unique(("number_id", "name"), "FLOW_NAME_TAKEN", "Another flow of this number has this name.", "flowId"),
    wide=("flow_json",),
)


async def insert(connection: Executor, flow: Flow) -> Flow:
    """Store a new flow. Run it in a transaction.

    Raises `Problem` FLOW_NAME_TAKEN (a name is unique in a number) or LIMIT_REACHED (100 in a number).
    """
    where = (flow.organization_id, flow.env, flow.number_id)
    await connection.execute(FLOWS.sql.lock_number, *where)
    if await connection.fetchval(FLOWS.sql.count_of_number, *where) >= MAX_FLOWS:
        raise conflict("LIMIT_REACHED", f"A number holds at most {MAX_FLOWS} flows.", limit=MAX_FLOWS)
    return await FLOWS.insert(connection, flow)


async def by_provider_id(executor: Executor, env: str, provider_flow_id: str, number_id: str | None) -> list[Flow]:
    """The flow that a provider's report is about, whichever organization owns it; none when that is not clear."""
    rows = await executor.fetch(FLOWS.sql.by_provider_id, env, provider_flow_id, number_id)
    return [FLOWS.read(row) for row in rows] if len(rows) == 1 else []


async def of_business_account(
    executor: Executor, env: str, provider_flow_id: str, business_account_id: str
) -> list[Flow]:
    """The flows that a report to a business account is about."""
    rows = await executor.fetch(FLOWS.sql.of_business_account, env, provider_flow_id, business_account_id)
    return [FLOWS.read(row) for row in rows]


@dataclass(frozen=True, slots=True)
class SendableFlow:
    """What messages ask of a flow. `screens`: their ids; `entry`: the one where it begins."""

    id: str
    number_id: str
    status: FlowStatus
    provider_flow_id: str | None
    screens: tuple[str, ...]
    entry: str


async def sendable(executor: Executor, organization_id: str, env: str, flow_id: str) -> SendableFlow | None:
    row = await executor.fetchrow(FLOWS.sql.sendable, organization_id, env, flow_id)
    if row is None:
        return None
    screens = tuple(row["screens"])
    entry = entry_screen(screens, row["routes"] or {})
    status = FlowStatus(row["status"])
    return SendableFlow(row["id"], row["number_id"], status, row["provider_flow_id"], screens, entry)


FlowKey = tuple[str, str, str]  # organization, environment, flow


class FlowDirectory(Directory[FlowKey, SendableFlow]):
    """Flows that exist, by (organization, environment, id), read through, at most 5 s old."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda key: sendable(executor, *key), clock=clock)
