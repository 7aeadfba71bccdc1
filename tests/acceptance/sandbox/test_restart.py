"""A restart forgets nothing: queue, schedule, reports and replies go on where they were (C29.4, C32)."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, ahead, moment, phone
from tests.program import Api, Service, running
from tests.waiting import until


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Service]:
    """A service that the test may end, in which reports take their full time: two seconds until `read`."""
    async with running(Service(tmp_path)) as service:
        yield service


@pytest.mark.alone  # of reports and replies, it says when they come
@pytest.mark.long
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM])
async def test_what_waits_at_a_restart_happens_after_it(way: signal.Signals, own: Service) -> None:
    async with Api(own.url, await asyncio.to_thread(own.key, "test")) as api:
        customer, slow = await Customer.arrive(api), await Customer.arrive(api, per_second=4)
        answered = await customer.send(phone("9007"))
        scheduled = await customer.send(phone(), scheduledAt=ahead(4))
        queue = [await slow.send(phone()) for _ in range(12)]
        await customer.leaves(answered)

        status = own.end(way)
        await own.start()

        assert status == (0 if way is signal.SIGTERM else -way)
        read = await customer.reaches(answered, "read")
        assert timedelta(seconds=1.9) <= moment(read["readAt"]) - moment(read["sentAt"]) <= timedelta(seconds=2.5)
        late = await customer.reaches(scheduled, "read")
        assert moment(late["sentAt"]) >= moment(scheduled["scheduledAt"])

        async def answers() -> int:
            return int((await api.call("GET", "/messages", direction="inbound"))["total"])

        assert await until(answers, "the person has answered", every=0.05) == 1
        ended = [await _ended(slow, message["id"]) for message in queue]
        lost = [message for message in ended if message["status"] == "sending"]
        assert len(lost) <= (2 if way is signal.SIGKILL else 0)  # under way at the kill: uncertain, never sent again
        sent = sorted(moment(message["sentAt"]) for message in ended if message not in lost)
        assert all(later - early >= timedelta(seconds=1) for early, later in zip(sent, sent[4:], strict=False))
        assert {message["attempts"] for message in ended} == {1}


async def _ended(customer: Customer, message_id: str) -> dict[str, object]:
    """The message when it is read, or when nobody knows whether it left."""
    latest: dict[str, object] = {}

    async def so() -> bool:
        nonlocal latest
        latest = await customer.api.call("GET", f"/messages/{message_id}")
        return latest["status"] == "read" or latest.get("waiting") == {"reason": "uncertain"}

    await until(so, "the message has ended", every=0.05)
    return latest


@pytest.mark.long
async def test_a_batch_that_was_being_made_at_a_kill_is_made_whole_and_once(own: Service) -> None:
    async with Api(own.url, await asyncio.to_thread(own.key, "test")) as api:
        customer = await Customer.arrive(api, per_second=1, per_day=100_000)
        people = [{"to": f"+4915{number:09}"} for number in range(6_000)]
        body = {"numberId": customer.number_id, "type": "template", "templateId": customer.template_id}
        batch = await api.call(
            "POST", "/messages/bulk", {**body, "templateVars": ["hello"], "recipients": people, "priority": "normal"}
        )

        own.end(signal.SIGKILL)
        await own.start()

        async def made() -> bool:
            found = await api.call("GET", f"/v2/batches/{batch['id']}")
            return bool(found["status"] == "running")

        await until(made, "the batch is made whole", every=0.05)
        await api.call("POST", f"/v2/batches/{batch['id']}/pause")
        recipients = []
        page: dict[str, str] = {"limit": "200"}
        while True:
            found = await api.call("GET", "/messages", batchId=batch["id"], **page)
            recipients += [message["to"] for message in found["items"]]
            if "nextCursor" not in found:
                break
            page["cursor"] = found["nextCursor"]
        assert sorted(recipients) == sorted(person["to"] for person in people)
        totals = (await api.call("GET", f"/v2/batches/{batch['id']}"))["totals"]
        assert (totals["accepted"], totals["queued"] + totals["sent"] + totals["delivered"] + totals["read"]) == (
            6_000,
            6_000,
        )


async def test_whoever_opted_out_before_a_kill_is_answered_after_it_and_once(own: Service) -> None:
    async with Api(own.url, await asyncio.to_thread(own.key, "test")) as api:
        customer = await Customer.arrive(api)
        await api.call("PATCH", "/v2/organization", {"optOutReply": "Bye."})
        taken: set[str] = set()

        async def opt_out(who: str) -> None:
            written = {"numberId": customer.number_id, "from": who, "text": "sair"}
            with suppress(aiohttp.ClientError, OSError):
                await api.call("POST", "/v2/sandbox/inbound", written)
                taken.add(who)

        people = [asyncio.create_task(opt_out(phone())) for _ in range(80)]
        await until(lambda: len(taken) >= 10, "some have opted out", every=0.001)
        own.end(signal.SIGKILL)
        await asyncio.gather(*people)
        await own.start()

        async def answered() -> bool:
            denied = [each["phone"] async for each in api.pages("/contacts", optInStatus="denied")]
            answers = [each["to"] async for each in api.pages("/messages", direction="outbound")]
            return taken <= set(denied) and sorted(answers) == sorted(denied)

        await until(answered, "everybody is answered once", every=0.05)


@pytest.mark.long
async def test_a_limit_that_came_before_a_restart_counts_whom_the_number_had_written_to(own: Service) -> None:
    async with Api(own.url, await asyncio.to_thread(own.key, "test")) as api:
        customer = await Customer.arrive(api)
        health = f"/numbers/{customer.number_id}/health"
        for _ in range(3):
            await customer.reaches(await customer.send(phone()), "read")
        without = (await api.call("GET", health))["window24h"]
        await customer.simulate_number(messagingTier="tier_250")

        assert own.end(signal.SIGKILL) == -signal.SIGKILL
        await own.start()

        await customer.reaches(await customer.send(phone()), "read")
        assert without == {"sent": 3, "uniqueRecipients": 3, "tierLimit": None}
        assert (await api.call("GET", health))["window24h"] == {"sent": 4, "uniqueRecipients": 4, "tierLimit": 250}


@pytest.mark.long
async def test_a_full_tier_is_as_full_after_a_restart_until_it_is_raised(own: Service) -> None:
    async with Api(own.url, await asyncio.to_thread(own.key, "test")) as api:
        customer = await Customer.arrive(api)
        await customer.simulate_number(messagingTier="tier_250")
        people = [f"+4916{number:09}" for number in range(250)]
        await api.call(
            "POST",
            "/messages/bulk",
            {
                "numberId": customer.number_id,
                "type": "template",
                "templateId": customer.template_id,
                "templateVars": ["hello"],
                "recipients": [{"to": to} for to in people],
                "priority": "normal",
            },
        )

        async def left() -> bool:
            return not any(
                [(await api.call("GET", "/messages", status=status))["total"] for status in ("queued", "sending")]
            )

        await until(left, "the tier is full", every=0.1)
        stranger = await customer.send(phone())
        full = await customer.waits(stranger, "tier_limit")
        assert full["detail"] == "the number's tier is tier_250"

        assert own.end(signal.SIGKILL) == -signal.SIGKILL
        await own.start()

        known = await customer.reaches(await customer.send(people[0]), "read")
        another = await customer.send(phone())
        frees_at = moment((await customer.waits(another, "tier_limit"))["until"])
        assert abs(frees_at - moment(full["until"])) < timedelta(seconds=5)  # when the first of the 250 counts no more
        assert await customer.waits(stranger, "tier_limit") == full
        await customer.simulate_number(messagingTier="tier_1k")
        for message in (stranger, another):
            assert moment((await customer.reaches(message, "read"))["sentAt"]) > moment(known["sentAt"])
