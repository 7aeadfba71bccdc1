"""Numbers send in two processes: each message once, at the pace of its number, also when one of them is killed."""

import asyncio
import itertools
import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.acceptance.sandbox.customer import Customer, moment, phone
from tests.crash.stage import SimulatedStage
from tests.crash.traffic import Sender, send_many
from tests.fronts.processes import fronts_of, is_front, owner_of
from tests.program import Api, Service, running
from tests.waiting import until

from recado.domain.dispatch.placement import shard_of
from recado.domain.dispatch.retry import RETRY_DELAYS
from recado.domain.senders.sender import SenderKey
from recado.fronts.frames import ANSWERS_FOR
from recado.fronts.front import STOP_LIMIT
from recado.simulator.behaviour import Given
from recado.storage.dispatch.begun_calls import BegunCalls, boot_id

pytestmark = [pytest.mark.long, pytest.mark.alone]

PATIENCE = 60.0
PACE = 50
EACH = 250  # messages of a number
LASTS = 90  # seconds of a batch during which a process is replaced, at most
OF_A_PROCESS = 4  # numbers
SLOW_PACE = 5
OPT_OUTS = 40  # messages, every other of which somebody opts out of
FEW = 4
STOPPED_THERE = 131050  # of the hosted API: the person told it to stop marketing of this business
STOPPED_PEOPLE = 12
MORE_THAN_A_LINK_HOLDS = 70_000  # paused batches
REPORTS = 9  # of the sandbox, a tenth of a second after their calls
REPORTED_WITHIN = 0.5  # seconds
ANSWER_LIMIT = 4.0  # seconds of an operator's answer while a worker says nothing
UNDER_WAY = 0.5  # seconds of calls at most, on a loaded machine: of these nobody knows whether they came


class Served:
    """A service of an owner and a worker that sends, and customers of whom each of both has some."""

    def __init__(self, service: Service, api: Api) -> None:
        self.service = service
        self.api = api
        self.customers: list[Customer] = []
        self.organization_id = ""

    async def know(self) -> "Served":
        """Whose numbers these are, when the worker is prepared for its own."""
        await self.prepared()
        self.organization_id = (await self.api.call("GET", "/v2/organization"))["id"]
        return self

    async def prepared(self) -> None:
        await until(lambda: files(self.service), "the worker is prepared")

    @property
    def file(self) -> Path:
        """Of the calls that the worker has begun."""
        (file,) = files(self.service)
        return file

    @property
    def of_worker(self) -> Customer:
        """One of whom the worker has the number."""
        return next(each for each in self.customers if self.is_workers(each.number_id))

    async def arrive_at_worker(self, **given: Any) -> Customer:
        """A number that the worker has, and none of the owner's."""
        while True:
            customer = await Customer.arrive(self.api, **given)
            if self.is_workers(customer.number_id):
                return customer

    async def arrive(self) -> None:
        """Numbers until both processes have enough."""
        found: Counter[bool] = Counter()
        while min(found[True], found[False]) < OF_A_PROCESS:
            customer = await Customer.arrive(self.api, per_second=PACE)
            worker = self.is_workers(customer.number_id)
            if found[worker] < OF_A_PROCESS:
                found[worker] += 1
                self.customers.append(customer)

    def is_workers(self, number_id: str, env: str = "test") -> bool:
        return shard_of(SenderKey(self.organization_id, env, "chatapp", number_id)) % 2 == 1

    async def send_all(self) -> int:
        """So many are queued."""
        for customer in self.customers:
            await self.send(customer)
        return EACH * len(self.customers)

    async def send(self, customer: Customer, count: int = EACH) -> Any:
        """A batch of one number."""
        body = {
            "numberId": customer.number_id, "type": "template", "templateId": customer.template_id,
            "templateVars": ["hello"], "recipients": [{"to": phone()} for _ in range(count)],
        }  # fmt: skip
        return await self.api.call("POST", "/messages/bulk", body)

    async def messages(self) -> list[Any]:
        return [each async for each in self.api.pages("/messages")]

    async def all_left(self) -> bool:
        """But for those of which it is not known."""
        if (await self.api.call("GET", "/messages", status="queued", limit=1))["total"]:
            return False
        under_way = [each["id"] async for each in self.api.pages("/messages", status="sending")]
        waits = [(await self.api.call("GET", f"/messages/{each}")).get("waiting") for each in under_way]
        return all(each == {"reason": "uncertain"} for each in waits)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Served]:
    service = Service(folder, "--workers", "2", SANDBOX_TIME_SCALE="0.1", WORKERS_SEND="true")
    async with running(service), Api(service.url, service.key("test")) as api:
        yield await Served(service, api).know()


