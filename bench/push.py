"""Push: an audience of a million devices, fixed by one call, how fast it departs to the sandbox; Web Push, beside the
same bodies posted by nothing but connections; and Apple's push service, beside the same requests made by h2 alone.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_network

import uvloop
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from yarl import URL

from bench.bare_h2 import BareH2, Headers, taking_all
from bench.harness import Figure, Say, against, running, scratch
from bench.recado_process import READY, Api, recado
from recado.channels.core.provider import Accepted
from recado.channels.http.answer import Answer
from recado.channels.http.lean_http import LeanHttp
from recado.channels.http.outbound_guard import OutboundGuard
from recado.channels.push.apns import Apns
from recado.channels.push.notification import PushCredential, PushNotification
from recado.channels.push.web_encryption import encrypted
from recado.channels.push.webpush import WebPush
from recado.domain.push.vapid import RANDOM_BYTES, base64url, vapid_pair
from recado.engine.clock import SystemClock

DEVICES = 1_000_000
MOST_SECONDS = 60.0
DEPART = 30.0  # seconds in which departures are counted
ROUNDS = 3
NOTIFICATIONS = 4_000  # in a round
AT_ONCE = 200
LEAST = 0.7
TEXT = b'{"title":"Hello","body":"There is news.","dispatchId":"dsp_0VbkOooJsP5OedpshQFzP"}'
MAKE = """
insert into push_devices (
    organization_id, env, id, app_id, token, token_hash, platform, status, topics, updated_at
)
select $1, 'test', 'dev_' || lpad(n::text, 21, '0'), $2, 'token ' || n, sha256(n::text::bytea), 'android', 'registered',
    '{}', now()
from generate_series(1, $3::integer) n
"""


async def run(say: Say) -> list[Figure]:
    """The service with a million devices, then the adapters alone."""
    figures = await _audience(say)
    for name, adapter in (("Web Push", _web), ("APNs", _apple)):
        ours, bare = await asyncio.to_thread(uvloop.run, adapter(say))
        figures.append(against(f"{name}, {AT_ONCE} at once", ours, bare, "/s", LEAST))
    return figures


async def _audience(say: Say) -> list[Figure]:
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        say(f"push: making {DEVICES:,} devices")
        app = await api.call("POST", "/v2/push/apps", {"name": "bench", "platforms": ["android"]})
        database = await service.database()
        await database.execute(MAKE, api.organization_id, app["id"], DEVICES, timeout=600)
        await database.execute("analyze push_devices")
        say("push: an audience of all of them")
        body = {"title": "Hello", "body": "News", "platforms": ["android"], "segment": "all_opt_in"}
        began = time.monotonic()
        made = await api.call("POST", "/v2/push/messages", body, key="bench")
        took = time.monotonic() - began
        if made["reach"] != DEVICES:
            raise RuntimeError(f"reach: {made}")
        say(f"push: departures for {DEPART:g} s")
        path = f"/v2/push/messages/{made['id']}"
        began, first = time.monotonic(), (await api.call("GET", path))["metrics"]["delivered"]
        await asyncio.sleep(DEPART)
        gone = (await api.call("GET", path))["metrics"]["delivered"] - first
        pace = gone / (time.monotonic() - began)
        await database.close()
    return [
        Figure(
            f"audience of {DEVICES:,} devices fixed", f"{took:.1f} s", target=f"≤ {MOST_SECONDS:g} s",
            met=took <= MOST_SECONDS,
        ),
        Figure("– its departures to the sandbox, one app and platform", f"{pace:,.0f} /s"),
    ]  # fmt: skip


async def _web(say: Say) -> tuple[list[float], list[float]]:
    """Notifications a second of each round, ours and those that are only encrypted and posted."""
    server = await asyncio.start_server(_answers, "127.0.0.1", 0)
    url = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/push")
    clock = SystemClock()
    private, public = vapid_pair(os.urandom(RANDOM_BYTES))
    sender = PushCredential(
        app_id="app_1", organization_id="org_1", env="live", vapid_private=private, vapid_public=public
    )
    point = (
        ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    )
    keys = {"p256dh": base64url(point), "auth": base64url(os.urandom(16))}
    guard = OutboundGuard(clock=clock, allowed=(ip_network("127.0.0.0/8"),))
    adapter = WebPush(guard, clock=clock, subject="mailto:a@example.com", random_bytes=os.urandom, live=False)
    notification = PushNotification(
        dispatch_id="dsp_0VbkOooJsP5OedpshQFzP", message_id="psh_1", token=str(url), title="Hello", body="News", **keys
    )
    http = LeanHttp(url.origin(), clock=clock)
    await http.start()
    await adapter.start()
    head = http.head(url.path, {"Content-Encoding": "aes128gcm", "TTL": "60"})

    async def ours() -> bool:
        return isinstance(await adapter.send(notification, sender, 1), Accepted)

    async def bare() -> bool:
        body = encrypted(TEXT, random_bytes=os.urandom, **keys)
        return isinstance(await http.post(head, body), Answer)

    found = await _in_turns(say, "Web Push", ours, bare)
    await adapter.stop()
    await http.stop()
    await guard.stop()
    server.close()
    return found


async def _apple(say: Say) -> tuple[list[float], list[float]]:
    """The same of Apple's service: one connection, which TLS is spoken on."""
    signing = ec.generate_private_key(ec.SECP256R1())
    key = {
        "key_id": "ABC123DEFG", "team_id": "DEF123GHIJ", "bundle_id": "com.example.shop",
        "private_key": signing.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
    }  # fmt: skip
    sender = PushCredential(
        app_id="app_1", organization_id="org_1", env="live", vapid_private="", vapid_public="", apns=key
    )
    notification = PushNotification(
        dispatch_id="dsp_0VbkOooJsP5OedpshQFzP", message_id="psh_1", token="0a" * 32, title="Hello", body="News"
    )
    async with taking_all() as (port, tls):
        url = URL(f"https://127.0.0.1:{port}")
        adapter = Apns(url, url, clock=SystemClock(), tls=tls)
        await adapter.start()
        _, connection = await asyncio.get_running_loop().create_connection(BareH2, "127.0.0.1", port, ssl=tls)
        headers: Headers = [
            (":method", "POST"), (":scheme", "https"), (":authority", "127.0.0.1"),
            (":path", f"/3/device/{notification.token}"), ("authorization", f"bearer {'x' * 200}"),
            ("apns-topic", key["bundle_id"]), ("apns-push-type", "alert"), ("apns-priority", "10"),
            ("apns-expiration", "1800000000"),
        ]  # fmt: skip

        async def ours() -> bool:
            return isinstance(await adapter.send(notification, sender, 1), Accepted)

        async def bare() -> bool:
            return await connection.request(headers, TEXT) == 200

        found = await _in_turns(say, "APNs", ours, bare)
        connection.close()
        await adapter.stop()
    return found


Call = Callable[[], Awaitable[bool]]


async def _in_turns(say: Say, name: str, ours: Call, bare: Call) -> tuple[list[float], list[float]]:
    """The paces of each round."""
    found: tuple[list[float], list[float]] = ([], [])
    for turn in range(ROUNDS):
        say(f"push: {name}, round {turn + 1} of {ROUNDS}")
        for paces, call in zip(found, (ours, bare), strict=True):
            paces.append(await _pace(call))
    return found


async def _pace(call: Call) -> float:
    left = NOTIFICATIONS

    async def some() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            if not await call():
                raise RuntimeError("it was not taken")

    began = time.monotonic()
    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return NOTIFICATIONS / (time.monotonic() - began)


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A push service that takes everything."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
