"""Flows (C19): content and state. `version` counts the edits of what was published, `revision` every change (C6.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import conflict
from recado.domain.core.ids import Identified
from recado.domain.flows.flow import FlowCategory, FlowProviderStatus, FlowStatus
from recado.storage.core.directory import Directory
from recado.storage.core.rows import Executor
from recado.storage.core.sql import load
from recado.storage.core.tables import Table, Unique

MAX_FLOWS: Final = 100  # of a number (C31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow(Identified):
    """One flow of a number. `provider_flow_id`: what the provider calls the version that was published last.

    `paused_by_customer`: what the provider clears stays paused.
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
    unseen=("paused_by_customer",),
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


FlowKey = tuple[str, str, str]  # organization, environment, flow


class FlowDirectory(Directory[FlowKey, Flow]):
    """Flows that exist, by (organization, environment, id), read through, at most 5 s old."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda key: FLOWS.get(executor, *key), clock=clock)
