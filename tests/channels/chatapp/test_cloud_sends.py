"""Every way in which a send to the hosted API can go, against a real socket: one table, one harness."""

import asyncio
import json
import logging
import socket
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.channels.chatapp.behaviours import (
    Behaviour,
    breaks_inside,
    closes_after_reading,
    hangs,
    resets_after_reading,
    resets_before_reading,
    says,
)

from recado.channels.chatapp.cloud import Cloud
from recado.channels.chatapp.cloud_codes import MEANINGS, reported_code
from recado.channels.provider import (
    Accepted,
    Account,
    Down,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    SlowPair,
    Unknown,
)
from recado.channels.refusals import PROVIDER_CODES

BRIEF = 1.0  # seconds; for cases that end by a time-out, and whose connection must be made before on a busy machine too
TAKEN = '{"messaging_product": "x", "contacts": [{"input": "1", "wa_id": "1"}], "messages": [{"id": "p-1"}]}'
HALF_TAKEN = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"messages": [{"id'
HALF_REFUSED = 'HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\n{"error": {"code": 131026'
PLAIN = "the provider answered with status"


def error(code: Any, status: int = 400, *, text: str = "m", headers: str = "", **more: Any) -> Behaviour:
    return says(status, json.dumps({"error": {"message": text, "type": "T", "code": code, **more}}), headers)


@dataclass(frozen=True)
class Case:
    name: str
    behaviour: Behaviour
    outcome: Outcome
    timeout: float = 5.0


CASES = [
    Case("accepts", says(200, TAKEN), Accepted("p-1")),
    Case("accepts and holds back", says(200, '{"messages": [{"id": "p-1", "message_status": "h"}]}'), Accepted("p-1")),
    Case("accepts without messages", says(200, "{}"), Unknown()),
    Case("accepts no message", says(200, '{"messages": []}'), Unknown()),
    Case("accepts without an id", says(200, '{"messages": [{}]}'), Unknown()),
    Case("accepts with a numeric id", says(200, '{"messages": [{"id": 7}]}'), Unknown()),
    Case("accepts with another shape", says(200, '{"messages": {"id": "p-1"}}'), Unknown()),
    Case("accepts with an id that cannot be stored", says(200, '{"messages": [{"id": "a\\u0000"}]}'), Unknown()),
    Case("accepts with garbage", says(200, "<html>"), Unknown()),
    Case("accepts endlessly", says(200, '{"messages": [{"id": "p"}], "x": "' + "x" * 2**20 + '"}'), Unknown()),
    Case("stops inside its acceptance", breaks_inside(HALF_TAKEN, then_hangs=False), Unknown()),
    Case("trickles its acceptance", breaks_inside(HALF_TAKEN, then_hangs=True), Unknown(), BRIEF),
    Case("sends the number too fast", error(130429, 429), SlowDown(None)),
    Case("sends the number too fast, and says how long", error(130429, headers="Retry-After: 7\r\n"), SlowDown(7.0)),
    Case("sends the account too fast", error(80007), SlowDown(None)),
    Case("sends the application too fast", error(4, 403), SlowDown(None)),
    Case("writes to one person too fast", error(131056), SlowPair(6.0)),
    Case("writes to one person far too fast", error(131056, headers="Retry-After: 60\r\n"), SlowPair(60.0)),
    Case("blocks the account", error(368, 403), Down("account_blocked")),
    Case("locks the account", error(131031, 403), Down("account_blocked")),
    Case("fails for now", error(131000, 500), Retry(None)),
    Case("is overloaded", error(131016, 503), Retry(None)),
    Case("has a fault", error(1, 500), Retry(None)),
    Case("has a service down", error(2, 503), Retry(None)),
    Case("does not reach the recipient", error(131026), Refused("recipient_unreachable", "m")),
    Case("is past the window", error(131047), Refused("window_closed", "m")),
    Case("wants other variables", error(132000), Refused("template_vars", "m")),
    Case("does not know the template", error(132001, 404), Refused("template_unavailable", "m")),
    Case("finds the text too long", error(132005), Refused("template_vars", "m")),
    Case("dislikes the template", error(132007), Refused("template_unavailable", "m")),
    Case("wants variables of another form", error(132012), Refused("template_vars", "m")),
    Case("has paused the template", error(132015), Retry(None)),
    Case("takes no marketing here", error(131063), Refused("template_unavailable", "m")),
    Case("has disabled the template", error(132016), Refused("template_unavailable", "m")),
    Case("has blocked the flow", error(132068), Refused("template_unavailable", "m")),
    Case("does not know the type", error(131051), Refused("media_invalid", "m")),
    Case("cannot fetch the media", error(131052), Refused("media_invalid", "m")),
    Case("cannot take the media", error(131053), Refused("media_invalid", "m")),
    Case("lets the number send less, for its spam", error(131048), SlowDown(None)),
    Case("protects the recipient", error(131049), Refused("policy_blocked", "m")),
    Case("was told to stop", error(131050), Refused("opted_out", "m")),
    Case("does not know the token", error(190, 401), Down("unauthorized")),
    Case("cannot authenticate", error(0, 401), Down("unauthorized")),
    Case("does not permit it", error(10, 403), Down("forbidden")),
    Case("lacks a permission", error(200, 403), Down("forbidden")),
    Case("lacks the last permission", error(299, 400), Down("forbidden")),
    Case("does not know the number", error(100, 400, error_subcode=33), Down("not_found")),
    Case("has the number unregistered", error(133010), Down("not_registered")),
    Case("finds a parameter invalid", error(100), Refused("provider_error", "m")),
    Case("has a new code", error(139999), Refused("provider_error", "m")),
    Case("has a new passing code", error(139999, is_transient=True), Retry(None)),
    Case("has a new code and a fault", error(139999, 500), Unknown()),
    Case("has a code of another type", error("131026"), Refused("provider_error", "m")),
    Case("has a flag for a code", error(False, 400), Refused("provider_error", "m")),
    Case(
        "explains itself", error(100, error_data={"details": "the details"}), Refused("provider_error", "the details")
    ),
    Case("explains oddly", error(100, error_data="odd", text=""), Refused("provider_error", f"{PLAIN} 400")),
    Case("refuses in garbage", says(422, "%%"), Refused("provider_error", f"{PLAIN} 422")),
    Case("refuses with another shape", says(400, '{"error": "no"}'), Refused("provider_error", f"{PLAIN} 400")),
    Case("stops inside its refusal", breaks_inside(HALF_REFUSED, False), Refused("provider_error", f"{PLAIN} 400")),
    Case(
        "quotes the recipient",
        error(131026, text="+55 11 98765-4321, or 5511987654321, is\n not there"),
        Refused("recipient_unreachable", "***, or ***, is not there"),
    ),
    Case(
        "quotes the text and the token",
        error(131049, text="the  secret of the house, number-token, a@b.example"),
        Refused("policy_blocked", "***, ***, ***"),
    ),
    Case("refuses at length", error(131049, text="é" * 9_999), Refused("policy_blocked", "é" * 200)),
    Case("does not let us in", says(401), Down("unauthorized")),
    Case("forbids", says(403), Down("forbidden")),
    Case("is not at this address", says(404), Down("not_found")),
    Case("has moved", says(307, "", "Location: http://127.0.0.1:9/messages\r\n"), Down("redirected")),
    Case("is busy", says(429, "", "Retry-After: 7\r\n"), SlowDown(7.0)),
    Case("is busy without a word", says(503), SlowDown(None)),
    Case("fails", says(500, TAKEN), Unknown()),
    Case("has a failing gateway", says(502, "<html>"), Unknown()),
    Case("has a slow gateway", says(504), Unknown()),
    Case("timed out reading us", says(408), Unknown()),
    Case("resets before it reads", resets_before_reading, Unknown()),
    Case("resets after it has read", resets_after_reading, Unknown()),
    Case("closes after it has read", closes_after_reading, Unknown()),
    Case("never answers", hangs, Unknown(), BRIEF),
    Case("speaks another protocol", breaks_inside("220 mail.example ESMTP\r\n", then_hangs=True), Unknown(), BRIEF),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_provider_that(
    case: Case,
    fake_bridge: Any,
    cloud_to: Any,
    message: OutboundMessage,
    account: Account,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    fake_bridge.behaviour = case.behaviour
    cloud: Cloud = await cloud_to(fake_bridge.url, timeout=case.timeout)

    outcome = await cloud.send(message, account, 1)

    assert outcome == case.outcome
    assert len(fake_bridge.requests) <= 1, "a POST is never repeated"
    for personal in (message.to, message.to[1:], "secret of the house", "number-token", "app-secret-77aa"):
        assert personal not in repr((outcome, message, account)) + caplog.text


@pytest.mark.parametrize("code", [*MEANINGS, None, 139999, -1])
def test_a_report_s_error_has_a_failure_code_of_ours(code: int | None) -> None:
    assert reported_code(code) in PROVIDER_CODES


def test_a_report_says_what_a_refusal_would_have_said() -> None:
    assert [reported_code(code) for code in (131026, 131049, 131050, 130429, 131056, 368, 131000, 132015)] == [
        "recipient_unreachable",
        "policy_blocked",
        "opted_out",
        "rate_limited",
        "rate_limited",
        "number_unavailable",
        "provider_error",
        "template_unavailable",
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [({"access_token": None}, "unauthorized"), ({"phone_number_id": "../oauth"}, "not_found")],
)
async def test_an_account_that_cannot_be_addressed_is_down(
    change: dict[str, Any], code: str, fake_bridge: Any, cloud_to: Any, message: OutboundMessage, account: Account
) -> None:
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.send(message, replace(account, **change), 1) == Down(code)
    assert fake_bridge.requests == []


async def test_nobody_at_the_port_is_down(cloud_to: Any, message: OutboundMessage, account: Account) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    cloud: Cloud = await cloud_to(f"http://127.0.0.1:{port}")

    assert await cloud.send(message, account, 1) == Down("connect_failed")


async def test_stopping_leaves_what_is_in_flight_in_doubt_and_refuses_the_rest(
    fake_bridge: Any, cloud_to: Any, message: OutboundMessage, account: Account
) -> None:
    arrived = asyncio.Event()

    async def reads_and_hangs(connection: Any) -> None:
        await connection.read_request()
        arrived.set()
        await connection.hang()

    fake_bridge.behaviour = reads_and_hangs
    cloud: Cloud = await cloud_to(fake_bridge.url)
    sending = asyncio.create_task(cloud.send(message, account, 1))
    await arrived.wait()

    await cloud.stop()
    await cloud.stop()

    assert await sending == Unknown()
    assert await cloud.send(message, account, 1) == Down("connect_failed")


@pytest.mark.parametrize("url", ["ftp://a.example", "https://", "https://u:p@a.example", "https://a.example?x=1"])
def test_an_address_that_is_none_of_an_api_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Cloud(url=url, app_secret="s", clock=None)  # type: ignore[arg-type]
