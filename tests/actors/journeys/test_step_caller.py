"""A webhook step calls its subscription, signed and under one key, and goes on by what was answered (C9.13)."""

import asyncio
import base64
import hmac
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from openapi_schema_validator import OAS31Validator
from tests.actors.journeys.conftest import Calling, call
from tests.program import free_port
from tests.services.journeys.conftest import ENDS, HOUR, sms
from tests.waiting import until

from recado.actors.journeys import step_caller
from recado.actors.journeys.step_caller import StepCaller
from recado.channels.core.signing import is_signed, signing_key
from recado.domain.core.errors import Unavailable
from recado.domain.core.timestamps import format_timestamp
from recado.domain.journeys.execution import Awaited, EndReason
from recado.http.openapi.document import document
from recado.http.webhook_events import EVENTS
from recado.services.journeys.step_calls import StepCalls
from recado.storage.journeys.step_calls import CallResult

SECOND = timedelta(seconds=1)
TAKEN, FAILED = [("call", "webhook_ok"), ("yes", "fim")], [("call", "webhook_falhou"), ("no", "fim")]


def status(code: int, **headers: str) -> Any:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=code, headers=headers)

    return answer


class Gate:
    """An answer that waits to be let go."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.Response:
        await self.open.wait()
        return web.Response()


@pytest.fixture
def gate(calling: Calling) -> Iterator[Gate]:
    """The receiver's answer; it is let go at the end in any case, as the receiver waits for it."""
    made = Gate()
    yield made
    made.open.set()


# What is called ------------------------------------------------------------------------------------------------------


async def test_the_call_says_who_stands_where_and_with_what(calling: Calling) -> None:
    way = calling.way
    webhook_id = await calling.subscribe(headers={"X-Tenant": "acme"})
    person = await way.person(external_id="crm-17", name="Ana")
    execution = await calling.begin(webhook_id, person, order="A-1", phone="+5511987651234")
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN
    (request,) = calling.receiver.received
    assert request.json == {
        "id": request.headers["webhook-id"],
        "type": "journey.action",
        "env": "test",
        "organizationId": way.organization.id,
        "createdAt": format_timestamp(way.clock.now()),
        "apiVersion": "2",
        "data": {
            "journey": {"id": execution.journey_id, "name": "Welcome", "versao": 1},
            "execution": {"id": execution.id},
            "step": {"id": "call"},
            "contact": {"id": person, "externalId": "crm-17"},
            "entrada": {"order": "A-1", "phone": "+5511987651234"},  # the customer's own, as it was given
        },
    }
    assert list(request.json) == ["id", "type", "env", "organizationId", "createdAt", "apiVersion", "data"]
    told = ("X-SVC-Idempotency-Key", "X-SVC-Event", "X-SVC-Attempt", "X-Tenant", "Content-Type", "User-Agent")
    assert [request.headers[name] for name in told] == [
        f"{execution.id}:call", "journey.action", "1", "acme", "application/json", "SVC-Webhooks/2",
    ]  # fmt: skip
    assert request.headers["X-SVC-Delivery"].startswith("dlv_")
    assert await calling.rows() == []
    described = document((), base_url="https://api.example.com", version="1", events=EVENTS)
    body = described["webhooks"]["journey.action"]["post"]["requestBody"]["content"]["application/json"]
    schema = {**body["schema"], "components": described["components"]}
    assert [error.message for error in OAS31Validator(schema).iter_errors(request.json)] == []


async def test_a_receiver_believes_the_call_by_either_signature(calling: Calling) -> None:
    webhook_id = await calling.subscribe()
    await calling.begin(webhook_id)
    await calling.go_on()
    (request,) = calling.receiver.received
    key = signing_key(calling.secrets[webhook_id])
    assert is_signed(request.headers["X-SVC-Signature"], [key], request.body, calling.way.clock.now())
    seconds, event_id = request.headers["webhook-timestamp"], request.headers["webhook-id"]
    signed = f"{event_id}.{seconds}.".encode() + request.body
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"


