"""Who calls the operations on e-mail over HTTP, in a service where e-mail can be sent."""

import itertools
from typing import Any

import asyncpg
import pytest
from tests.program import Api, Refused, Service
from tests.waiting import until

SECRET_WORDS = "the-secret-of-the-house"
ANA = "ana@example.com"
_serial = itertools.count(1)


class Mail:
    """One caller of the operations on e-mail."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def send(self, to: str = ANA, *, key: str | None = None, **more: Any) -> Any:
        body = {"to": to, "subject": "Your order", "html": f"<p>{SECRET_WORDS}</p>", "text": "It is ready.", **more}
        body = {name: value for name, value in body.items() if value is not None}
        return await self.api.call("POST", "/v2/email/messages", body, key=key or f"key {next(_serial)}")

    async def refused(self, status: int, code: str, *args: Any, **more: Any) -> Any:
        """The problem that a send gets."""
        with pytest.raises(Refused) as found:
            await self.send(*args, **more)
        assert (found.value.status, found.value.body["code"]) == (status, code)
        return found.value.body

    async def read(self, message_id: str) -> Any:
        return await self.api.call("GET", f"/v2/email/messages/{message_id}")

    async def comes_to(self, message_id: str, status: str) -> Any:
        async def came() -> bool:
            return bool((await self.read(message_id))["status"] == status)

        await until(came, f"{message_id} is {status}", every=0.05)
        return await self.read(message_id)

    async def balance(self) -> tuple[int, int]:
        wallet = await self.api.call("GET", "/v2/wallet")
        return wallet["balanceCoins"], wallet["heldCoins"]

    async def suppression(self, address: str) -> list[str]:
        found = await self.api.call("GET", "/v2/email/suppressions", email=address)
        return [each["reason"] for each in found["items"]]


async def ready_in_live(service: Service, admin_token: str) -> None:
    """A sender for example.com, and coins. No name server is asked here, so that the sender is verified by hand."""
    organization = service.command("org", "list", "--json")["items"][0]["id"]
    async with Api(service.url, service.key("live", org=None)) as api:
        await api.call("POST", "/v2/email/senders", {"domain": "example.com", "displayName": "Example"})
    async with Api(service.url, admin_token) as administrator:
        way = f"/v2/admin/organizations/{organization}/wallet-credits"
        await administrator.call("POST", way, {"env": "live", "coins": 1_000, "reference": "first"})
    database = await asyncpg.connect(**service.cluster().connect_arguments)
    await database.execute("update email_senders set status = 'verified', is_default = true where env = 'live'")
    await database.close()
