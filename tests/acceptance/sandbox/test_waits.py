"""Every wait is explained, and ends when its reason does (C14.5, C14.6)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.acceptance.sandbox.conftest import Early, Newcomer
from tests.acceptance.sandbox.customer import Customer, ahead, approved_template, moment, phone
from tests.program import Api, Refused

SOON = 1.5  # seconds
POLLED = timedelta(seconds=2)  # due messages are looked for every second


@pytest.fixture
async def customer(api: Api) -> Customer:
    return await Customer.arrive(api)


@pytest.mark.alone
async def test_a_scheduled_message_waits_for_its_moment_and_leaves_on_time(customer: Customer) -> None:
    far = await customer.send(phone(), scheduledAt=ahead(3_600))
    assert await customer.waits(far, "scheduled") == {"reason": "scheduled", "until": far["scheduledAt"]}

    message = await customer.send(phone(), scheduledAt=ahead(SOON))
    read = await customer.reaches(message, "read")

    assert timedelta() <= moment(read["sentAt"]) - moment(message["scheduledAt"]) <= POLLED
    [scheduled, *_] = read["waits"]
    until = moment(read["scheduledAt"]) - moment(read["createdAt"])
    assert scheduled == {"reason": "scheduled", "ms": until // timedelta(milliseconds=1)}


async def test_what_waited_for_the_pace_says_how_long_once_it_has_left(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=1)
    await customer.pause()
    messages = await asyncio.gather(*(customer.send(phone()) for _ in range(3)))
    await customer.resume()
    read = [await customer.reaches(message, "read") for message in messages]

    last = max(read, key=lambda message: moment(message["sentAt"]))
    waited = {each["reason"]: each["ms"] for each in last["waits"]}
    took = (moment(last["sentAt"]) - moment(last["createdAt"])) // timedelta(milliseconds=1)
    assert waited.keys() - {"operator_paused"} == {"rate"}
    assert 1_000 <= waited["rate"] <= sum(waited.values()) <= took


async def test_a_forced_message_leaves_before_its_moment(customer: Customer) -> None:
    message = await customer.send(phone(), scheduledAt=ahead(3_600))
    await customer.waits(message, "scheduled")

    forced = await customer.api.call("POST", f"/messages/{message['id']}/force")
    read = await customer.reaches(message, "read")

    assert (forced["force"], read["force"]) == (True, True)
    assert moment(read["scheduledAt"]) <= moment(read["sentAt"]) < moment(message["scheduledAt"])
    with pytest.raises(Refused, match="409"):
        await customer.api.call("POST", f"/messages/{message['id']}/force")


async def test_a_forced_message_passes_those_before_it_and_they_pay_for_it(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=2)
    await customer.pause()
    queue = [await customer.send(phone()) for _ in range(6)]

    await api.call("POST", f"/messages/{queue[-1]['id']}/force")
    await customer.resume()
    sent = [await customer.reaches(message, "read") for message in queue]

    order = sorted(range(6), key=lambda index: sent[index]["sentAt"])
    assert order.index(5) <= 1
    assert [index for index in order if index != 5] == [0, 1, 2, 3, 4]
    times = sorted(moment(message["sentAt"]) for message in sent)
    assert times[-1] - times[0] >= timedelta(seconds=2.3)  # six tokens at two a second, the first one aside


async def test_an_archived_message_never_leaves(customer: Customer) -> None:
    await customer.pause()
    withdrawn, other = [await customer.send(phone()) for _ in range(2)]

    archived = await customer.api.call("POST", f"/messages/{withdrawn['id']}/archive")
    await customer.resume()
    await customer.reaches(other, "read")
    latest = await customer.read(withdrawn)

    assert (archived["status"], latest["status"], "sentAt" in latest) == ("archived", "archived", False)
    assert latest["lastError"].startswith("withdrawn: ")
    with pytest.raises(Refused, match="409"):
        await customer.api.call("POST", f"/messages/{withdrawn['id']}/archive")


async def test_quiet_hours_hold_marketing_and_bulk_until_they_end(newcomer: Newcomer) -> None:
    _, customer = await newcomer()
    now = datetime.now(UTC)
    end = (now + timedelta(hours=2)).replace(second=0, microsecond=0)
    quiet = {"start": f"{now - timedelta(hours=1):%H:%M}", "end": f"{end:%H:%M}"}
    await customer.api.call("PATCH", "/v2/organization", {"timeZone": "UTC", "quietHours": quiet})
    marketing = await approved_template(customer.api, customer.number_id, "marketing")

    held = [await customer.send(phone(), priority="bulk"), await customer.send(phone(), templateId=marketing)]
    passing = await customer.send(phone(), priority="critical")
    forced = await customer.send(phone(), templateId=marketing, force=True)

    for message in held:
        waiting = await customer.waits(message, "quiet_hours")
        assert moment(waiting["until"]) == end
    await customer.reaches(passing, "read")
    await customer.reaches(forced, "read")
    assert [(await customer.read(message))["status"] for message in held] == ["queued", "queued"]
    await customer.api.call("PATCH", "/v2/organization", {"quietHours": None})
    for message in held:
        await customer.reaches(message, "read")


async def test_a_suspension_holds_everything_and_its_end_lets_it_go(newcomer: Newcomer, admin: Api) -> None:
    organization_id, customer = await newcomer()
    await customer.pause()
    message = await customer.send(phone(), priority="critical")

    await admin.call("PATCH", f"/v2/admin/organizations/{organization_id}", {"status": "suspended"})
    await customer.resume(admin)
    await customer.waits(message, "organization_suspended")
    await admin.call("PATCH", f"/v2/admin/organizations/{organization_id}", {"status": "active"})

    await customer.reaches(message, "read")


async def test_a_paused_template_holds_its_messages_until_it_is_approved_again(customer: Customer) -> None:
    await customer.pause()
    message = await customer.send(phone())
    await customer.simulate_template("paused")
    await customer.resume()

    assert await customer.waits(message, "template_state") == {
        "reason": "template_state",
        "detail": "the template is paused",
    }
    with pytest.raises(Refused, match="TEMPLATE_NOT_APPROVED"):
        await customer.send(phone())
    await customer.simulate_template("approved")

    await customer.reaches(message, "read")


async def test_a_disabled_template_fails_its_messages(customer: Customer) -> None:
    await customer.pause()
    message = await customer.send(phone())
    await customer.simulate_template("paused")
    await customer.resume()
    await customer.waits(message, "template_state")

    await customer.simulate_template("disabled")

    failed = await customer.reaches(message, "failed")
    assert failed["lastError"].startswith("template_unavailable: ")
    assert "sentAt" not in failed


async def test_a_flagged_number_sends_only_critical_and_replies(customer: Customer) -> None:
    await customer.simulate_number(status="flagged")
    person = phone()
    inbound = {"numberId": customer.number_id, "from": person, "text": "hello"}
    await customer.api.call("POST", "/v2/sandbox/inbound", inbound)

    held = await customer.send(phone())
    critical = await customer.send(phone(), priority="critical")
    content = {"type": "text", "templateId": None, "templateVars": None, "payload": {"text": {"body": "yes?"}}}
    reply = await customer.send(person, **content)

    await customer.reaches(critical, "read")
    await customer.reaches(reply, "read")
    await customer.waits(held, "number_state")
    await customer.simulate_number(status="connected")
    await customer.reaches(held, "read")


async def test_a_number_that_is_disconnected_holds_what_is_queued(customer: Customer) -> None:
    await customer.pause()
    message = await customer.send(phone(), priority="critical")
    await customer.api.call("POST", f"/numbers/{customer.number_id}/disconnect")
    await customer.resume()

    await customer.waits(message, "number_state")
    await customer.api.call("POST", f"/numbers/{customer.number_id}/connect")

    await customer.reaches(message, "read")


async def test_a_used_up_day_holds_the_rest_until_it_frees_or_is_raised(api: Api) -> None:
    customer = await Customer.arrive(api, per_day=2)
    sent = [await customer.send(phone()) for _ in range(2)]
    for message in sent:
        await customer.reaches(message, "read")

    third = await customer.send(phone(), priority="critical")
    waiting = await customer.waits(third, "daily_limit")
    await api.call("PATCH", f"/numbers/{customer.number_id}", {"rateLimit": {"perDay": 3}})
    await customer.reaches(third, "read")

    until = moment(waiting["until"]) - moment(third["createdAt"])
    assert timedelta(hours=23, minutes=58) <= until <= timedelta(hours=24, minutes=2)


async def test_red_quality_slows_the_number_and_stops_bulk(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=8)
    await customer.simulate_number(qualityRating="red")

    bulk = await customer.send(phone(), priority="bulk")
    normal = await asyncio.gather(*(customer.send(phone()) for _ in range(6)))
    sent = [moment((await customer.reaches(message, "read"))["sentAt"]) for message in normal]

    await customer.waits(bulk, "quality")
    assert max(sent) - min(sent) >= timedelta(seconds=2.4)  # two a second
    await customer.simulate_number(qualityRating="green")
    await customer.reaches(bulk, "read")


async def test_a_transient_refusal_says_when_it_is_tried_again_and_spends_attempts(
    regular: Customer, early: Early
) -> None:
    read = await regular.reaches(early.refused, "read", limit=60)

    accepted = moment(read["createdAt"])
    assert early.waiting["reason"] == "retry"
    assert accepted + timedelta(seconds=4.9) <= moment(early.waiting["until"]) <= early.seen + timedelta(seconds=5.1)
    assert read["attempts"] == 3
    assert moment(read["sentAt"]) - accepted >= timedelta(seconds=35)