@asynccontextmanager
async def sending_in_live(stage: SimulatedStage, pace: int) -> AsyncIterator[tuple[Served, Sender]]:
    """A service at a simulated provider, and a number in live that the worker has."""
    stage.service.settings |= {"WORKERS": "2", "WORKERS_SEND": "true"}
    try:
        await stage.start()
        key = await asyncio.to_thread(stage.service.key, "live")
        await asyncio.to_thread(stage.credit)
        async with Api(stage.service.url, key) as api:
            served = await Served(stage.service, api).know()
            for index in itertools.count():
                sender = await stage.sender(api, index, pace)
                if served.is_workers(sender.number_id, "live"):
                    yield served, sender
                    return
    finally:
        await stage.wipe()


def files(service: Service) -> list[Path]:
    """Those of begun calls of processes beside the owner."""
    return [each for each in service.data_dir.glob("begun-calls-*") if each.suffix != ".new"]


def begun(file: Path) -> int:
    """How many calls."""
    return file.read_bytes().count(b"msg_")


def left_once(messages: Sequence[Any], count: int, in_doubt: float = 0) -> None:
    """All of them, each at the pace of its number; of so many nobody may know whether they did."""
    assert len(messages) == count
    states = Counter(each["status"] for each in messages)
    assert states.pop("sending", 0) <= in_doubt
    assert set(states) <= {"sent", "delivered", "read"}
    assert {each["attempts"] for each in messages} == {1}
    keeps_pace(messages)


def most_in_a_second(times: Sequence[datetime]) -> int:
    second = timedelta(seconds=1)
    return max(sum(1 for other in times[index:] if other - at < second) for index, at in enumerate(times))


def keeps_pace(messages: Sequence[Any]) -> None:
    by_number: defaultdict[str, list[datetime]] = defaultdict(list)
    for each in messages:
        if each.get("sentAt"):
            by_number[each["numberId"]].append(moment(each["sentAt"]))
    assert {number: most for number, at in by_number.items() if (most := most_in_a_second(sorted(at))) > PACE} == {}


@pytest.mark.parametrize("met_by", [None, signal.SIGKILL, signal.SIGSTOP], ids=["whole", "killed", "stopped"])
async def test_each_message_leaves_once_at_the_pace_of_its_number(
    tmp_path: Path, met_by: signal.Signals | None
) -> None:
    """A worker that stands still is killed after five seconds."""
    async with serving(tmp_path) as served:
        await served.arrive()
        service, file = served.service, served.file
        count = await served.send_all()
        await until(lambda: begun(file) > OF_A_PROCESS * PACE, "the worker has sent some")
        assert begun(file) < OF_A_PROCESS * EACH
        if met_by is not None:
            os.kill(fronts_of(service)[0], met_by)
            await until(lambda: not file.exists(), "what it had in hand is sorted out")
        await until(served.all_left, "all have left", every=0.2)
        left_once(await served.messages(), count, OF_A_PROCESS * PACE * UNDER_WAY if met_by else 0)
        if met_by is None:
            assert begun(file) == OF_A_PROCESS * EACH
        logged = service.log.read_text()
        assert "share_failed" not in logged
        assert "frame_not_taken" not in logged
        assert "ownership_lost" not in logged