async def test_a_call_leaves_the_health_and_the_deliveries_of_its_subscription_alone(calling: Calling) -> None:
    webhook_id = await calling.subscribe()
    calling.receiver.answer = status(410)
    execution = await calling.begin(webhook_id)
    await calling.go_on()
    assert await calling.trail(execution) == FAILED
    row = await calling.way.db.fetchrow("select * from webhook_subscriptions where id = $1", webhook_id)
    assert (row["status"], row["consecutive_failures"], row["last_failure_at"]) == ("active", 0, None)
    assert await calling.way.db.fetchval("select count(*) from deliveries") == 0
    assert await calling.way.db.fetchval("select count(*) from events") == 0


async def test_a_test_calls_too_though_its_journey_is_paused(calling: Calling) -> None:
    execution = await calling.begin(await calling.subscribe())
    await calling.way.db.execute("update executions set teste = true")
    await calling.way.db.execute("update journeys set status = 'pausada'")
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN


async def test_many_calls_of_a_subscription_are_made_ten_at_a_time(calling: Calling) -> None:
    webhook_id = await calling.subscribe()
    began = [await calling.begin(webhook_id) for _ in range(25)]
    await calling.go_on()
    assert [await calling.trail(each) for each in began] == [TAKEN] * 25
    assert len(calling.receiver.received) == 25
    assert calling.receiver.most_at_once <= 10
    assert len({request.headers["X-SVC-Idempotency-Key"] for request in calling.receiver.received}) == 25


async def test_calls_of_more_subscriptions_than_are_looked_at_are_all_made(
    calling: Calling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_caller, "LOOKED_AT", 2)
    monkeypatch.setattr(step_caller, "CLAIMED_AT_ONCE", 3)
    subscriptions = [await calling.subscribe() for _ in range(5)]
    began = [await calling.begin(webhook_id) for webhook_id in subscriptions for _ in range(4)]
    await calling.go_on()
    assert [await calling.trail(each) for each in began] == [TAKEN] * 20
    assert len(calling.receiver.received) == 20


async def test_a_caller_with_few_places_makes_every_call_in_turns(calling: Calling) -> None:
    few = StepCaller(calling.way.step_calls, http=calling.http, keys=calling.keys, clock=calling.way.clock, at_once=2)
    subscriptions = [await calling.subscribe() for _ in range(3)]
    began = [await calling.begin(webhook_id) for webhook_id in subscriptions for _ in range(3)]
    await few.start()
    await replace(calling, caller=few).go_on()
    await few.stop()
    assert [await calling.trail(each) for each in began] == [TAKEN] * 9
    assert calling.receiver.most_at_once <= 2


async def test_two_webhook_steps_of_a_way_are_two_calls(calling: Calling) -> None:
    webhook_id = await calling.subscribe()
    steps = call(webhook_id, "first", "second"), call(webhook_id, "second")
    execution = await calling.way.begin(await calling.way.journey(*steps, *ENDS))
    await calling.go_on()
    await calling.go_on()
    assert await calling.trail(execution) == [("first", "webhook_ok"), ("second", "webhook_ok"), ("yes", "fim")]
    keys = [request.headers["X-SVC-Idempotency-Key"] for request in calling.receiver.received]
    assert keys == [f"{execution.id}:first", f"{execution.id}:second"]
    assert len({request.headers["webhook-id"] for request in calling.receiver.received}) == 2
    assert await calling.rows() == []


