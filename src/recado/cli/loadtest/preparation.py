"""What a load test needs before it sends: connected numbers, each with an approved template, and coins in test."""

import asyncio
import contextlib
import secrets
from collections.abc import Sequence
from typing import Any

from recado.cli.errors import CommandError
from recado.cli.loadtest.api import Api
from recado.cli.loadtest.workload import Sender
from recado.domain.template_content import variable_count
from recado.domain.top_up import MOST_COINS

TEMPLATE_NAME = "load_test"
_PER_DAY = 10_000_000
_PLENTY = MOST_COINS // 10  # coins: a hundred million messages
_VERIFICATION = 15.0  # seconds; the sandbox takes two


async def prepare(
    api: Api, *, number_ids: Sequence[str], count: int, template_id: str | None, per_second: int | None
) -> list[Sender]:
    """Return the senders: the numbers named, else the first `count` that are connected, made where they are missing.

    `per_second` is set on each of them, with a daily limit out of the way; numbers that were not named lose their limit
    of recipients, which would hold most of a test's messages back for a day. Raises CommandError.
    """
    if number_ids:
        numbers = [await api.call("GET", f"/numbers/{number_id}") for number_id in number_ids]
    else:
        numbers = (await api.items("/numbers", {"status": "connected"}))[:count]
        while len(numbers) < count:
            numbers.append(await _make_number(api))
        for number in numbers:
            if number["messagingTier"] != "unlimited":
                await api.call("POST", f"/v2/sandbox/numbers/{number['id']}", body={"messagingTier": "unlimited"})
    if template_id is not None and len(numbers) != 1:
        raise CommandError("--template belongs to one number: name it with --number, or leave --template out")
    senders = []
    for number in numbers:
        if per_second is not None:
            limits = {"rateLimit": {"perSecond": per_second, "perDay": _PER_DAY}}
            number = await api.call("PATCH", f"/numbers/{number['id']}", body=limits)
        template = await _template(api, number["id"], template_id)
        variables = variable_count(template["components"])
        senders.append(Sender(number["id"], number["rateLimit"]["perSecond"], template["id"], variables))
    await _fill_wallet(api)
    return senders


async def _fill_wallet(api: Api) -> None:
    """Top up a test wallet, so that no load ends with 402; nothing without a wallet, or a key that may do so."""
    with contextlib.suppress(CommandError):
        wallet = await api.call("GET", "/v2/wallet")
        if wallet["env"] == "test" and wallet["availableCoins"] < _PLENTY:
            await api.call("POST", "/v2/wallet/top-ups", body={"coins": MOST_COINS})


async def _make_number(api: Api) -> Any:
    """Make a test number and wait until it can be connected (C14.2)."""
    digits = f"{secrets.randbelow(10**8):08}"
    body = {
        "phoneNumberId": f"load-test-{secrets.token_hex(8)}",
        "businessAccountId": "load-test",
        "displayPhone": f"+1555{digits[:7]}",
    }
    number = await api.call("POST", "/numbers", body=body)
    for _ in range(int(_VERIFICATION / 0.25)):
        if number["status"] == "available":
            return await api.call("POST", f"/numbers/{number['id']}/connect")
        await asyncio.sleep(0.25)
        number = await api.call("GET", f"/numbers/{number['id']}")
    raise CommandError(
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
