"""What a journey has queued stands still with it, leaves once when it goes on, and ends with it (C9.12)."""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Service, running
from tests.waiting import until

PEOPLE = 30  # of whom few have been sent to when all are on their way, at one message a second
FAST = 100  # messages a second
LEFT = {"sent", "delivered", "read"}


async def begin(customer: Customer, people: int) -> str:
    """A journey of one send, with so many contacts whose executions are over, and most of whose messages wait."""
    await pace(customer, 1)
    send = {
        "id": "send", "tipo": "enviar", "canal": "chatapp", "templateId": customer.template_id,
        "numberId": customer.number_id, "variaveis": {"1": {"de": "fixo", "valor": "here"}}, "proximo": "end",
    }  # fmt: skip
    api = customer.api
    steps = [send, {"id": "end", "tipo": "fim"}]
    definition = {"name": "One send", "gatilho": {"tipo": "api"}, "inicio": "send", "passos": steps}
    journey_id = str((await api.call("POST", "/v2/journeys", definition))["id"])
    await move(customer, journey_id, "activate")

    async def enter() -> None:
        contact = await api.call("POST", "/contacts", {"phone": phone()})
        await api.call("POST", f"/v2/journeys/{journey_id}/entries", {"contato": {"contactId": contact["id"]}})

    await asyncio.gather(*[enter() for _ in range(people)])

    async def over() -> bool:
        found = await api.call("GET", f"/v2/journeys/{journey_id}")
        return bool(found["execucoes"]["concluida"] == people)

    await until(over, "all executions are over")
    return journey_id


async def pace(customer: Customer, per_second: int) -> None:
    limit = {"rateLimit": {"perSecond": per_second, "perDay": 100_000}}
    await customer.api.call("PATCH", f"/numbers/{customer.number_id}", limit)


async def move(customer: Customer, journey_id: str, what: str) -> Any:
    return await customer.api.call("POST", f"/v2/journeys/{journey_id}/{what}")


async def messages_of(customer: Customer, journey_id: str) -> list[Any]:
    found = [each async for each in customer.api.pages("/messages", numberId=customer.number_id)]
    return [each for each in found if (each.get("metadata") or {}).get("journeyId") == journey_id]


async def left_of(customer: Customer, journey_id: str) -> int:
    return sum(each["status"] in LEFT for each in await messages_of(customer, journey_id))


async def test_a_paused_journey_stands_still_and_all_leaves_once_when_it_goes_on(api: Api) -> None:
    customer = await Customer.arrive(api)
    journey_id = await begin(customer, PEOPLE)
    assert (await move(customer, journey_id, "pause"))["status"] == "pausada"

    async def at_rest() -> bool:
        return all(each["status"] in {"queued", "read"} for each in await messages_of(customer, journey_id))

    await until(at_rest, "what had left has arrived")
    before = await left_of(customer, journey_id)
    assert before < PEOPLE
    for _ in range(2):
        await customer.reaches(await customer.send(phone()), "read")  # others of the same number leave
    assert await left_of(customer, journey_id) == before
    waiting = next(each for each in await messages_of(customer, journey_id) if each["status"] == "queued")
    assert (await customer.read(waiting))["waiting"]["reason"] == "owner_paused"
    await pace(customer, FAST)
    assert (await move(customer, journey_id, "activate"))["status"] == "ativa"

    async def all_left() -> bool:
        return await left_of(customer, journey_id) == PEOPLE

    await until(all_left, "all have left")
    found = await messages_of(customer, journey_id)
    assert Counter(each["to"] for each in found).most_common(1)[0][1] == 1
    assert len(found) == PEOPLE


async def test_an_archive_withdraws_what_waits_and_its_coins_are_back(newcomer: Any) -> None:
    _, customer = await newcomer()
    journey_id = await begin(customer, PEOPLE)
    assert (await customer.api.call("GET", "/v2/wallet"))["heldCoins"] > 0
    assert (await move(customer, journey_id, "archive"))["status"] == "arquivada"

    async def nothing_waits() -> Any:
        found = await messages_of(customer, journey_id)
        return found if all(each["status"] != "queued" for each in found) else None

    found = await until(nothing_waits, "what waited is withdrawn")
    archived = [each for each in found if each["status"] == "archived"]
    assert len(archived) >= PEOPLE // 6
    assert (await customer.read(archived[0]))["lastError"].startswith("withdrawn: its journey was archived")

    async def nothing_held() -> bool:
        return bool((await customer.api.call("GET", "/v2/wallet"))["heldCoins"] == 0)

    await until(nothing_held, "the coins are back")


@pytest.mark.long
async def test_a_pause_outlives_a_service_that_is_killed(tmp_path: Path) -> None:
    async with (
        running(Service(tmp_path, SANDBOX_TIME_SCALE="0.1")) as service,
        Api(service.url, await asyncio.to_thread(service.key, "test")) as api,
    ):
        customer = await Customer.arrive(api)
        journey_id = await begin(customer, PEOPLE)
        await move(customer, journey_id, "pause")
        service.end(signal.SIGKILL)
        await service.start()
        await customer.reaches(await customer.send(phone()), "read")
        before = await left_of(customer, journey_id)
        assert before < PEOPLE
        await customer.reaches(await customer.send(phone()), "read")
        assert await left_of(customer, journey_id) == before
        await pace(customer, FAST)
        await move(customer, journey_id, "activate")

        async def none_waits() -> bool:
            return all(each["status"] != "queued" for each in await messages_of(customer, journey_id))

        await until(none_waits, "all have left")
