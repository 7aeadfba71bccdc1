"""Devices registered and pushes sent as fast as they are answered: nobody else waits for them."""

import asyncio
import itertools
import secrets
from typing import Any

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Api, Service

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 20
DEVICES = 400
REGISTER, OPT_OUT, SEND = "/v2/push/tokens", "/v2/push/tokens/opt-out", "/v2/push/messages"
LONG = "x" * 255
SERVED = {200, 201, 429, 503}


@pytest.fixture
async def app_id(api: Api) -> str:
    """An app of the attacker, on all platforms."""
    return str((await api.call("GET", "/v2/push/apps"))["items"][0]["id"])


def device(app_id: str, token: str) -> dict[str, Any]:
    """A registration with everything as long as it may be."""
    return {
        "appId": app_id, "token": token, "platform": "android", "externalId": LONG, "userName": LONG,
        "deviceName": LONG, "topics": [f"{n:02}" + "t" * 62 for n in range(50)],
    }  # fmt: skip


@pytest.mark.long
async def test_registrations_without_a_pause_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, app_id: str, seconds: float
) -> None:
    numbers = itertools.count()
    rest = secrets.token_hex(2_000)

    async def register() -> int:
        # Every second one is of a token that others register at this moment.
        number = next(numbers)
        token = f"{number if number % 2 else 0} {rest}"
        return await attacker.ask("POST", REGISTER, device(app_id, token))

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, register)
    assert answers[200] >= AT_ONCE
    assert set(answers) <= SERVED


async def test_devices_that_opt_out_without_a_pause_while_pushes_leave_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, app_id: str, seconds: float
) -> None:
    """Who opted out is remembered for a while: what that costs must not grow with how many did."""
    rest = secrets.token_hex(16)
    for number in range(AT_ONCE):
        assert await attacker.ask("POST", REGISTER, {**device(app_id, f"{number} {rest}"), "topics": []}) == 200
    numbers = itertools.count()

    def ask() -> Any:
        number = next(numbers)
        if number % 4 == 0:
            header = {"Idempotency-Key": secrets.token_hex(16)}
            body = {"title": "Hello", "body": "News", "platforms": ["android"], "segment": "all_opt_in"}
            return attacker.ask("POST", SEND, body, header)
        if number % 4 == 1:
            return attacker.ask("POST", OPT_OUT, {"appId": app_id, "token": f"{number % AT_ONCE} {rest}"})
        token = f"{number} {rest}"  # of a device that nobody knows yet
        return attacker.ask(
            "POST", REGISTER, {"appId": app_id, "token": token, "platform": "android", "optedIn": False}
        )

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, ask)
    assert answers[200] >= AT_ONCE
    assert set(answers) <= SERVED | {422}  # when all have opted out, a send reaches nobody


@pytest.mark.long
async def test_pushes_to_many_devices_without_a_pause_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, service: Service, app_id: str, seconds: float
) -> None:
    async with Api(service.url, service.key("test", org=None)) as unlimited:
        numbers = itertools.count()
        tokens = [f"{n} {secrets.token_hex(8)}" for n in range(DEVICES)]
        left = iter(tokens)

        async def register() -> None:
            for token in left:
                await unlimited.call(
                    "POST",
                    REGISTER,
                    {"appId": app_id, "token": token, "platform": ("android", "ios")[next(numbers) % 2]},
                )

        await asyncio.gather(*(register() for _ in range(AT_ONCE)))
    body = {"title": "x" * 100, "body": "x" * 1_000, "platforms": ["android", "ios"]}
    audiences = itertools.cycle(({"segment": "all_opt_in"}, {"tokenIds": [*tokens, *(LONG for _ in range(5_000))]}))

    def send() -> Any:
        header = {"Idempotency-Key": secrets.token_hex(16)}
        return attacker.ask("POST", SEND, {**body, **next(audiences)}, header)

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, send)
    assert answers[201] >= AT_ONCE
    assert set(answers) <= SERVED
