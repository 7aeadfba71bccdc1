"""Batches through a running service: they leave at once, stand still when paused, and end as they should (C15.5)."""

from typing import Any

from tests.acceptance.sandbox.customer import Customer, ahead, phone
from tests.program import Api
from tests.waiting import until

from recado.domain.core.timestamps import format_timestamp, parse_timestamp


async def bulk(customer: Customer, recipients: list[dict[str, Any]], **fields: Any) -> Any:
    body = {
        "numberId": customer.number_id,
        "type": "template",
        "templateId": customer.template_id,
        "templateVars": ["hello"],
        "recipients": recipients,
        **fields,
    }
    return await customer.api.call("POST", "/messages/bulk", body)


async def becomes(customer: Customer, batch: Any, wanted: dict[str, Any]) -> Any:
    """The batch once its record, or its totals, have these values."""
    latest: Any = None

    async def there() -> bool:
        nonlocal latest
        latest = await customer.api.call("GET", f"/v2/batches/{batch['id']}")
        return all({**latest["totals"], **latest}[name] == value for name, value in wanted.items())

    try:
        await until(there, "the batch is there", every=0.05)
    except AssertionError:
        raise AssertionError(f"the batch has not {wanted}: {latest}") from None
    return latest


async def test_a_scheduled_batch_says_when_in_its_answer_and_its_record(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=500)
    moment = format_timestamp(parse_timestamp(ahead(3_600)))
    accepted = await bulk(customer, [{"to": phone()}], scheduledAt=moment)
    assert accepted["scheduledAt"] == moment
    path = f"/v2/batches/{accepted['id']}"
    assert (await api.call("GET", path))["scheduledAt"] == moment
    assert (await api.call("GET", f"/messages?batchId={accepted['id']}"))["items"][0]["scheduledAt"] == moment
    await api.call("POST", f"{path}/cancel")
    assert "scheduledAt" not in await bulk(customer, [{"to": phone()}])


async def test_a_batch_is_sent_and_completed(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=500)
    people = [{"to": phone()} for _ in range(40)]
    accepted = await bulk(customer, [*people, people[0], {"to": "nonsense"}], name="Spring", campaignId="spring")
    assert accepted["status"] == "running"
    assert accepted["totals"]["requested"] == 42
    assert accepted["totals"]["accepted"] == 40
    assert accepted["skippedReasons"] == {"DUPLICATE_RECIPIENT": 1, "PHONE_INVALID": 1}
    done = await becomes(customer, accepted, {"status": "completed", "read": 40})
    assert {**done["totals"], "read": 0, "requested": 0, "skipped": 0, "accepted": 0} == dict.fromkeys(
        done["totals"], 0
    )
    assert done["finishedAt"] >= done["startedAt"] == done["createdAt"]
    messages = await customer.api.call("GET", f"/messages?batchId={accepted['id']}&limit=200")
    assert {message["to"] for message in messages["items"]} == {person["to"] for person in people}
    assert {message["campaignId"] for message in messages["items"]} == {"spring"}


async def test_a_large_batch_leaves_while_it_is_made_and_is_made_whole(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=40, per_day=100_000)  # more than a minute for all of them
    people = [{"to": f"+4915{number:09}"} for number in range(3_500)]
    accepted = await bulk(customer, people)
    assert (accepted["status"], accepted["totals"]["accepted"]) == ("building", 1_000)
    await becomes(customer, accepted, {"accepted": 3_500, "status": "running"})
    cancelled = await customer.api.call("POST", f"/v2/batches/{accepted['id']}/cancel")
    assert cancelled["status"] == "canceled"
    at_rest = await becomes(customer, accepted, {"queued": 0})
    totals = at_rest["totals"]
    assert totals["archived"] > 0
    assert totals["archived"] + totals["sent"] + totals["delivered"] + totals["read"] + totals["failed"] == 3_500


