"""Firebase Cloud Messaging against a stub of its own: tokens that another library verifies, and every answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from joserfc import jwt
from joserfc.jwk import RSAKey
from tests.channels.peer import Connection, FakeBridge
from yarl import URL

from recado.channels.core.provider import Accepted, Down, Outcome, Refused, Retry, SlowDown, Unknown
from recado.channels.push.fcm import SCOPE, Fcm
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification
from recado.engine.clock import SystemClock, VirtualClock

DISPATCH = "dsp_" + "0" * 21
SIGNED_WITH = rsa.generate_private_key(65_537, 2_048)
TOKEN = {"access_token": "token-1", "expires_in": 3_599, "token_type": "Bearer"}


def account() -> dict[str, Any]:
    pem = SIGNED_WITH.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {
        "project_id": "shop-1",
        "client_email": "push@shop-1.example.com",
        "private_key_id": "k1",
        "private_key": pem,
    }


def credential(given: dict[str, Any] | None) -> PushCredential:
    return PushCredential(
        app_id="app_1", organization_id="org_1", env="live", vapid_private="", vapid_public="", service_account=given
    )


def notification(**more: Any) -> PushNotification:
    shown: dict[str, Any] = {"title": "Hello", "body": "News", "data": {"order": 7}, **more}
    return PushNotification(dispatch_id=DISPATCH, message_id="psh_1", token="device-token", **shown)


def service(status: int = 200, body: Any = None, headers: str = "", tokens: int = 200, token: Any = None) -> Any:
    async def behave(connection: Connection) -> None:
        while True:
            request = await connection.read_request()
            if request.path == "/token":
                await connection.answer(tokens, orjson.dumps(TOKEN if token is None else token))
            else:
                await connection.answer(status, orjson.dumps(body or {"name": "projects/1"}), headers)

    return behave


@pytest.fixture
async def fcm(fake_bridge: FakeBridge) -> AsyncIterator[Fcm]:
    base = URL(f"http://127.0.0.1:{fake_bridge.port}")
    made = Fcm(base, base / "token", clock=SystemClock())
    await made.start()
    yield made
    await made.stop()


async def test_a_notification_is_handed_over_with_a_token_that_was_asked_for_once(
    fcm: Fcm, fake_bridge: FakeBridge
) -> None:
    fake_bridge.behaviour = service()
    sender = credential(account())
    for _ in range(3):
        assert await fcm.send(
            notification(deep_link="app://7", image_url="https://example.com/a.png"), sender, 1
        ) == Accepted(DISPATCH)
    asked = [request for request in fake_bridge.requests if request.path == "/token"]
    sent = [request for request in fake_bridge.requests if request.path != "/token"]
    assert (len(asked), len(sent)) == (1, 3)

    form = parse_qs(asked[0].body.decode())
    public = SIGNED_WITH.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    decoded = jwt.decode(form["assertion"][0], RSAKey.import_key(public), algorithms=["RS256"])
    assert decoded.header["kid"] == "k1"
    assert (decoded.claims["iss"], decoded.claims["scope"]) == ("push@shop-1.example.com", SCOPE)
    assert decoded.claims["aud"] == f"http://127.0.0.1:{fake_bridge.port}/token"
    assert decoded.claims["exp"] - decoded.claims["iat"] == 3_600

    assert (sent[0].path, sent[0].headers["authorization"]) == ("/v1/projects/shop-1/messages:send", "Bearer token-1")
    message: Any = sent[0].json["message"]
    assert message["token"] == "device-token"
    assert message["notification"] == {"title": "Hello", "body": "News", "image": "https://example.com/a.png"}
    assert message["data"] == {"dispatchId": DISPATCH, "deepLink": "app://7", "data": '{"order":7}'}


async def test_a_device_of_apple_s_gets_the_same_over_firebase_as_from_apple(
    fake_bridge: FakeBridge, clock: VirtualClock
) -> None:
    """As long as it is worth being delivered, with a sound, and with its image."""
    fake_bridge.behaviour = service()
    base = URL(f"http://127.0.0.1:{fake_bridge.port}")
    fcm = Fcm(base, base / "token", clock=clock)
    await fcm.start()
    expires = str(int(clock.now().timestamp()) + 600)
    for shown, aps in (
        ({}, {"sound": "default"}),
        ({"image_url": "https://example.com/a.png"}, {"sound": "default", "mutable-content": 1}),
    ):
        assert await fcm.send(notification(seconds=600, **shown), credential(account()), 1) == Accepted(DISPATCH)
        message: Any = fake_bridge.requests[-1].json["message"]
        assert message["apns"] == {"headers": {"apns-expiration": expires}, "payload": {"aps": aps}}
        assert message["android"]["ttl"] == "600s"
    await fcm.stop()


async def test_a_silent_one_shows_nothing(fcm: Fcm, fake_bridge: FakeBridge) -> None:
    fake_bridge.behaviour = service()
    await fcm.send(notification(title=None, body=None, silent=True), credential(account()), 1)
    message: Any = fake_bridge.requests[-1].json["message"]
    assert "notification" not in message
    assert message["apns"]["payload"] == {"aps": {"content-available": 1}}


def told(code: Any) -> dict[str, Any]:
    return {"error": {"details": [{"@type": "another"}, {"errorCode": code}]}}


GONE = told("UNREGISTERED")


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        (service(404, GONE), UNREGISTERED),
        (service(400, GONE), UNREGISTERED),
        (service(400, {"error": {"details": "?"}}), "provider_error"),
        (service(400, ["?"]), "provider_error"),
        (service(404, {"error": {"status": "NOT_FOUND"}}), Down("not_found")),
        (service(404, told(["UNREGISTERED"])), Down("not_found")),
        (service(403, told("SENDER_ID_MISMATCH")), "invalid_token"),
        (service(401, told("THIRD_PARTY_AUTH_ERROR")), "unauthorized"),
        (service(401), Down("unauthorized")),
        (service(403), Down("forbidden")),
        (service(429, headers="Retry-After: 11\r\n"), SlowDown(11.0)),
        (service(503), Retry(None)),
        (service(500), Unknown()),
        (service(tokens=429), SlowDown(None)),
        (service(tokens=400), Down("unauthorized")),
        (service(tokens=500), Down("connect_failed")),
        (service(token={"access_token": 7}), Down("unauthorized")),
        (service(token={"access_token": "a\r\nX: y"}), Down("unauthorized")),
        (service(token=[]), Down("unauthorized")),
    ],
)
async def test_what_the_service_answers(
    fcm: Fcm, fake_bridge: FakeBridge, answered: Any, expected: Outcome | str
) -> None:
    fake_bridge.behaviour = answered
    outcome = await fcm.send(notification(), credential(account()), 1)
    if isinstance(expected, str):
        assert isinstance(outcome, Refused)
        assert outcome.code == expected
    else:
        assert outcome == expected


async def test_an_app_without_an_account_sends_nothing(fcm: Fcm, fake_bridge: FakeBridge) -> None:
    outcome = await fcm.send(notification(), credential(None), 1)
    assert isinstance(outcome, Refused)
    assert outcome.code == "no_credentials"
    assert fake_bridge.requests == []


@pytest.mark.parametrize("seconds", [0, -7, 1, 299, "nan", "inf", 1e300])
async def test_a_token_is_kept_however_odd_its_life(fcm: Fcm, fake_bridge: FakeBridge, seconds: Any) -> None:
    fake_bridge.behaviour = service(token={**TOKEN, "expires_in": seconds})
    for _ in range(2):
        assert await fcm.send(notification(), credential(account()), 1) == Accepted(DISPATCH)
    asked = [request for request in fake_bridge.requests if request.path == "/token"]
    assert len(asked) == (1 if seconds in (1, 299, "inf", 1e300) else 2)


async def test_many_refusals_of_one_token_ask_for_one_other(fcm: Fcm, fake_bridge: FakeBridge) -> None:
    """The late ones speak of the token before."""
    given = 0
    late = asyncio.Event()

    async def behave(connection: Connection) -> None:
        nonlocal given
        while True:
            request = await connection.read_request()
            if request.path == "/token":
                given += 1
                await connection.answer(200, orjson.dumps({**TOKEN, "access_token": f"token-{given}"}))
                continue
            if request.headers["authorization"] == "Bearer token-2":
                late.set()
                await connection.answer(200, b"{}")
                continue
            if b"late" in request.body:
                await late.wait()
            await connection.answer(401, b"{}")

    fake_bridge.behaviour = behave
    sender = credential(account())
    waiting = asyncio.create_task(fcm.send(notification(title="late"), sender, 1))
    assert await fcm.send(notification(), sender, 1) == Down("unauthorized")
    assert await fcm.send(notification(), sender, 1) == Accepted(DISPATCH)
    assert await waiting == Down("unauthorized")
    assert await fcm.send(notification(), sender, 1) == Accepted(DISPATCH)
    assert given == 2
