"""A random journey with the service and its database, on the virtual clock: what the scenario says happens as rows.

Between two moments nothing happens: each turn, and each change of the world, is at the moment that it belongs to.
"""

import heapq
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from tests.acme import add_template
from tests.domain.journeys.scenario import Fate, Scenario, Told, Walked, Window
from tests.services.journeys.conftest import ENV, Way
from tests.storage.journeys.rows import new_entry

from recado.domain.core.ids import EXECUTION, WEBHOOK
from recado.domain.journeys.execution import ExecutionOrigin, ExecutionStatus
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.journeys import executions
from recado.storage.journeys.entries import begin_test, enter
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.step_calls import CallResult
from recado.storage.messages.messages import NewMessage
from recado.storage.webhooks import webhooks
from recado.storage.webhooks.webhooks import Subscription

BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}, {{2}}!"}},)
SIGNALS = {"chatapp": {"entregue", "lido", "converteu"}, "sms": {"entregue", "converteu"}}
"""By channel, those that are a moment of the message, or an event: an answer would be one to several messages."""

_EARLIER = """
insert into execution_steps (
    organization_id, execution_id, step_id, env, tipo, at, place, resultado, message_id, channel, capped_contact_id
)
values ($1, 'exe_' || $2, 'ola', $3, 'enviar', $4, 0, 'enviado', 'msg_' || $2, 'sms', $5)
"""
_QUIET = (
    "update organizations set time_zone = $2, quiet_start = $3::text::time, quiet_end = $4::text::time where id = $1"
)

Happens = Callable[[], Awaitable[object]]


def in_database(scenario: Scenario) -> Scenario:
    """The scenario as far as rows can tell it: channels that run, signals of theirs, reports that follow departures."""
    steps = {name: _step(dict(step)) for name, step in scenario.steps.items()}
    for step in steps.values():
        if "sinal" in step and step["sinal"] not in SIGNALS[steps[step["sobre"]]["canal"]]:
            step["sinal"] = "entregue"
    contact = {name: value for name, value in scenario.contact.items() if name != "phone"}
    windows = [
        Window(each.start, each.end, scenario.zone if place == 0 else each.zone)
        for place, each in enumerate(scenario.windows)
    ]
    fates = {name: _fate(fate, steps[name]["canal"]) for name, fate in scenario.fates.items()}
    return replace(scenario, steps=steps, contact=contact, windows=windows, fates=fates, failures={})


def _step(step: dict[str, Any]) -> dict[str, Any]:
    if step.get("canal") == "email":
        del step["templateId"]
        step |= {"canal": "sms", "texto": "{{2}} {{1}}"}
    return step


def _fate(fate: Fate, channel: str) -> Fate:
    signals = {kind: at for kind, at in fate.signals.items() if kind in SIGNALS[channel]}
    if fate.ends != "accepted" or fate.settled is None:
        signals = {}
    if "lido" in signals:
        signals["entregue"] = min(signals["lido"], signals.get("entregue", signals["lido"]))
    settled = None if fate.settled is None else min([fate.settled, *signals.values()])
    return replace(fate, obstacle=None, signals=signals, settled=settled)