# Failures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [301, 304, 400, 404, 410])
async def test_an_answer_that_would_not_change_fails_the_step_at_once(calling: Calling, code: int) -> None:
    calling.receiver.answer = status(code, Location="http://127.0.0.1/elsewhere")
    execution = await calling.begin(await calling.subscribe())
    await calling.go_on()
    assert await calling.trail(execution) == FAILED
    assert len(calling.receiver.received) == 1


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_a_failure_that_may_pass_is_tried_four_times_under_one_key(calling: Calling, code: int) -> None:
    way, webhook_id = calling.way, await calling.subscribe()
    calling.receiver.answer = status(code)
    execution = await calling.begin(webhook_id)
    await calling.go_on()
    for made, seconds in enumerate((10, 60, 300), start=1):
        waiting = await way.read(execution.key)
        assert (waiting.awaited, waiting.awaited_until) == (
            Awaited.WEBHOOK,
            way.clock.now() + timedelta(seconds=seconds),
        )
        await calling.go_on(timedelta(seconds=seconds) - SECOND)
        assert len(calling.receiver.received) == made
        await calling.go_on(SECOND)
        assert len(calling.receiver.received) == made + 1
    assert await calling.trail(execution) == FAILED
    received = calling.receiver.received
    assert {request.headers["X-SVC-Idempotency-Key"] for request in received} == {f"{execution.id}:call"}
    assert len({request.headers["webhook-id"] for request in received}) == 1
    assert len({request.body for request in received}) == 1
    assert [request.headers["X-SVC-Attempt"] for request in received] == ["1", "2", "3", "4"]
    assert len({request.headers["X-SVC-Signature"] for request in received}) == 4
    assert await calling.rows() == []


async def test_a_later_attempt_may_succeed(calling: Calling) -> None:
    calling.receiver.answer = status(503)
    execution = await calling.begin(await calling.subscribe())
    await calling.go_on()
    calling.receiver.answer = None
    await calling.go_on(timedelta(seconds=10))
    assert await calling.trail(execution) == TAKEN


async def test_no_answer_in_time_and_no_connection_are_failures_that_may_pass(calling: Calling, gate: Gate) -> None:
    calling.receiver.answer = gate
    hanging = await calling.begin(await calling.subscribe())
    closed = await calling.begin(await calling.subscribe(f"http://127.0.0.1:{free_port()}/"))
    await calling.go_on()
    gate.open.set()
    for execution in (hanging, closed):
        assert (await calling.way.read(execution.key)).awaited is Awaited.WEBHOOK
    assert [(row["made"], row["status"], row["refused"]) for row in await calling.rows()] == [(1, None, False)] * 2


@pytest.mark.parametrize("url", ["http://10.0.0.1:9000/", "https://user@example.com/"])
async def test_a_url_that_may_not_be_called_fails_the_step_without_a_call(calling: Calling, url: str) -> None:
    execution = await calling.begin(await calling.subscribe(url))
    await calling.go_on()
    assert await calling.trail(execution) == FAILED


@pytest.mark.parametrize("state", ["paused", "revoked"])
@pytest.mark.parametrize("wanted", [False, True], ids=["before", "while a call is wanted"])
async def test_a_subscription_that_takes_nothing_fails_the_step_without_a_call(
    calling: Calling, state: str, wanted: bool
) -> None:
    webhook_id = await calling.subscribe()
    execution = await calling.begin(webhook_id) if wanted else None
    await calling.way.db.execute("update webhook_subscriptions set status = $1", state)
    execution = execution or await calling.begin(webhook_id)
    await calling.go_on()
    assert await calling.trail(execution) == FAILED
    assert calling.receiver.received == []
    assert await calling.rows() == []


async def test_a_failing_subscription_is_called(calling: Calling) -> None:
    webhook_id = await calling.subscribe()
    await calling.way.db.execute("update webhook_subscriptions set status = 'failing'")
    execution = await calling.begin(webhook_id)
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN


# What happens meanwhile ----------------------------------------------------------------------------------------------


