"""A message that its number's actor cannot survive is set aside at the third failure, and stops nobody else's."""

import signal
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.acceptance.sandbox.customer import Customer, approved_template, phone
from tests.program import Api, Service, running
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres


@pytest.mark.long
async def test_a_message_that_fails_its_actor_three_times_is_set_aside_and_the_others_leave(tmp_path: Path) -> None:
    service = Service(tmp_path, SANDBOX_TIME_SCALE="0.1")
    async with running(service):
        token = service.key("test")
        async with Api(service.url, token) as api:
            customer = await Customer.arrive(api)
            unreadable = await approved_template(api, customer.number_id, category="marketing")
            await customer.pause()
            poison = await customer.send(phone(), templateId=unreadable)
            others = [await customer.send(phone()) for _ in range(5)]
            await api.call("POST", f"/numbers/{customer.number_id}/disconnect")
            await customer.resume()
            for message in (poison, *others):
                await customer.waits(message, "number_state")

        # Between two lives the template becomes what no reader understands, as a later version may leave it behind.
        assert service.end(signal.SIGTERM) == 0
        server = EmbeddedPostgres(service.data_dir, clock=SystemClock())
        try:
            connection = await asyncpg.connect(**await server.start())
            await connection.execute("update templates set category = 'unheard_of' where id = $1", unreadable)
            await connection.close()
        finally:
            await server.stop()
        await service.start()

        async with Api(service.url, token) as api:
            customer = Customer(api, customer.number_id, customer.template_id)
            await api.call("POST", f"/numbers/{customer.number_id}/connect")

            async def set_aside() -> Any:
                return (await api.call("GET", "/messages", status="failed"))["items"]

            # Not asked for by its id: why it waits cannot be told without the template.
            (failed,) = await until(set_aside, "the message is set aside", every=0.1)
            for message in others:
                await customer.reaches(message, "read")

    assert failed["id"] == poison["id"]
    assert failed["lastError"] == "provider_error: it could not be processed"
    assert failed.get("sentAt") is None
    lines = service.log.read_text().splitlines()
    assert sum("child failed" in line and customer.number_id in line for line in lines) == 3
    assert [poison["id"] in line for line in lines if "message_set_aside" in line] == [True]