class World:
    """One execution of a scenario that `in_database` made."""

    def __init__(self, way: Way, scenario: Scenario) -> None:
        self.way = way
        self.scenario = scenario
        self._coming: list[tuple[datetime, int, Happens]] = []
        self._numbers = itertools.count()
        self._known = len(way.accepted)
        self._texts: dict[str, str] = {}
        self._contact_id = ""
        self._webhook_id = way.ids.new(WEBHOOK)

    async def walk(self) -> tuple[Scenario, Walked]:
        """To the end; the scenario with the id of its execution, by which splits go."""
        execution = await self._begin()
        while True:
            await self._work()
            execution = await self.way.read(execution.key)
            if execution.status is not ExecutionStatus.ATIVA:
                break
            moments = [at for at, _, _ in self._coming[:1]]
            if execution.wake_at is not None:
                moments.append(execution.wake_at)
            assert moments, f"it waits for nothing at {execution.step_id}"
            await self.way.clock.advance((min(moments) - self.way.clock.now()).total_seconds())
            while self._coming and self._coming[0][0] <= self.way.clock.now():
                await heapq.heappop(self._coming)[2]()
        return replace(self.scenario, execution=execution.id), await self._walked(execution)

    def _at(self, moment: datetime, happens: Happens) -> None:
        heapq.heappush(self._coming, (moment, next(self._numbers), happens))

    # Its begin ------------------------------------------------------------------------------------------------------

    async def _begin(self) -> Execution:
        way, scenario = self.way, self.scenario
        contact = {name: list(value) if isinstance(value, tuple) else value for name, value in scenario.contact.items()}
        self._contact_id = await way.person(**contact)
        await self._subscribe()
        template = await add_template(way.db, way.clock, way.ids, way.number, name="two", components=BODY)
        named = {"templateId": template.id, "numberId": way.number.id, "webhookId": self._webhook_id}
        steps = [
            {"id": name, **step, **{field: named[field] for field in named if field in step}}
            for name, step in scenario.steps.items()
        ]
        windows = scenario.windows
        silence = {"inicio": windows[0].start, "fim": windows[0].end} if windows else None
        if len(windows) > 1:
            where = (way.organization.id, windows[1].zone.key)
            await way.db.execute(_QUIET, *where, windows[1].start, windows[1].end)
        cap = scenario.cap
        journey = await way.journey(
            *steps,
            fuso_horario=scenario.zone.key,
            silencio=silence,
            teto_de_frequencia=None if cap is None else {"mensagens": cap[0], "dias": cap[1]},
            meta_evento=scenario.goal,
        )
        for place, at in enumerate(scenario.earlier):
            await way.db.execute(_EARLIER, way.organization.id, f"{place:021}", ENV, at, self._contact_id)
        for name, at in scenario.events:
            self._at(at, lambda name=name, at=at: way.event(self._contact_id, name, at))  # type: ignore[misc]
        if scenario.leaves is not None:
            reason, at = scenario.leaves
            denied = "update contacts set opt_in_status = 'denied' where id = $1"
            change = denied if reason == "opt_out" else "delete from contacts where id = $1"
            self._at(at, lambda: way.db.execute(change, self._contact_id))
        if scenario.inactive is not None:
            pause = "update webhook_subscriptions set status = 'paused' where id = $1"
            self._at(scenario.inactive, lambda: way.db.execute(pause, self._webhook_id))
        origin = ExecutionOrigin.TEST if scenario.test else ExecutionOrigin.API
        entry = new_entry(self._contact_id, journey, at=way.clock.now(), origin=origin, **scenario.entry)
        entry = replace(entry, execution_id=way.ids.new(EXECUTION))
        where = (way.organization.id, ENV)
        if scenario.test:
            await begin_test(way.db, *where, entry, hurried=scenario.hurried)
        else:
            await enter(way.db, *where, [entry])
        return await way.read((*where, journey.id, entry.execution_id))

    async def _subscribe(self) -> None:
        async with self.way.db.transaction() as connection:
            await webhooks.insert(
                connection,
                Subscription(
                    organization_id=self.way.organization.id,
                    id=self._webhook_id,
                    env=ENV,
                    url="https://example.org/",
                    secret_cipher="",
                    headers_cipher="",
                    events=("wallet.depleted",),
                    updated_at=self.way.clock.now(),
                ),
            )

    # What happens ---------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Turns, the calls that they want, and what becomes of the messages that they made."""
        while True:
            await self.way.work()
            found = await self._call()
            made = self.way.accepted[self._known :]
            self._known = len(self.way.accepted)
            for message in made:
                self._made(message)
            due = self._coming and self._coming[0][0] <= self.way.clock.now()
            if not found and not due:
                return
            while self._coming and self._coming[0][0] <= self.way.clock.now():
                await heapq.heappop(self._coming)[2]()

    async def _call(self) -> int:
        """Make the calls that are wanted; how many were."""
        key = SubscriptionKey(self.way.organization.id, self._webhook_id)
        calls, found = await self.way.step_calls.claim({key: 10})
        for made in calls:
            call = made.call
            status, seconds = self.scenario.calls[call.step_id][made.attempt - 1]
            ends = self.way.clock.now() + timedelta(seconds=seconds)
            result = CallResult(call, ends, called=True, status=status)
            self._at(ends, lambda result=result: self.way.step_calls.settle([result]))  # type: ignore[misc]
        return found.total()

    def _made(self, message: NewMessage) -> None:
        assert message.metadata is not None
        fate = self.scenario.fates[orjson.loads(message.metadata)["journeyStepId"]]
        made = self.way.clock.now()
        left = made + fate.queued
        if message.template_vars is None:
            assert message.payload is not None
            self._texts[message.id] = orjson.loads(message.payload)["text"]["body"]
        else:
            variables = enumerate(orjson.loads(message.template_vars), 1)
            self._texts[message.id] = str({str(number): text for number, text in variables})
        if fate.ends == "expired":
            failed = {"status": "failed", "failed_at": left, "outcome_certain": True}
            self._at(left, lambda: self._moved(message.id, failed))
            return
        self._at(left, lambda: self._sending(message.id, left))
        if fate.settled is None:
            return
        settled = left + fate.settled
        ends: dict[str, Any] = {"status": "sent", "sent_at": left}
        if fate.ends == "failed":
            ends = {"status": "failed", "called_at": left, "failed_at": settled, "outcome_certain": True}
        self._at(settled, lambda: self._moved(message.id, ends))
        for signal, status, column in (("entregue", "delivered", "delivered_at"), ("lido", "read", "read_at")):
            if signal in fate.signals:
                at = left + fate.signals[signal]
                report = {"status": status, column: at}
                self._at(at, lambda report=report: self._moved(message.id, report))  # type: ignore[misc]

    async def _sending(self, message_id: str, at: datetime) -> None:
        await self.way.db.execute(
            "update dispatch set claimed_epoch = 1, claimed_at = $2 where id = $1", message_id, at
        )
        await self.way.db.execute("update messages set status = 'sending' where id = $1", message_id)

    async def _moved(self, message_id: str, columns: dict[str, Any]) -> None:
        await self.way.db.execute("delete from dispatch where id = $1", message_id)
        assigned = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 2))
        await self.way.db.execute(f"update messages set {assigned} where id = $1", message_id, *columns.values())

    # Its end --------------------------------------------------------------------------------------------------------

    async def _walked(self, execution: Execution) -> Walked:
        passed = await executions.trail(self.way.db, execution.organization_id, execution.id)
        trail = [
            Told(step.step_id, step.resultado, step.at, step.detalhe or self._texts.get(step.message_id or "", ""))
            for step in passed
        ]
        assert execution.motivo is not None
        assert execution.ended_at is not None
        return Walked(trail, execution.status.value, execution.motivo.value, execution.ended_at)
