"""Requests that the database has to stop because they and another change wait for each other: 503, and nothing done."""

import asyncio
from typing import Any

from tests.captured import capture_logs
from tests.http.conftest import Api
from tests.waiting import until_locked_out

PHONE = "+5511987654321"


async def stopped(api: Api, locked: str, wanted: str, request: Any) -> Any:
    """The answer to a request that waits for the row `locked` while we wait for the row `wanted`, which it has."""
    with capture_logs() as logs:
        async with api.database.transaction() as connection:
            await connection.execute("set local deadlock_timeout = '1min'")  # so that the request has to give way
            await connection.execute(f"select from {locked} for update")
            running = asyncio.ensure_future(request)
            await until_locked_out(api.database)  # the request waits for the row
            await connection.execute(f"select from {wanted} for update")
            answer = await running
    assert [entry["event"] for entry in logs] == ["transaction_collided", "request_refused"]
    return answer


async def test_a_change_that_has_to_give_way_is_told_to_come_again_and_left_nothing(api: Api) -> None:
    company = (await api.post("/v2/companies", {"nome": "Loja"})).body
    contact = (await api.post("/contacts", {"phone": PHONE, "name": "Maria"})).body
    path, change = f"/contacts/{contact['id']}", {"name": "Ana", "companyId": company["id"]}
    answer = await stopped(api, "contacts", "companies", api.patch(path, change))
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "SERVICE_UNAVAILABLE", "1")
    assert (await api.get(path)).body == contact
    assert (await api.patch(path, change)).status == 200


async def test_a_request_that_has_to_give_way_frees_its_key(api: Api) -> None:
    contacts = [
        (await api.post("/contacts", {"phone": phone, "email": "a@b.co"})).body for phone in (PHONE, PHONE[:-1] + "2")
    ]
    first, second = sorted(contact["id"] for contact in contacts)
    how: dict[str, Any] = {"headers": {"Idempotency-Key": "once"}}
    opt_out = api.post("/contacts/opt-out", {"email": "a@b.co"}, **how)
    answer = await stopped(api, f"contacts where id = '{second}'", f"contacts where id = '{first}'", opt_out)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert await api.database.fetchval("select count(*) from opt_outs") == 0
    again = await api.post("/contacts/opt-out", {"email": "a@b.co"}, **how)
    assert (again.status, again.body["alreadyOptedOut"]) == (200, False)
    assert "Idempotency-Replayed" not in again.headers
