"""Web Push against others' code: what leaves is decrypted, and its token verified, by web-push-testing (RFC 8291)."""

import asyncio
import base64
import json
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.channels.behaviours import (
    Behaviour,
    closes_after_reading,
    resets_after_reading,
    resets_before_reading,
    says,
)
from tests.channels.peer import FakeBridge
from tests.program import free_port
from tests.waiting import until

from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, Retry, SlowDown, Unknown
from recado.channels.http.outbound_guard import Lookup, OutboundGuard
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification
from recado.channels.push.web_encryption import LONGEST
from recado.channels.push.webpush import WebPush
from recado.domain.core.base64url import base64url
from recado.domain.core.errors import Unavailable
from recado.domain.push.device import LONGEST_TOKEN
from recado.domain.push.vapid import RANDOM_BYTES, vapid_pair
from recado.engine.clock import SystemClock

NODE = Path(__file__).parents[2] / "node"
SERVICE = NODE / "node_modules" / "web-push-testing" / "src" / "bin" / "server.js"
DISPATCH = "dsp_" + "0" * 21


@dataclass
class Browsers:
    """A push service, and the browsers that are registered there."""

    url: str
    session: aiohttp.ClientSession

    async def ask(self, path: str, body: Any) -> Any:
        async with self.session.post(f"{self.url}{path}", json=body) as response:
            return json.loads(await response.text()) if response.content_type == "application/json" else None

    async def subscribe(self, key: str) -> Any:
        asked = {"userVisibleOnly": "true", "applicationServerKey": key}
        return (await self.ask("/subscribe", asked))["data"]

    async def got(self, client: str) -> list[str]:
        found: list[str] = (await self.ask("/get-notifications", {"clientHash": client}))["data"]["messages"]
        return found


@pytest.fixture(scope="module")
async def browsers() -> AsyncIterator[Browsers]:
    node = shutil.which("node")
    if node is None or not SERVICE.exists():
        pytest.skip("web-push-testing is not installed: `make test` installs it where nodejs and npm are")
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        node, str(SERVICE), str(port), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    async with aiohttp.ClientSession() as session:
        made = Browsers(f"http://localhost:{port}", session)

        async def answers() -> bool:
            try:
                await made.ask("/status", {})
            except aiohttp.ClientError:
                return False
            return True

        try:
            await until(answers, "the push service answers")
            yield made
        finally:
            process.kill()
            await process.wait()


@pytest.fixture
async def adapter() -> AsyncIterator[WebPush]:
    async with opened(
        OutboundGuard(clock=SystemClock(), allowed=[ip_network("127.0.0.0/8"), ip_network("::1/128")])
    ) as it:
        yield it


class opened:  # noqa: N801 - reads as what it does
    """An adapter whose guard is this one."""

    def __init__(self, guard: OutboundGuard) -> None:
        self._guard = guard
        self._made = WebPush(
            guard, clock=SystemClock(), subject="mailto:push@example.com", random_bytes=os.urandom, live=False
        )

    async def __aenter__(self) -> WebPush:
        await self._made.start()
        return self._made

    async def __aexit__(self, *_: object) -> None:
        await self._made.stop()
        await self._guard.stop()


def credential() -> PushCredential:
    private, public = vapid_pair(os.urandom(RANDOM_BYTES))
    return PushCredential(
        app_id="app_1", organization_id="org_1", env="live", vapid_private=private, vapid_public=public
    )


def notification(token: str, **more: Any) -> PushNotification:
    point = (
        ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    )
    given = {"p256dh": base64url(point), "auth": base64url(os.urandom(16)), "title": "Hello", "body": "News", **more}
    return PushNotification(dispatch_id=DISPATCH, message_id="psh_1", token=token, **given)


def url_safe(text: str) -> str:
    return text.translate(str.maketrans("+/", "-_")).rstrip("=")


async def test_a_browser_reads_what_was_sent(adapter: WebPush, browsers: Browsers) -> None:
    sender = credential()
    subscribed = await browsers.subscribe(sender.vapid_public)
    keys = {name: url_safe(subscribed["keys"][name]) for name in ("p256dh", "auth")}
    sent = notification(
        subscribed["endpoint"], **keys, body="Olá, 世界", deep_link="app://order/7", data={"order": 7},
        actions=[{"label": "See", "link": "app://order/7"}],
    )  # fmt: skip
    for attempt in (1, 2):
        assert await adapter.send(sent, sender, attempt) == Accepted(DISPATCH)
    got = await browsers.got(subscribed["clientHash"])
    assert len(got) == 2
    assert json.loads(got[0]) == {
        "title": "Hello", "body": "Olá, 世界", "actions": [{"label": "See", "link": "app://order/7"}],
        "dispatchId": DISPATCH, "deepLink": "app://order/7", "data": {"order": 7},
    }  # fmt: skip


async def test_a_browser_that_left_is_unregistered(adapter: WebPush, browsers: Browsers) -> None:
    sender = credential()
    subscribed = await browsers.subscribe(sender.vapid_public)
    await browsers.ask(f"/expire-subscription/{subscribed['clientHash']}", {})
    keys = {name: url_safe(subscribed["keys"][name]) for name in ("p256dh", "auth")}
    outcome = await adapter.send(notification(subscribed["endpoint"], **keys), sender, 1)
    assert isinstance(outcome, Refused)
    assert outcome.code == UNREGISTERED