async def test_a_reload_hands_the_numbers_of_a_worker_to_the_one_that_replaces_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.arrive()
        service, file, customer = served.service, served.file, served.of_worker
        retried = await customer.send(phone("9005"))
        await customer.waits(retried, "retry")
        batch = await served.send(customer, LASTS * PACE)
        os.kill(service.pid, signal.SIGHUP)
        await until(lambda: not file.exists(), "the one before has ended, and owes nothing")
        next_file = served.file
        await until(lambda: begun(next_file) > PACE, "the next one sends")
        (waited,) = [
            each["ms"]
            for each in (await customer.reaches(retried, "read", PATIENCE))["waits"]
            if each["reason"] == "retry"
        ]
        assert waited > 1_000 * sum(RETRY_DELAYS[:2]) - 500  # what it waited for in the one before is not forgotten
        await served.api.call("POST", f"/v2/batches/{batch['id']}/cancel")
        await until(served.all_left, "all have left", every=0.2)
        messages = [each for each in await served.messages() if each.get("sentAt")]
        assert {each["status"] for each in messages} <= {"sent", "delivered", "read"}
        assert {each["attempts"] for each in messages if each["id"] != retried["id"]} == {1}
        keeps_pace(messages)
        logged = service.log.read_text()
        assert "front_ended" not in logged
        assert "share_failed" not in logged
        assert "sends_uncertain" not in logged


