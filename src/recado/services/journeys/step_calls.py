"""Calls of webhook steps (C9.13): which steps want one, what it tells, and what it came to.

A turn that decides to call leaves a row, and its execution waits. Whoever makes the call claims the row and hands back
what was answered: that lets the execution be due, which decides by it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.core.clock import Clock
from recado.domain.core.events import JOURNEY_ACTION
from recado.domain.core.ids import DELIVERY, EVENT, IdSource
from recado.domain.journeys.journey import JourneyStatus
from recado.domain.journeys.steps import WebhookStep
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.services.journeys.standing import Standing
from recado.services.webhooks.webhook_payload import enveloped
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.moves import AfterCommit
from recado.storage.journeys import step_calls
from recado.storage.journeys.step_calls import CallResult, ClaimedCall, ToldCall, WantedCall
from recado.storage.webhooks import webhooks
from recado.storage.webhooks.webhooks import QUEUES, Subscription


@dataclass(frozen=True, slots=True)
class CallToMake:
    """A claimed call: whom it goes to, and what it says."""

    call: ClaimedCall
    subscription: Subscription
    body: bytes = field(repr=False)

    @property
    def attempt(self) -> int:
        """1 for the first of its step."""
        return self.call.made + 1

    @property
    def idempotency_key(self) -> str:
        """By which its receiver knows it again, in whichever attempt."""
        return f"{self.call.execution_id}:{self.call.step_id}"


class StepCalls:
    """Both hints are given after a commit. `wanted`: calls are to be made; `due`: executions have their answers."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        ids: IdSource,
        wanted: Callable[[], None],
        due: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._wanted = wanted
        self._due = due

    async def want(self, connection: Connection, standing: Sequence[Standing], now: datetime) -> AfterCommit:
        """A call is to be made of the webhook step of each, in the commit in which it waits for that."""
        calls = [self._call(each) for each in standing]
        if not calls:
            return _nothing
        await step_calls.want(connection, calls, now)
        return self._wanted

    def _call(self, standing: Standing) -> WantedCall:
        execution, step = standing.execution, standing.step
        if not isinstance(step, WebhookStep):
            raise TypeError(f"a step {type(step).__name__} calls nobody")
        return WantedCall(
            organization_id=execution.organization_id,
            env=execution.env,
            journey_id=execution.journey_id,
            execution_id=execution.id,
            step_id=step.id,
            webhook_id=step.webhook_id,
            event_id=self._ids.new(EVENT),
            delivery_id=self._ids.new(DELIVERY),
        )

    # Who makes them ---------------------------------------------------------------------------------------------------

    async def release(self, before: datetime | None) -> int:
        """Calls that were begun before a moment, or all, are to be made once more: nobody will answer for them."""
        return await step_calls.release(self._db.hot, before)

    async def waiting(self, after: SubscriptionKey, most: int) -> list[SubscriptionKey]:
        """The next subscriptions of which calls are to be made."""
        return await step_calls.waiting(self._db.hot, after, most)

    async def claim(self, rooms: Mapping[SubscriptionKey, int]) -> tuple[list[CallToMake], Counter[SubscriptionKey]]:
        """Up to so many calls of each subscription, and how many were found: some of those are not to be made.

        Raises `Unavailable`.
        """
        claimed = await step_calls.claim(self._db.hot, rooms, self._clock.now())
        found = Counter(SubscriptionKey(each.organization_id, each.webhook_id) for each in claimed)
        if not claimed:
            return [], found
        told = await step_calls.told(self._db.hot, claimed)
        subscriptions = await webhooks.of_keys(self._db.hot, found)
        to_make, others = [], []
        for call, its in zip(claimed, told, strict=True):
            subscription = subscriptions.get(SubscriptionKey(call.organization_id, call.webhook_id))
            if its is None or subscription is None or not _may_be_made(call, its, subscription):
                others.append(CallResult(call, self._clock.now()))
            else:
                to_make.append(CallToMake(call, subscription, _body(call, its)))
        if others:
            await self.settle(others)
        return to_make, found

    async def settle(self, results: Sequence[CallResult]) -> Sequence[None]:
        """Write what calls came to. Those of executions that are over, or went on, are forgotten.

        One that was not made has its execution decide once more, by what kept it from being made.
        """
        async with self._db.hot.transaction() as connection:
            woken = await step_calls.settle(connection, results, self._clock.now())
        if woken:
            self._due()
        return [None] * len(results)


def _may_be_made(call: ClaimedCall, told: ToldCall, subscription: Subscription) -> bool:
    """Whether the execution would decide again as it has: else it is asked."""
    if not told.contact_known or told.opt_in_status is ConsentStatus.DENIED:
        return False
    if told.journey_status is JourneyStatus.ARQUIVADA:
        return False
    if told.journey_status is JourneyStatus.PAUSADA and not told.teste:
        return False
    return subscription.status in QUEUES and subscription.env == call.env


def _body(call: ClaimedCall, told: ToldCall) -> bytes:
    """What its receiver reads. Nothing in it is masked: the entry is what the customer gave."""
    contact = {"id": told.contact_id}
    if told.external_id is not None:
        contact["externalId"] = told.external_id
    data = {
        "journey": {"id": call.journey_id, "name": told.journey_name, "versao": told.versao},
        "execution": {"id": call.execution_id},
        "step": {"id": call.step_id},
        "contact": contact,
        "entrada": orjson.Fragment(told.entry),
    }
    return enveloped(data, call.organization_id, event_id=call.event_id, event=JOURNEY_ACTION, env=call.env)


def _nothing() -> None:
    """No call is to be made."""
