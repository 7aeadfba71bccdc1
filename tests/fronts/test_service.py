"""A service with fronts holds what one process holds: changes, limits and keys are of all of them at once."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.fronts.processes import Press, fronts_of
from tests.program import Api, Service
from tests.waiting import until

from recado.fronts.front import FIGURES_EVERY

pytestmark = pytest.mark.long

MOST_WAIT = 2.5  # seconds until a change is answered: fronts follow it, or may answer nothing
UNLIMITED = {"perSecond": 5_000, "capacity": 5_000}
Change = Callable[[Api, Api, Customer, Any], Awaitable[Any]]


async def new_key(api: Api, **limit: float) -> Any:
    return await api.call(
        "POST", "/v2/api-keys",
        {"name": "of a front", "scopes": ["messages:send"], "rateLimits": {"send": limit or UNLIMITED}},
    )  # fmt: skip


def letter(customer: Customer) -> dict[str, Any]:
    return {
        "numberId": customer.number_id, "to": phone(), "type": "template", "templateId": customer.template_id,
        "templateVars": ["hello"],
    }  # fmt: skip


async def revoke(api: Api, admin: Api, customer: Customer, key: Any) -> None:
    await api.call("DELETE", f"/v2/api-keys/{key['id']}")


async def narrow(api: Api, admin: Api, customer: Customer, key: Any) -> None:
    await api.call("PATCH", f"/v2/api-keys/{key['id']}", {"scopes": ["messages:read"]})


async def suspend(api: Api, admin: Api, customer: Customer, key: Any) -> None:
    organization_id = (await api.call("GET", "/v2/organization"))["id"]
    await admin.call("PATCH", f"/v2/admin/organizations/{organization_id}", {"status": "suspended"})


async def delete_template(api: Api, admin: Api, customer: Customer, key: Any) -> None:
    await api.call("DELETE", f"/v2/templates/{customer.template_id}")


async def disconnect_number(api: Api, admin: Api, customer: Customer, key: Any) -> None:
    await api.call("POST", f"/numbers/{customer.number_id}/disconnect")


@pytest.mark.parametrize(
    ("change", "statuses"),
    [
        (revoke, {401, 429}),  # who shows no valid key has a limit for each address
        (narrow, {403}),
        (suspend, {403}),
        (delete_template, {404, 422}),
        (disconnect_number, {404, 409, 422}),
    ],
)
async def test_from_the_answer_to_a_change_on_no_front_goes_by_what_was_before(
    service: Service, api: Api, admin: Api, change: Change, statuses: set[int]
) -> None:
    customer, key = await Customer.arrive(api), await new_key(api)
    now = asyncio.get_running_loop().time
    async with Press(service.url, key["token"], "/messages", letter(customer)).pressing() as press:
        await until(lambda: len(press.accepted()) > 50, "messages are accepted")
        asked = now()
        await change(api, admin, customer, key)
        answered = now()
        await until(lambda: len(press.since(answered)) > 100, "more were sent")
    if change is suspend:
        organization_id = (await api.call("GET", "/v2/organization"))["id"]
        await admin.call("PATCH", f"/v2/admin/organizations/{organization_id}", {"status": "active"})
    assert answered - asked < MOST_WAIT
    assert press.accepted(answered) == []
    assert {each.status for each in press.since(answered)} <= statuses


async def test_a_request_limit_is_exact_over_all_processes(service: Service, api: Api) -> None:
    customer, capacity = await Customer.arrive(api), 40
    key = await new_key(api, perSecond=0.02, capacity=capacity)
    answers = await Press(service.url, key["token"], "/messages", letter(customer)).at_once(32, each=4)
    assert Counter(each.status for each in answers) == {201: capacity, 429: 32 * 4 - capacity}
    for each in answers:
        if each.status == 429:
            assert each.body["code"] == "RATE_LIMITED"
            assert 1 <= int(each.headers["Retry-After"]) <= 50
    assert {each.headers["RateLimit-Policy"] for each in answers} == {answers[0].headers["RateLimit-Policy"]}


async def test_one_idempotency_key_on_all_processes_makes_one_message(service: Service, api: Api, token: str) -> None:
    customer = await Customer.arrive(api)
    body = letter(customer)
    press = Press(service.url, token, "/messages", body)
    answers = await press.at_once(32, **{"Idempotency-Key": secrets.token_hex(8)})
    made = {each.body["id"] for each in answers if each.status == 201}
    assert len(made) == 1
    assert {each.status for each in answers} <= {201, 409}
    found = [each["id"] async for each in api.pages("/messages", numberId=customer.number_id)]
    assert found == list(made)


async def test_metrics_and_logs_tell_of_what_fronts_did(service: Service, api: Api, token: str) -> None:
    customer = await Customer.arrive(api)
    body = letter(customer)

    async def figures() -> tuple[float, float]:
        async with aiohttp.ClientSession() as session, session.get(f"{service.url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        sums = Counter[str]()
        for line in lines:
            name, _, value = line.rpartition(" ")
            if name.startswith('recado_messages_accepted_total{channel="chatapp"'):
                sums["accepted"] += float(value)
            if name == 'recado_http_requests_total{method="POST",route="/messages",status="2xx"}':
                sums["requests"] += float(value)
        return sums["accepted"], sums["requests"]

    before = (-1.0, -1.0)

    async def settled() -> bool:
        nonlocal before
        last, before = before, await figures()
        return last == before

    await until(settled, "what other tests did is counted", every=2 * FIGURES_EVERY)
    answers = await Press(service.url, token, "/messages", body).at_once(8, each=5)
    assert {each.status for each in answers} == {201}

    async def counted() -> bool:
        return await figures() == (before[0] + 40, before[1] + 40)

    await until(counted, "all are counted")
    log = service.log.read_text()
    fronts = {line.get("front") for line in map(json.loads, log.splitlines())}
    assert {1, 2} <= fronts
    assert body["to"] not in log
    assert token not in log
    assert len(fronts_of(service)) == 2