async def test_an_owner_that_is_killed_under_load_ends_with_its_worker_and_the_next_ones_send_what_is_left(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as served:
        await served.arrive()
        service, file = served.service, served.file
        count = await served.send_all()
        seen = await until(lambda: (many := begun(file)) > OF_A_PROCESS * PACE and many, "the worker has sent some")
        assert seen < OF_A_PROCESS * EACH
        (worker,) = fronts_of(service)
        service.end(signal.SIGKILL)
        await until(lambda: not is_front(worker), "the worker has ended with it")
        assert file.exists()
        await service.start()
        assert not file.exists()  # what it had in hand was sorted out before any number started
        await served.prepared()
        await until(served.all_left, "all have left", every=0.2)
        left_once(await served.messages(), count, 2 * OF_A_PROCESS * PACE * UNDER_WAY)


async def test_what_is_paused_canceled_or_held_at_the_owner_leaves_the_worker_no_more(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.arrive()
        api, file, customer, now = served.api, served.file, served.of_worker, asyncio.get_running_loop().time

        async def begins(more: int = 20) -> None:
            before = begun(file)
            await until(lambda: begun(file) >= before + more, "more leaves")

        async def stands() -> None:
            """Since the answer, no more began than what had been claimed by then: 50 ms of the pace."""
            before, since = begun(file), now()
            await until(lambda: now() > since + 1.0, "a second is over", every=0.05)
            assert begun(file) <= before + PACE * 0.1

        batch = await served.send(customer)
        path = f"/v2/batches/{batch['id']}"
        await begins()
        state = await api.call("GET", f"/v2/ops/numbers/{customer.number_id}")
        assert state["actor"]["state"] == "running"
        assert state["rate"]["sentLastMinute"] >= 20
        listed = (await api.call("GET", "/v2/ops/numbers"))["items"]
        sent = {each["numberId"]: each["rate"]["sentLastMinute"] for each in listed}
        assert sent[customer.number_id] >= 20
        queued = (await api.call("GET", "/messages", status="queued", limit=1))["items"][0]
        waiting = (await api.call("GET", f"/messages/{queued['id']}"))["waiting"]
        assert waiting["reason"] in ("rate", "behind")
        assert moment(waiting["until"]) > moment(queued["createdAt"])
        lane = ":".join((served.organization_id, "test", "chatapp", customer.number_id))
        await api.call("POST", "/v2/ops/actors/restart", {"path": f"recado/lanes/{lane}"})

        async def restarted() -> bool:
            seen = await api.call("GET", f"/v2/ops/numbers/{customer.number_id}")
            return bool(seen["actor"]["restarts"] == 1)

        await until(restarted, "its lane was restarted in the worker", every=0.1)
        await begins()
        await api.call("POST", f"{path}/pause")
        await stands()
        await api.call("POST", f"{path}/resume")
        await begins()
        await api.call("POST", f"/v2/ops/numbers/{customer.number_id}/pause")
        await stands()
        await api.call("POST", f"/v2/ops/numbers/{customer.number_id}/resume")
        await begins()
        await api.call("POST", f"{path}/cancel")
        await stands()

        async def over() -> bool:
            totals = (await api.call("GET", path))["totals"]
            return bool(totals["queued"] == 0)

        await until(over, "nothing of it is left", every=0.2)
        totals = (await api.call("GET", path))["totals"]
        assert totals["sent"] + totals["delivered"] + totals["read"] == begun(file) < EACH


async def test_whoever_opts_out_is_called_no_more_from_the_answer_on(tmp_path: Path) -> None:
    """By the API or by a word, around the moment at which a worker has claimed a message for the person."""
    async with serving(tmp_path) as served:
        api, file, now, draw = served.api, served.file, asyncio.get_running_loop().time, random.Random(12)
        customer = await served.arrive_at_worker(per_second=SLOW_PACE, category="marketing")
        people = [phone() for _ in range(OPT_OUTS)]
        ids = [(await customer.send(each))["id"] for each in people]

        def has_begun(message_id: str) -> bool:
            return message_id.encode() in file.read_bytes()

        by_then: dict[str, bool] = {}

        async def opts_out(person: str, message_id: str, moment: float) -> None:
            await until(lambda: now() >= moment, "its moment", every=0.002)
            if draw.random() < 0.5:
                await api.call("POST", "/contacts/opt-out", {"phone": person})
            else:
                said = {"numberId": customer.number_id, "from": person, "text": "STOP"}
                await api.call("POST", "/v2/sandbox/inbound", said)
            by_then[message_id] = has_begun(message_id)

        # A message is claimed 50 ms before it leaves: each opts out in the time that is left until then, or around it.
        async with asyncio.TaskGroup() as opting:
            for before, person, message_id in zip(ids[::2], people[1::2], ids[1::2], strict=True):
                await until(lambda before=before: has_begun(before), "the one before leaves", every=0.005)
                opting.create_task(opts_out(person, message_id, now() + draw.uniform(0.0, 1.3 / SLOW_PACE)))
        await until(served.all_left, "all have left", every=0.2)
        assert {message_id: has_begun(message_id) for message_id in by_then} == by_then
        assert Counter(by_then.values()).keys() == {True, False}
        for message_id, left in by_then.items():
            message = await api.call("GET", f"/messages/{message_id}")
            assert left or message["lastError"].startswith("opted_out"), message


async def test_whom_the_provider_says_to_have_opted_out_gets_no_later_message_of_a_worker(tmp_path: Path) -> None:
    """Half of the people refused there. Each is sent to twice, the second time when all were sent to once."""
    stage = SimulatedStage(tmp_path, seed=4, protocol="cloud", shares={}, codes={STOPPED_THERE: 0.5})
    async with sending_in_live(stage, SLOW_PACE) as (served, sender):
        api = served.api
        held = (await api.call("GET", "/v2/templates", numberId=sender.number_id, status="approved"))["items"]
        news = replace(sender, template_id=next(each["id"] for each in held if each["name"] == "news"))
        people = [phone() for _ in range(STOPPED_PEOPLE)]
        body = {"numberId": news.number_id, "type": "template", "templateId": news.template_id}

        async def send_to(person: str) -> str:
            made = await api.call("POST", "/messages", {**body, "to": person, "templateVars": ["Ana"]})
            return str(made["id"])

        firsts = [await send_to(each) for each in people]
        seconds = [await send_to(each) for each in people]
        await until(served.all_left, "all have left", every=0.2)
        called = {each.id: each.outcome for each in stage.requests()}
        refused = [place for place, first in enumerate(firsts) if called[first] is Given.CODED]
        assert 0 < len(refused) < STOPPED_PEOPLE
        for place in refused:
            assert seconds[place] not in called
            first, second = [await api.call("GET", f"/messages/{each[place]}") for each in (firsts, seconds)]
            assert first["lastError"].startswith("opted_out"), first
            assert second["lastError"].startswith("opted_out"), second
        logged = stage.service.log.read_text()
        assert "refusal_not_noted" not in logged
        assert "frame_not_taken" not in logged


async def test_calls_of_a_worker_have_all_the_time_of_a_stop(tmp_path: Path) -> None:
    """The provider answers after eight to ten seconds, as this seed draws: a front without calls has six, a call 15."""
    stage = SimulatedStage(tmp_path, seed=981, protocol="bridge", shares={}, latency_ms=7_000)
    async with sending_in_live(stage, PACE) as (served, sender):
        service, file = served.service, served.file
        await send_many(served.api, sender, FEW)
        await until(lambda: begun(file) == FEW, "all are called for")
        calls = BegunCalls(service.data_dir, boot=boot_id(), name=file.name).seen()
        assert calls is not None
        assert len(calls) == FEW
        (worker,) = fronts_of(service)
        began = time.monotonic()
        status = await asyncio.to_thread(service.end, signal.SIGTERM)
        assert time.monotonic() - began > STOP_LIMIT
        assert not is_front(worker)
        assert len(calls) == 0
        calls.close()
        assert status == 0, service.tail()
        assert "stopped_before_the_end" not in service.log.read_text()
        assert {each.answered_at is not None for each in stage.requests()} == {True}
        assert len(stage.requests()) == FEW


async def test_a_worker_begins_nothing_while_the_owner_stands_still_and_goes_on_with_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.arrive()
        service, file, now = served.service, served.file, asyncio.get_running_loop().time
        count = await served.send_all()
        await until(lambda: begun(file) > PACE, "the worker has sent some")
        os.kill(owner_of(service), signal.SIGSTOP)
        try:
            stopped = now()
            await until(lambda: now() > stopped + ANSWERS_FOR + 0.1, "the last beat is over", every=0.05)
            before = begun(file)
            await until(lambda: now() > stopped + ANSWERS_FOR + 1.0, "a while has passed", every=0.05)
            assert begun(file) == before < OF_A_PROCESS * EACH
        finally:
            os.kill(owner_of(service), signal.SIGCONT)
        await until(served.all_left, "all have left", every=0.2)
        left_once(await served.messages(), count)


async def test_operators_see_of_a_workers_numbers_what_they_see_of_the_owners(tmp_path: Path) -> None:
    """Nothing leaves from a number of the owner: all that is seen is the worker's."""
    async with serving(tmp_path) as served:
        service, api, now = served.service, served.api, asyncio.get_running_loop().time
        customer = await served.arrive_at_worker(per_second=PACE)
        refused = await customer.send(phone("9001"))
        await customer.reaches(refused, "failed")
        took = []
        for _ in range(REPORTS):
            reported, began = await customer.send(phone("9002")), now()
            await customer.reaches(reported, "failed")
            took.append(now() - began)
        assert sorted(took)[REPORTS // 2] < REPORTED_WITHIN  # the owner need not find it by its look each second
        batch = await served.send(customer, LASTS * PACE)
        path = f"/v2/ops/numbers/{customer.number_id}"

        async def state() -> Any:
            return await api.call("GET", path)

        async def sends() -> bool:
            return bool((await state())["rate"]["sentLastSecond"])

        await until(sends, "the worker sends", every=0.1)
        seen = await state()
        failures = [each["messageId"] for each in seen["failures"]]
        assert (failures[0], failures[-1], len(failures)) == (reported["id"], refused["id"], 1 + REPORTS)
        assert seen["lastErrors"] == {"recipient_unreachable": 1, "provider_error": REPORTS}
        assert seen["errorRate5m"] > 0
        assert sum(each["failed"] for each in seen["series"]) == 1 + REPORTS
        assert any(each["p95Ms"] is not None and each["sent"] for each in seen["series"])
        (listed,) = [each for each in await items(api, "numbers") if each["numberId"] == customer.number_id]
        assert listed["lastErrors"] == seen["lastErrors"]
        (connection,) = [each for each in await items(api, "providers") if each["channel"] == "chatapp"]
        assert 0 < connection["successRate"] < 1
        assert connection["p50Ms"] is not None
        lane = ":".join((served.organization_id, "test", "chatapp", customer.number_id))
        (actor,) = [each for each in await items(api, "actors") if each["path"] == f"recado/lanes/{lane}"]
        assert (actor["kind"], actor["key"], actor["state"]) == ("Lane", lane, "running")
        assert actor["handled"] > 0
        figures = await scraped(service)
        assert figures['recado_actors{kind="Lane"}'] >= 1
        assert figures['recado_gateway_tokens{channel="chatapp",env="test",gateway="own"}'] > 0
        assert figures['recado_batch_rows_waiting{batch="departed"}'] >= 0

        async def counted() -> bool:
            return bool((await scraped(service))['recado_batch_rows_total{batch="departed"}'] > PACE)

        await until(counted, "what the worker commits is counted", every=0.5)
        told = await streamed(service, {"numbers", "throughput", "actors"})
        (number,) = [each for each in told["numbers"] if each["numberId"] == customer.number_id]
        assert number["rate"]["sentLastMinute"] > 0
        assert told["throughput"][0]["sentLastMinute"] >= number["rate"]["sentLastMinute"]
        assert lane in {each["key"] for each in told["actors"]}
        (worker,) = fronts_of(service)
        os.kill(worker, signal.SIGSTOP)
        for each in ("providers", "actors"):
            asked = now()
            await items(api, each)
            assert now() - asked < ANSWER_LIMIT
        os.kill(worker, signal.SIGCONT)
        await api.call("POST", f"/v2/batches/{batch['id']}/cancel")


async def test_a_worker_gets_its_numbers_however_many_batches_are_paused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.arrive()
        service, api, customer = served.service, served.api, served.of_worker
        batch = await served.send(customer, LASTS * PACE)
        await api.call("POST", f"/v2/batches/{batch['id']}/pause")
        database = await asyncpg.connect(**service.cluster().connect_arguments)
        await database.execute(
            "insert into batches select "
            "(jsonb_populate_record(b, jsonb_build_object('id', 'bat_' || lpad(n::text, 21, '0')))).* "
            "from batches b, generate_series(1, $2::int) n where b.id = $1",
            batch["id"], MORE_THAN_A_LINK_HOLDS,
        )  # fmt: skip
        await database.close()
        service.end(signal.SIGKILL)
        await service.start()
        await served.prepared()
        file, path = served.file, f"/v2/batches/{batch['id']}"
        left = (await api.call("GET", path))["totals"]["queued"]

        async def worker_sends() -> bool:
            message = await customer.send(phone("9004"))
            await customer.reaches(message, "delivered")
            return message["id"].encode() in file.read_bytes()

        await until(worker_sends, "the worker has its numbers", every=0.2)
        assert (await api.call("GET", path))["totals"]["queued"] == left
        logged = service.log.read_text()
        assert "gates_not_said" not in logged
        assert "front_ended" not in logged


async def items(api: Api, what: str) -> list[Any]:
    found: list[Any] = (await api.call("GET", f"/v2/ops/{what}"))["items"]
    return found


async def scraped(service: Service) -> dict[str, float]:
    """All samples, by name and labels."""
    async with aiohttp.ClientSession() as session, session.get(f"{service.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


async def streamed(service: Service, kinds: set[str]) -> dict[str, list[Any]]:
    """The first items of each of these kinds that the stream tells."""
    headers, told = {"Authorization": f"Bearer {service.key('test')}"}, dict[str, list[Any]]()
    async with aiohttp.ClientSession(headers=headers) as session, session.get(f"{service.url}/v2/ops/stream") as answer:
        async with asyncio.timeout(PATIENCE):
            kind = ""
            while not kinds <= told.keys():
                name, _, content = (await answer.content.readuntil(b"\n")).decode().strip().partition(": ")
                kind = content if name == "event" else kind
                if name == "data" and kind not in told:
                    told[kind] = json.loads(content)["items"]
    return told
