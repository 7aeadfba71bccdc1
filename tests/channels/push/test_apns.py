"""Apple's push service against Node's HTTP/2: tokens that another library verifies, and every end of a stream."""

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from joserfc import jwt
from joserfc.jwk import ECKey
from yarl import URL

from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, Retry, Unknown
from recado.channels.push.apns import Apns
from recado.channels.push.http2 import Http2Connection
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification
from recado.engine.clock import SystemClock

SERVER = Path(__file__).parents[2] / "node" / "apns.mjs"
DISPATCH = "dsp_" + "0" * 21
SIGNED_WITH = ec.generate_private_key(ec.SECP256R1())


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificate(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Of this machine's own address."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "apns")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, SHA256())
    )
    return made.public_bytes(Encoding.PEM)


@dataclass
class Apple:
    """The service, and what it read."""

    process: asyncio.subprocess.Process
    url: URL
    tls: ssl.SSLContext
    got: list[Any] = field(default_factory=list)

    async def request(self) -> Any:
        assert self.process.stdout is not None
        read = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 10))
        self.got.append(read)
        return read


@pytest.fixture
async def apple(tmp_path: Path) -> AsyncIterator[Apple]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed: `make test` installs it")
    key = ec.generate_private_key(ec.SECP256R1())
    files = (tmp_path / "key.pem", tmp_path / "cert.pem")
    files[0].write_bytes(pem(key))
    files[1].write_bytes(certificate(key))
    process = await asyncio.create_subprocess_exec(
        node, str(SERVER), *map(str, files), stdout=asyncio.subprocess.PIPE, limit=2**24
    )
    assert process.stdout is not None
    port = int(await asyncio.wait_for(process.stdout.readline(), 20))
    yield Apple(process, URL(f"https://127.0.0.1:{port}"), ssl.create_default_context(cafile=files[1]))
    if process.returncode is None:
        process.kill()
        await process.wait()


@pytest.fixture
async def apns(apple: Apple) -> AsyncIterator[Apns]:
    made = Apns(apple.url, apple.url, clock=SystemClock(), tls=apple.tls)
    await made.start()
    yield made
    await made.stop()


def credential() -> PushCredential:
    key = {
        "key_id": "KEY1",
        "team_id": "TEAM1",
        "bundle_id": "com.example.shop",
        "private_key": pem(SIGNED_WITH).decode(),
    }
    return PushCredential(
        app_id="app_1", organization_id="org_1", env="live", vapid_private="", vapid_public="", apns=key
    )


def notification(token: str = "device", **more: Any) -> PushNotification:
    shown: dict[str, Any] = {"title": "Hello", "body": "News", "deep_link": "app://7", "data": {"order": 7}, **more}
    return PushNotification(dispatch_id=DISPATCH, message_id="psh_1", token=token, **shown)


async def test_a_notification_is_as_apple_reads_it(apns: Apns, apple: Apple) -> None:
    assert await apns.send(notification(), credential(), 1) == Accepted(DISPATCH)
    got = await apple.request()
    assert (got["headers"][":path"], got["headers"]["apns-topic"]) == ("/3/device/device", "com.example.shop")
    assert (got["headers"]["apns-push-type"], got["headers"]["apns-priority"]) == ("alert", "10")
    assert got["body"] == {
        "aps": {"alert": {"title": "Hello", "body": "News"}, "sound": "default"},
        "dispatchId": DISPATCH, "deepLink": "app://7", "data": {"order": 7},
    }  # fmt: skip
    public = SIGNED_WITH.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    token = got["headers"]["authorization"].removeprefix("bearer ")
    decoded = jwt.decode(token, ECKey.import_key(public), algorithms=["ES256"])
    assert (decoded.header["kid"], decoded.claims["iss"]) == ("KEY1", "TEAM1")


async def test_a_notification_leaves_from_the_event_loop_of_the_service(
    apple: Apple, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Http2Connection.connection_lost

    async def send() -> Outcome:
        lost = asyncio.Event()  # the other side answers the end of TLS: until then the loop must run
        monkeypatch.setattr(Http2Connection, "connection_lost", lambda *told: (ends(*told), lost.set()))
        made = Apns(apple.url, apple.url, clock=SystemClock(), tls=apple.tls)
        outcome = await made.send(notification(), credential(), 1)
        await made.stop()
        async with asyncio.timeout(5.0):
            await lost.wait()
        return outcome

    assert await asyncio.to_thread(lambda: uvloop.run(send())) == Accepted(DISPATCH)


async def test_a_burst_goes_over_one_connection_with_one_token(apns: Apns, apple: Apple) -> None:
    """More at once than the service takes: they wait for their turn."""
    calls = [apns.send(notification(f"device{n}", body="x" * 2_000), credential(), 1) for n in range(300)]
    assert set(await asyncio.gather(*calls)) == {Accepted(DISPATCH)}
    got = [await apple.request() for _ in range(300)]
    assert len({each["headers"]["authorization"] for each in got}) == 1
    assert len({each["headers"][":path"] for each in got}) == 300


async def test_a_goaway_within_a_burst_loses_and_doubles_nothing(apns: Apns, apple: Apple) -> None:
    calls = [apns.send(notification(f"goaway{n}" if n == 60 else f"device{n}"), credential(), 1) for n in range(200)]
    outcomes = await asyncio.gather(*calls)
    assert set(outcomes) == {Accepted(DISPATCH)}
    got = [await apple.request() for _ in range(200)]
    assert len({each["headers"][":path"] for each in got}) == 200


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("s410", UNREGISTERED),
        ("s413", "too_long"),
        ("s400", "provider_error"),
        ("s403", Down("unauthorized")),
        ("s503", Retry(9.0)),
        ("s500", Unknown()),
        ("reset", Unknown()),
        ("refuse", NoPlace()),
        ("../etc", UNREGISTERED),
    ],
)
async def test_what_apple_answers(apns: Apns, token: str, expected: Outcome | str) -> None:
    outcome = await apns.send(notification(token), credential(), 1)
    if isinstance(expected, str):
        assert isinstance(outcome, Refused)
        assert outcome.code == expected
    else:
        assert outcome == expected


async def test_a_service_that_dies_leaves_outcomes_unknown_and_then_no_connection(apns: Apns, apple: Apple) -> None:
    assert await apns.send(notification(), credential(), 1) == Accepted(DISPATCH)
    apple.process.kill()
    await apple.process.wait()
    outcomes = [await apns.send(notification(), credential(), 1) for _ in range(2)]
    assert outcomes[1] == Down("connect_failed")


async def test_an_app_without_a_key_sends_nothing(apns: Apns) -> None:
    nobody = PushCredential(app_id="a", organization_id="o", env="live", vapid_private="", vapid_public="")
    outcome = await apns.send(notification(), nobody, 1)
    assert isinstance(outcome, Refused)
    assert outcome.code == "no_credentials"
