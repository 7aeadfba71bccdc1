"""What providers say of flows by themselves: that one is throttled, blocked, cleared, or deprecated there (C19)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recado.channels.core.events import FlowNews
from recado.domain.core.clock import Clock
from recado.domain.flows.flow import FLOW_MACHINE, FlowEvent, FlowProviderStatus, FlowStatus, reported_event
from recado.domain.messages.changes import FlowChanged, OnChange
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.postgres import Database
from recado.storage.flows import flows
from recado.storage.flows.flows import FLOWS, Flow
from recado.storage.senders import numbers


class FlowReports:
    """Stores them. A report can be taken twice."""

    def __init__(self, database: Database, *, clock: Clock, changed: OnChange) -> None:
        self._database = database
        self._clock = clock
        self._changed = changed

    async def report(self, env: str, news: FlowNews) -> None:
        """News of a flow that is not here, or of a version before the one that was published last, is dropped."""
        for found in await self._meant(env, news):
            now = self._clock.now()
            change = FlowChanged(found.organization_id, found.env, found.id)
            async with changing(self._database, self._changed, change) as connection:
                before = await FLOWS.get_locked(connection, found.organization_id, found.env, found.id)
                if before is None or before.provider_flow_id != news.provider_flow_id:
                    continue
                await FLOWS.save(connection, before, with_news(before, news, now), now)
            self._changed(change)

    async def _meant(self, env: str, news: FlowNews) -> Sequence[Flow]:
        flow_id = news.provider_flow_id
        if news.business_account is not None:
            return await flows.of_business_account(self._database, env, flow_id, news.business_account)
        if news.account is None:
            return await flows.by_provider_id(self._database, env, flow_id, None)
        number = await numbers.by_provider_id(self._database, env, news.account)
        return [] if number is None else await flows.by_provider_id(self._database, env, flow_id, number.id)


def with_news(flow: Flow, news: FlowNews, now: datetime) -> Flow:
    """The flow after a report; one that is older than the latest, or that its state does not know, changes nothing.

    What the customer paused stays paused when the provider clears it.
    """
    if flow.reported_at is not None and news.at < flow.reported_at:
        return flow
    reported = FlowProviderStatus(news.status.upper())
    event = reported_event(flow.status, reported)
    if event is None:
        return flow
    after = replace(flow, provider_status=reported, reported_at=min(news.at, now))  # no clock ahead of ours shuts it
    if event is FlowEvent.CLEAR and flow.paused_by_customer:
        return after
    status = FLOW_MACHINE.move(flow.status, event)
    return replace(after, status=status, paused_by_customer=flow.paused_by_customer and status is FlowStatus.PAUSED)
