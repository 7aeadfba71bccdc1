"""What a load test needs before it sends: connected numbers, each with an approved template, and coins in test."""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from recado.domain.billing.top_up import MOST_COINS
from recado.domain.templates.template_content import variable_count
from recado.loadtest.api import Api
from recado.loadtest.channels import CHANNELS, CHATAPP
from recado.loadtest.errors import LoadTestError
from recado.loadtest.workload import Sender

TEMPLATE_NAME = "load_test"
_PER_DAY = 10_000_000
_VERIFICATION = 15.0  # seconds; the sandbox takes two


class Changes:
    """What a load test changed of numbers that were there before it, to be put back after it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._former: list[tuple[str, str, Any]] = []

    async def make(self, method: str, path: str, *, body: Any, former: Any) -> Any:
        """Make one change; `former`: the body that undoes it."""
        self._former.append((method, path, former))
        return await self._api.call(method, path, body=body)

    async def put_back(self) -> None:
        """Undo them, the last one first; one that is refused keeps none of the others from it."""
        while self._former:
            method, path, former = self._former.pop()
            with contextlib.suppress(LoadTestError):
                await self._api.call(method, path, body=former)


async def prepare(
    api: Api,
    changes: Changes,
    *,
    channel: str = CHATAPP,
    number_ids: Sequence[str],
    count: int,
    template_id: str | None,
    per_second: int | None,
) -> list[Sender]:
    """Return the senders: the numbers named, else the first `count` that are connected, made where they are missing.

    A channel that sends from no numbers is one sender, whose pace `per_second` only says.

    `per_second` is set on each of them, with a daily limit out of the way; numbers that were not named lose their limit
    of recipients, which would hold most of a test's messages back for a day. Raises LoadTestError.
    """
    body = CHANNELS[channel].body
    if body is not None:
        if number_ids or count != 1 or template_id is not None:
            raise LoadTestError(f"--number, --numbers and --template are not of channel {channel}: leave them out")
        return [Sender(channel, per_second, body)]
    if number_ids:
        numbers = [await api.call("GET", f"/numbers/{number_id}") for number_id in number_ids]
    else:
        numbers = (await api.items("/numbers", {"status": "connected"}))[:count]
        while len(numbers) < count:
            numbers.append(await _make_number(api))
        for number in numbers:
            if number["messagingTier"] != "unlimited":
                path, former = f"/v2/sandbox/numbers/{number['id']}", {"messagingTier": number["messagingTier"]}
                await changes.make("POST", path, body={"messagingTier": "unlimited"}, former=former)
    if template_id is not None and len(numbers) != 1:
        raise LoadTestError("--template belongs to one number: name it with --number, or leave --template out")
    senders = []
    for number in numbers:
        if per_second is not None:
            limits = {"rateLimit": {"perSecond": per_second, "perDay": _PER_DAY}}
            path, former = f"/numbers/{number['id']}", {"rateLimit": number["rateLimit"]}
            number = await changes.make("PATCH", path, body=limits, former=former)
        template = await _template(api, number["id"], template_id)
        senders.append(template_sender(number, template))
    return senders


def template_sender(number: Mapping[str, Any], template: Mapping[str, Any]) -> Sender:
    """A number that sends messages of a template."""
    body = {
        "numberId": number["id"],
        "type": "template",
        "templateId": template["id"],
        "templateVars": [f"variable {each + 1}" for each in range(variable_count(template["components"]))],
    }
    return Sender(number["id"], number["rateLimit"]["perSecond"], body)


async def fill_wallet(api: Api, messages: Mapping[str, int]) -> int:
    """Top up a test wallet by what it lacks for so many messages at the highest price that can apply; how many coins.

    `messages`: how many of each channel.

    None are added to a live wallet, without a wallet, or with a key that may not do so: then a load may end with 402.
    """
    with contextlib.suppress(LoadTestError):
        wallet = await api.call("GET", "/v2/wallet")
        if wallet["env"] == "test":
            prices = (await api.call("GET", "/v2/wallet/prices"))["prices"]
            costs = sum(count * _highest(prices, CHANNELS[channel].priced_as) for channel, count in messages.items())
            lacks: int = costs - wallet["availableCoins"]
            if lacks > 0:
                coins = min(lacks, MOST_COINS)
                await api.call("POST", "/v2/wallet/top-ups", body={"coins": coins})
                return coins
    return 0


def _highest(prices: Sequence[Any], channel: str) -> int:
    """The most that a message of one unit can cost, in coins."""
    of_channel = [each for each in prices if each["channel"] == channel]
    amounts: list[int] = [coins for each in of_channel for coins in (*each["coins"], each.get("internationalCoins", 0))]
    return max(amounts, default=0)


async def _make_number(api: Api) -> Any:
    """Make a test number and wait until it can be connected (C14.2)."""
    digits, serial = f"{secrets.randbelow(10**8):08}", secrets.token_hex(8)
    body = {
        "phoneNumberId": f"load-test-{serial}",
        "businessAccountId": f"load-test-{serial}",  # an account has one organization
        "displayPhone": f"+1555{digits[:7]}",
    }
    number = await api.call("POST", "/numbers", body=body)
    for _ in range(int(_VERIFICATION / 0.25)):
        if number["status"] == "available":
            return await api.call("POST", f"/numbers/{number['id']}/connect")
        await asyncio.sleep(0.25)
        number = await api.call("GET", f"/numbers/{number['id']}")
    raise LoadTestError(
        f"the new number {number['id']} is {number['status']} still: connect one, and name it with --number"
    )


async def _template(api: Api, number_id: str, template_id: str | None) -> Any:
    if template_id is not None:
        return await api.call("GET", f"/v2/templates/{template_id}")
    known = await api.items("/v2/templates", {"numberId": number_id})
    template = next((each for each in known if each["name"] == TEMPLATE_NAME), None)
    if template is None:
        component = {"type": "BODY", "payload": {"text": "This is {{1}} of a load test.", "example": ["message 1"]}}
        body = {
            "numberId": number_id,
            "name": TEMPLATE_NAME,
            "language": "en-US",
            "category": "utility",
            "components": [component],
        }
        template = await api.call("POST", "/v2/templates", body=body)
    if template["status"] != "approved":
        await api.call("POST", f"/v2/sandbox/templates/{template['id']}", body={"status": "approved"})
    return template