async def test_an_endpoint_that_hangs_holds_up_nobody_else(calling: Calling, gate: Gate) -> None:
    calling.caller.http.call_limit = 60.0
    calling.receiver.answer = gate
    hanging = await calling.subscribe()
    for _ in range(12):
        await calling.begin(hanging)
    calling.caller.hint()
    await calling.receiver.wait_for(10)

    neighbour, answered = await calling.neighbour(), []

    async def at_once(request: web.Request) -> web.Response:
        answered.append(request.path)
        if request.path == "/hook":
            await gate.open.wait()
        return web.Response()

    calling.receiver.answer = at_once
    others = [
        await place.begin(await place.subscribe(calling.receiver.url.replace("/hook", "/other")))
        for place in (calling, neighbour)
    ]
    calling.caller.hint()
    for execution in others:

        async def passed(execution: Any = execution) -> bool:
            await calling.way.work()
            return await calling.over(execution)

        await until(passed, "the other execution has passed its step")
        assert await calling.trail(execution) == TAKEN
    assert answered == ["/other", "/other"]
    assert calling.caller.unrecorded == 10
    gate.open.set()
    await calling.go_on()
    assert len(calling.receiver.received) == 14


async def test_what_a_contact_does_meanwhile_makes_no_second_call(calling: Calling, gate: Gate) -> None:
    calling.receiver.answer = gate
    calling.caller.http.call_limit = 60.0
    way = calling.way
    execution = await calling.begin(await calling.subscribe())
    calling.caller.hint()
    await calling.receiver.wait_for(1)
    await way.event(execution.contact_id, "bought", way.clock.now())
    await way.db.execute("update webhook_subscriptions set status = 'paused'")  # too late for this call
    await way.work()
    calling.caller.hint()
    waiting = await way.read(execution.key)
    assert (waiting.awaited, waiting.wake_at) == (Awaited.WEBHOOK, None)
    gate.open.set()
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN
    assert len(calling.receiver.received) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("update contacts set opt_in_status = 'denied'", EndReason.OPTED_OUT),
        ("delete from contacts", EndReason.CONTACT_DELETED),
        ("update journeys set status = 'arquivada'", EndReason.JOURNEY_ARCHIVED),
    ],
)
async def test_what_is_answered_to_an_execution_that_is_over_changes_nothing(
    calling: Calling, gate: Gate, change: str, reason: EndReason
) -> None:
    calling.receiver.answer = gate
    calling.caller.http.call_limit = 60.0
    execution = await calling.begin(await calling.subscribe())
    calling.caller.hint()
    await calling.receiver.wait_for(1)
    await calling.way.db.execute(change)
    await calling.way.work()
    over = await calling.way.read(execution.key)
    assert over.motivo is reason
    assert await calling.rows() == []
    gate.open.set()
    await until(lambda: not calling.caller.unrecorded, "the answer is noted")
    await calling.way.work()
    assert await calling.way.read(execution.key) == over
    assert await calling.trail(execution) == []
    assert await calling.rows() == []


async def test_a_call_that_a_pause_came_before_waits_for_its_end(calling: Calling) -> None:
    way = calling.way
    execution = await calling.begin(await calling.subscribe())
    await way.db.execute("update journeys set status = 'pausada'")
    await calling.go_on()
    assert (await way.read(execution.key)).awaited is Awaited.RESUME
    assert calling.receiver.received == []
    await way.db.execute("update journeys set status = 'ativa'")
    await calling.go_on()
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN


async def test_what_was_answered_in_a_pause_counts_after_it(calling: Calling, gate: Gate) -> None:
    calling.receiver.answer = gate
    calling.caller.http.call_limit = 60.0
    way = calling.way
    execution = await calling.begin(await calling.subscribe())
    calling.caller.hint()
    await calling.receiver.wait_for(1)
    await way.db.execute("update journeys set status = 'pausada'")
    gate.open.set()
    await calling.go_on()
    assert await calling.trail(execution) == []
    await way.db.execute("update journeys set status = 'ativa'")
    await way.work()
    assert await calling.trail(execution) == TAKEN
    assert len(calling.receiver.received) == 1


# Crashes -------------------------------------------------------------------------------------------------------------


class Lost(StepCalls):
    """Of a process that ends between the answer and the commit."""

    lost = 0

    async def settle(self, results: Any) -> Any:
        self.lost += len(results)
        raise RuntimeError("the process ends")


