"""Executions whose webhook steps call a real endpoint on this machine, on a clock that the test sets."""

import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from tests.acme import acme
from tests.actors.webhooks.conftest import LOCAL, Receiver, listening
from tests.services.journeys.conftest import ENDS, Way, open_way
from tests.waiting import until

from recado.actors.journeys.step_caller import StepCaller
from recado.channels.http.guarded_http import GuardedHttp
from recado.channels.http.outbound_guard import OutboundGuard
from recado.channels.webhooks.webhook_signing import new_secret
from recado.domain.core.ids import WEBHOOK
from recado.domain.journeys.execution import ExecutionStatus
from recado.services.journeys.step_calls import StepCalls
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.journeys.executions import Execution
from recado.storage.webhooks import webhooks
from recado.storage.webhooks.webhooks import HEADERS_FIELD, SECRET_FIELD, Subscription

HANGS = 0.4  # seconds that a call may take
_WANTED = "select exists (select from step_calls where wanted_at is not null)"


def call(webhook_id: str, step_id: str = "call", following: str = "yes", failed: str = "no") -> dict[str, Any]:
    """A webhook step that leads to the ends `yes` and `no`."""
    return {"id": step_id, "tipo": "webhook", "webhookId": webhook_id, "proximo": following, "seFalhar": failed}


@dataclass
class Calling:
    """One organization whose journeys call a receiver. `secrets`: by subscription."""

    way: Way
    receiver: Receiver
    http: GuardedHttp
    keys: KeyRing
    caller: StepCaller
    secrets: dict[str, str] = field(default_factory=dict)

    def new_caller(self, calls: StepCalls | None = None) -> StepCaller:
        """That of another process."""
        return StepCaller(calls or self.way.step_calls, http=self.http, keys=self.keys, clock=self.way.clock)

    async def subscribe(self, url: str | None = None, headers: Mapping[str, str] | None = None, **fields: Any) -> str:
        """The id of a new subscription, which takes events of no journey."""
        way, webhook_id, secret = self.way, self.way.ids.new(WEBHOOK), new_secret(os.urandom)
        place = {"organization_id": way.organization.id, "record_id": webhook_id}
        plain = [{"key": key, "value": value} for key, value in (headers or {}).items()]
        async with way.db.transaction() as connection:
            await webhooks.insert(
                connection,
                Subscription(
                    organization_id=way.organization.id,
                    id=webhook_id,
                    env="test",
                    url=url or self.receiver.url,
                    secret_cipher=self.keys.encrypt(secret, **place, field=SECRET_FIELD),
                    headers_cipher=self.keys.encrypt(orjson.dumps(plain).decode(), **place, field=HEADERS_FIELD),
                    events=("wallet.depleted",),
                    updated_at=way.clock.now(),
                    **fields,
                ),
            )
        self.secrets[webhook_id] = secret
        return webhook_id

    async def begin(self, webhook_id: str, contact_id: str | None = None, **data: Any) -> Execution:
        """An execution that stands at a webhook step, and wants a call."""
        journey = await self.way.journey(call(webhook_id), *ENDS)
        execution = await self.way.begin(journey, contact_id, **data)
        await self.way.work()
        return execution

    async def go_on(self, after: timedelta = timedelta()) -> None:
        """Once so much time has passed: turns, the calls that they want, and the turns that follow from those."""
        await self.way.work(after)
        self.caller.hint()
        await until(self._none_wanted, "no call is wanted")
        await self.way.work()

    async def _none_wanted(self) -> bool:
        return not await self.way.db.fetchval(_WANTED)

    async def trail(self, execution: Execution) -> list[tuple[str, str]]:
        return [(step, result) for step, result, _ in await self.way.trail(execution)]

    async def over(self, execution: Execution) -> bool:
        return (await self.way.read(execution.key)).status is not ExecutionStatus.ATIVA

    async def rows(self) -> list[Any]:
        found: list[Any] = await self.way.db.fetch("select * from step_calls order by execution_id")
        return found

    async def neighbour(self) -> "Calling":
        """Another organization, whose calls the same process makes."""
        made = await acme(self.way.db, self.way.clock, self.way.ids)
        return replace(self, way=replace(self.way, organization=made.organization, number=made.number))


@pytest.fixture
async def calling(database: Database) -> AsyncIterator[Calling]:
    async with open_way(database) as way, listening() as receiver:
        keys = KeyRing.parse("test:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")
        guard = OutboundGuard(clock=way.clock, allowed=LOCAL)
        http = GuardedHttp(guard, clock=way.clock, connect_limit=HANGS, call_limit=HANGS)
        caller = StepCaller(way.step_calls, http=http, keys=keys, clock=way.clock)
        await caller.start()
        try:
            yield Calling(way, receiver, http, keys, caller)
        finally:
            await caller.stop()