async def test_a_large_batch_is_canceled_at_once_and_archived_by_and_by(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=5)
    accepted = await bulk(customer, [{"to": f"+4915{number:09}"} for number in range(6_500)], campaignId="called off")
    await becomes(customer, accepted, {"accepted": 6_500})

    async def nothing_is_on_its_way() -> bool:
        number = await customer.api.call("GET", f"/v2/ops/numbers/{customer.number_id}")
        held = (number.get("holding") or {}).get("reason") == "operator_paused"
        leaving = await customer.api.call("GET", f"/messages?batchId={accepted['id']}&status=sending&limit=1")
        return held and number["inFlight"] == leaving["total"] == 0

    await customer.pause()
    await until(nothing_is_on_its_way, "what was taken to be sent has left", every=0.05)
    canceled = await customer.api.call("POST", f"/v2/batches/{accepted['id']}/cancel")
    assert (canceled["status"], canceled["totals"]["accepted"]) == ("canceled", 6_500)
    await customer.resume()
    gone = 6_500 - canceled["totals"]["queued"] - canceled["totals"]["archived"]
    at_rest = await becomes(customer, accepted, {"queued": 0})
    assert at_rest["totals"]["archived"] == 6_500 - gone
    assert at_rest["finishedAt"] == canceled["finishedAt"]
    assert at_rest["heldCoins"] == 0
    campaign = await customer.api.call("GET", "/v2/campaigns/called%20off")
    assert campaign["totals"]["archived"] == at_rest["totals"]["archived"]


async def test_a_paused_batch_stands_still_and_others_go_on(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=1)
    accepted = await bulk(customer, [{"to": phone()} for _ in range(60)], priority="normal")
    paused = await customer.api.call("POST", f"/v2/batches/{accepted['id']}/pause")
    assert paused["status"] == "paused"
    single = await customer.send(phone())
    await customer.reaches(single, "read")
    waiting = await customer.api.call("GET", f"/messages?batchId={accepted['id']}&status=queued")
    assert waiting["total"] >= 20
    oldest = await customer.read(waiting["items"][-1])
    assert oldest["waiting"]["reason"] == "owner_paused"
    fast = {"rateLimit": {"perSecond": 500, "perDay": 100_000}}
    await customer.api.call("PATCH", f"/numbers/{customer.number_id}", fast)
    resumed = await customer.api.call("POST", f"/v2/batches/{accepted['id']}/resume")
    assert resumed["status"] == "running"
    await becomes(customer, accepted, {"status": "completed"})


async def test_a_scheduled_batch_waits_for_its_moment(regular: Customer) -> None:
    accepted = await bulk(regular, [{"to": phone()}], scheduledAt=ahead(3600), name="Later", campaignId="later")
    assert await regular.api.call("GET", f"/v2/batches/{accepted['id']}") == accepted
    [message] = (await regular.api.call("GET", f"/messages?batchId={accepted['id']}"))["items"]
    assert (await regular.waits(message, "scheduled"))["until"] == message["scheduledAt"]
    await regular.api.call("POST", f"/v2/batches/{accepted['id']}/cancel")
    done = await becomes(regular, accepted, {"archived": 1, "queued": 0})
    assert done["status"] == "canceled"
    assert (await regular.read(message))["lastError"].startswith("withdrawn: ")


async def test_a_batch_of_nobody_has_failed(regular: Customer) -> None:
    accepted = await bulk(regular, [{"to": "12"}, {"contactId": "cnt_0"}, {}])
    assert accepted["status"] == "failed"
    assert accepted["errors"] == [
        {
            "path": "/recipients/0/to",
            "code": "PHONE_INVALID",
            "message": "The phone must be in international form, such as +5521912345678.",
        },
        {
            "path": "/recipients/1/contactId",
            "code": "REFERENCE_NOT_FOUND",
            "message": "No contact cnt_0.",
        },
        {
            "path": "/recipients/2",
            "code": "RECIPIENT_MISSING",
            "message": "The recipient is empty: give `to` or `contactId`.",
        },
    ]
    assert await regular.api.call("GET", f"/v2/batches/{accepted['id']}") == accepted