async def test_a_key_of_another_app_is_refused(adapter: WebPush, browsers: Browsers) -> None:
    subscribed = await browsers.subscribe(credential().vapid_public)
    keys = {name: url_safe(subscribed["keys"][name]) for name in ("p256dh", "auth")}
    outcome = await adapter.send(notification(subscribed["endpoint"], **keys), credential(), 1)
    assert isinstance(outcome, Refused)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (says(201), Accepted(DISPATCH)),
        (says(404), UNREGISTERED),
        (says(410), UNREGISTERED),
        (says(413), "too_long"),
        (says(400), "provider_error"),
        (says(403), "unauthorized"),
        (says(302, headers="Location: http://127.0.0.1/\r\n"), "provider_error"),
        (says(429, headers="Retry-After: 7\r\n"), SlowDown(7.0)),
        (says(503, headers="Retry-After: 9\r\n"), Retry(9.0)),
        (says(500), Unknown()),
        (resets_after_reading, Unknown()),
        (closes_after_reading, Unknown()),
        (resets_before_reading, Unknown()),
    ],
)
async def test_what_a_push_service_answers(
    adapter: WebPush, fake_bridge: FakeBridge, behaviour: Behaviour, expected: Outcome | str
) -> None:
    fake_bridge.behaviour = behaviour
    outcome = await adapter.send(notification(f"http://127.0.0.1:{fake_bridge.port}/push/7"), credential(), 1)
    if isinstance(expected, str):
        assert isinstance(outcome, Refused)
        assert outcome.code == expected
    else:
        assert outcome == expected
    assert len(fake_bridge.requests) <= 1
    for request in fake_bridge.requests:
        assert (request.method, request.path, request.headers["content-encoding"]) == ("POST", "/push/7", "aes128gcm")


async def test_an_address_may_be_as_long_as_a_token(adapter: WebPush, fake_bridge: FakeBridge) -> None:
    """C22.2: what was registered is sent to."""
    fake_bridge.behaviour = says(201)
    token = f"http://127.0.0.1:{fake_bridge.port}/".ljust(LONGEST_TOKEN, "a")
    assert adapter.gateway_of(credential(), token) == f"127.0.0.1:{fake_bridge.port}"
    assert await adapter.send(notification(token), credential(), 1) == Accepted(DISPATCH)
    (request,) = fake_bridge.requests
    assert token.endswith(request.path)
    outcome = await adapter.send(notification(f"{token}a"), credential(), 1)
    assert isinstance(outcome, Refused)
    assert outcome.code == "invalid_token"


async def test_nobody_listens(adapter: WebPush) -> None:
    outcome = await adapter.send(notification(f"http://127.0.0.1:{free_port()}/"), credential(), 1)
    assert outcome == Down("connect_failed")


@pytest.mark.parametrize(
    "token",
    [
        "http://127.0.0.1:80/", "https://localhost/push", "https://169.254.169.254/latest/meta-data", "https://10.0.0.7/",
        "https://[::1]/", "file:///etc/passwd", "token", "", "https://user@push.example.com/",
    ],
)  # fmt: skip
async def test_an_address_inside_is_never_called(fake_bridge: FakeBridge, token: str) -> None:
    """C30.6: anyone who registers a device says where it is."""
    async with opened(OutboundGuard(clock=SystemClock())) as adapter:
        outcome = await adapter.send(notification(token), credential(), 1)
    assert isinstance(outcome, Refused)
    assert outcome.code == "invalid_token"


async def no_name_server(host: str, port: int) -> list[str]:
    raise OSError("it is away")


async def of_no_use(host: str, port: int) -> list[str]:
    return ["10.0.0.7"]


async def busy(host: str, port: int) -> list[str]:
    raise Unavailable


@pytest.mark.parametrize(
    ("lookup", "expected"),
    [(no_name_server, Down("connect_failed")), (busy, NoPlace()), (of_no_use, "invalid_token")],
)
async def test_a_name_that_cannot_be_learned_now_costs_no_notification(lookup: Lookup, expected: Outcome | str) -> None:
    async with opened(OutboundGuard(clock=SystemClock(), lookup=lookup)) as adapter:
        outcome = await adapter.send(notification("https://push.example.com/7"), credential(), 1)
    assert expected == (outcome.code if isinstance(outcome, Refused) else outcome)


@pytest.mark.parametrize(
    ("p256dh", "auth"), [("", ""), ("AAAA", "AAAA"), ("!", "!"), (base64url(b"\x04" * 65), "AAAA")]
)
async def test_keys_that_are_none_are_refused(adapter: WebPush, p256dh: str, auth: str) -> None:
    broken = replace(notification("http://127.0.0.1:9/"), p256dh=p256dh, auth=auth)
    outcome = await adapter.send(broken, credential(), 1)
    assert isinstance(outcome, Refused)
    assert outcome.code == "invalid_token"


async def test_what_is_longer_than_browsers_take_is_refused(adapter: WebPush) -> None:
    outcome = await adapter.send(notification("http://127.0.0.1:9/", body="a" * (LONGEST + 1)), credential(), 1)
    assert isinstance(outcome, Refused)
    assert outcome.code == "too_long"


async def test_a_connection_and_a_token_are_kept(adapter: WebPush, fake_bridge: FakeBridge) -> None:
    fake_bridge.behaviour = says(201)
    sender = credential()
    for _ in range(5):
        await adapter.send(notification(f"http://127.0.0.1:{fake_bridge.port}/"), sender, 1)
    assert len({request.headers["authorization"] for request in fake_bridge.requests}) == 1
    assert len({request.body for request in fake_bridge.requests}) == 5
    token = fake_bridge.requests[0].headers["authorization"].removeprefix("vapid t=").partition(",")[0]
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert (claims["aud"], claims["sub"]) == (f"http://127.0.0.1:{fake_bridge.port}", "mailto:push@example.com")
