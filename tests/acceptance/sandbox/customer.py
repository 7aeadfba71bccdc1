"""A customer in the test environment: a number, an approved template, and the few things that are done with them."""

import itertools
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from tests.program import Api, Refused
from tests.waiting import until

SEEN_WITHIN = 20.0  # seconds; on a loaded machine
_people = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Customer:
    """Sends through one number, by one template of one variable."""

    api: Api
    number_id: str
    template_id: str

    @classmethod
    async def arrive(cls, api: Api, *, per_second: int = 80, per_day: int = 100_000, category: str = "utility") -> Self:
        """A customer with a new connected number, whose recipients nothing limits."""
        name = f"number-{secrets.token_hex(6)}"
        number = await api.number(name, per_second=per_second, per_day=per_day, messagingTier="unlimited")
        return cls(api, number["id"], await approved_template(api, number["id"], category))

    async def send(self, to: str, **fields: Any) -> Any:
        body = {"numberId": self.number_id, "to": to, "type": "template", "templateId": self.template_id}
        return await self.api.call("POST", "/messages", {**body, "templateVars": ["hello"], **fields})

    async def sends_at_last(self, to: str, **fields: Any) -> Any:
        """The message, asked for again while the database is away."""

        async def sent() -> Any:
            try:
                return await self.send(to, **fields)
            except Refused as refusal:
                if refusal.status != 503:
                    raise
                return None

        return await until(sent, "the message is accepted", every=0.2)

    async def read(self, message: Any) -> Any:
        return await self.api.call("GET", f"/messages/{message['id']}")

    async def reaches(self, message: Any, status: str, limit: float = SEEN_WITHIN) -> Any:
        """The message when it has the status."""
        latest: Any = None

        async def there() -> bool:
            nonlocal latest
            latest = await self.read(message)
            return bool(latest["status"] == status)

        try:
            await until(there, f"the message is {status}", limit=limit, every=0.05)
        except AssertionError:
            raise AssertionError(f"the message is not {status}: {latest}") from None
        return latest

    async def leaves(self, message: Any) -> None:
        """Come back when it has left, and perhaps has arrived since."""

        async def left() -> bool:
            return "sentAt" in await self.read(message)

        await until(left, "the message has left", every=0.05)

    async def waits(self, message: Any, reason: str) -> Any:
        """What the message says of its wait once it waits for that reason."""
        latest: Any = None

        async def so() -> bool:
            nonlocal latest
            latest = await self.read(message)
            return bool((latest.get("waiting") or {}).get("reason") == reason)

        try:
            await until(so, f"the message waits for {reason}", every=0.05)
        except AssertionError:
            raise AssertionError(f"the message does not wait for {reason}: {latest}") from None
        return latest["waiting"]

    async def pause(self) -> None:
        """Everything waits from now on, however long what comes next takes."""
        await self.api.call("POST", f"/v2/ops/numbers/{self.number_id}/pause")

    async def resume(self, operator: Api | None = None) -> None:
        """`operator`: who may where the organization itself may not."""
        await (operator or self.api).call("POST", f"/v2/ops/numbers/{self.number_id}/resume")

    async def simulate_number(self, **report: str) -> None:
        await self.api.call("POST", f"/v2/sandbox/numbers/{self.number_id}", report)

    async def simulate_template(self, status: str) -> None:
        await self.api.call("POST", f"/v2/sandbox/templates/{self.template_id}", {"status": status})


async def approved_template(api: Api, number_id: str, category: str = "utility") -> str:
    component = {"type": "BODY", "payload": {"text": "Dear {{1}}, it is here.", "example": ["Ana"]}}
    draft = {
        "numberId": number_id,
        "name": f"notice_{category}",
        "language": "en-US",
        "category": category,
        "components": [component],
    }
    template_id: str = (await api.call("POST", "/v2/templates", draft))["id"]
    await api.call("POST", f"/v2/sandbox/templates/{template_id}", {"status": "approved"})
    return template_id


def phone(suffix: str = "0000") -> str:
    """A phone that no other test of the run uses, with the last digits that tell the sandbox what to do (C29.4)."""
    return f"+55119{next(_people) % 10_000:04}{suffix}"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ahead(seconds: float) -> str:
    """A timestamp so many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