async def test_a_call_whose_result_was_lost_is_made_once_more_when_its_claim_is_old(calling: Calling) -> None:
    way = calling.way
    lost = Lost(way.db, clock=way.clock, ids=way.ids, wanted=lambda: None, due=lambda: None)
    former = calling.new_caller(lost)
    execution = await calling.begin(await calling.subscribe(), order="A-1")
    await former.start()
    await until(lambda: lost.lost, "the answer is lost")
    await former.stop()
    claimed = (await calling.rows())[0]["claimed_at"]
    assert claimed is not None

    for _ in range(4):  # while it is young nobody else makes it
        await way.clock.advance(15)
        calling.caller.hint()
        await way.clock.settle()
    assert len(calling.receiver.received) == 1
    await way.clock.advance(31)
    calling.caller.hint()
    await calling.receiver.wait_for(2)
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN
    first, second = calling.receiver.received
    assert first.headers["X-SVC-Idempotency-Key"] == second.headers["X-SVC-Idempotency-Key"]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert (first.body, second.headers["X-SVC-Attempt"]) == (second.body, "1")


async def test_the_next_process_makes_at_once_what_the_former_had_in_flight(
    calling: Calling, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_caller, "CALLS_AT_STOP", 0.0)
    calling.receiver.answer = gate
    calling.caller.http.call_limit = 60.0
    execution = await calling.begin(await calling.subscribe())
    calling.caller.hint()
    await calling.receiver.wait_for(1)
    await calling.caller.stop()
    assert (await calling.rows())[0]["claimed_at"] is not None
    calling.receiver.answer = None
    await calling.caller.start()
    await calling.receiver.wait_for(2)
    gate.open.set()
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN
    keys = [request.headers["X-SVC-Idempotency-Key"] for request in calling.receiver.received]
    assert keys == [f"{execution.id}:call"] * 2


async def test_what_a_process_tells_whose_claim_another_has_is_not_heard(calling: Calling) -> None:
    way, webhook_id = calling.way, await calling.subscribe()
    execution = await calling.begin(webhook_id)
    rooms = {(way.organization.id, webhook_id): 1}
    (former,), _ = await way.step_calls.claim(rooms)
    assert await way.step_calls.claim(rooms) == ([], {})
    await way.clock.advance(1)
    await way.step_calls.release(None)
    (latter,), _ = await way.step_calls.claim(rooms)
    await way.step_calls.settle([CallResult(former.call, way.clock.now(), called=True, status=404)])
    assert [(row["made"], row["claimed_at"]) for row in await calling.rows()] == [(0, latter.call.claimed_at)]
    await way.step_calls.settle([CallResult(latter.call, way.clock.now(), called=True, status=200)])
    await way.work()
    assert await calling.trail(execution) == TAKEN


async def test_calls_are_wanted_in_the_commit_of_the_turn_or_not_at_all(
    calling: Calling, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = calling.way
    want, losses = way.step_calls.want, [1]

    async def losing(connection: Any, standing: Any, now: Any) -> Any:
        committed = await want(connection, standing, now)
        if standing and losses:
            losses.pop()
            raise ConnectionResetError
        return committed

    monkeypatch.setattr(way.step_calls, "want", losing)
    execution = await way.begin(await way.journey(sms("hello", "call"), call(await calling.subscribe()), *ENDS))
    with pytest.raises(Unavailable):
        await way.work()
    assert await calling.rows() == []
    await calling.go_on(HOUR)
    assert [step for step, _ in await calling.trail(execution)] == ["hello", "call", "yes"]
    assert len(calling.receiver.received) == 1


async def test_a_suspended_organization_calls_when_that_is_over(calling: Calling) -> None:
    way = calling.way
    execution = await calling.begin(await calling.subscribe())
    await way.suspend()
    assert await way.step_calls.waiting(("", ""), 10) == []
    await calling.caller.work()
    assert calling.receiver.received == []
    await way.suspend(lifted=True)
    await calling.go_on()
    assert await calling.trail(execution) == TAKEN
