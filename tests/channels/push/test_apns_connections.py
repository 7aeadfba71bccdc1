"""What Apple's service does with connections and tokens that it should not, against a peer in memory."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from h2.settings import SettingCodes
from tests.channels.push.http2_peer import Peer, turns
from tests.channels.push.test_apns import DISPATCH, credential, notification
from yarl import URL

from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, Unknown
from recado.channels.push import apns as module
from recado.channels.push.apns import IDLE_LIMIT, MOST_KEPT, TOKEN_FOR_AT_LEAST, Apns
from recado.channels.push.http2 import Http2Connection
from recado.channels.push.notification import UNREGISTERED
from recado.engine.clock import VirtualClock

URL_OF_APPLE = URL("https://apple.example.com")


@pytest.fixture
def apns(clock: VirtualClock) -> Apns:
    return Apns(URL_OF_APPLE, URL_OF_APPLE, clock=clock)


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> list[Peer]:
    """Those that were connected to, the last one last."""
    made: list[Peer] = []

    async def connect(*_: object) -> Http2Connection:
        made.append(Peer())
        return made[-1].connection

    monkeypatch.setattr(module, "connect", connect)
    return made


async def sent(apns: Apns, peers: list[Peer], stream: int, *headers: tuple[str, str], app: str = "app_1") -> Outcome:
    """What a notification comes to that is answered so, on this stream of the last connection."""
    sending = asyncio.create_task(apns.send(notification(), replace(credential(), app_id=app), 1))
    await turns()
    peers[-1].answer(stream, *(headers or ((":status", "200"),)))
    return await sending


async def test_a_notification_that_never_left_goes_again(
    apns: Apns, peers: list[Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service takes no request for longer than a call may last: that says nothing of the notification."""
    monkeypatch.setattr(module, "CALL_LIMIT", 0.05)
    first = asyncio.create_task(apns.send(notification(), credential(), 1))
    await turns()
    peers[-1].h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 0})
    peers[-1].say()
    second = await apns.send(notification("other"), credential(), 1)
    assert (await first, second) == (Unknown(), NoPlace())


async def test_a_connection_that_nobody_used_for_minutes_is_made_anew(
    apns: Apns, peers: list[Peer], clock: VirtualClock
) -> None:
    assert await sent(apns, peers, 1) == Accepted(DISPATCH)
    await clock.advance(IDLE_LIMIT)
    assert await sent(apns, peers, 3) == Accepted(DISPATCH)
    await clock.advance(IDLE_LIMIT + 1)
    assert await sent(apns, peers, 1) == Accepted(DISPATCH)
    assert [peer.closed for peer in peers] == [True, False]


async def test_who_makes_way_for_a_new_app_is_who_waited_longest_and_ends_what_it_carries(
    apns: Apns, peers: list[Peer]
) -> None:
    for app in range(MOST_KEPT):
        assert await sent(apns, peers, 1, app=f"app_{app}") == Accepted(DISPATCH)
    busy = asyncio.create_task(apns.send(notification(), replace(credential(), app_id="app_1"), 1))
    await turns()
    first, second, third = peers[:3]
    first.ask()
    await turns()
    first.answer(3, (":status", "200"))
    sending = asyncio.create_task(apns.send(notification(), replace(credential(), app_id="app_0"), 1))
    await turns()
    first.answer(5, (":status", "200"))
    assert await sending == Accepted(DISPATCH)
    for app in ("app_new", "app_newer"):
        assert await sent(apns, peers, 1, app=app) == Accepted(DISPATCH)
    assert (first.closed, third.closed) == (False, True)
    second.answer(3, (":status", "200"))
    assert await busy == Accepted(DISPATCH)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (410, b"", UNREGISTERED),
        (400, b'{"reason": "BadDeviceToken"}', UNREGISTERED),
        (400, b'{"reason": "DeviceTokenNotForTopic"}', "invalid_token"),
        (400, b'{"reason": ["BadDeviceToken"]}', "provider_error"),
        (400, b"\xff[", "provider_error"),
    ],
)
async def test_a_wrong_bundle_id_loses_no_device(
    apns: Apns, peers: list[Peer], status: int, body: bytes, code: str
) -> None:
    sending = asyncio.create_task(apns.send(notification(), credential(), 1))
    await turns()
    peers[-1].answer(1, (":status", str(status)), ends=False)
    peers[-1].h2.send_data(1, body, end_stream=True)
    peers[-1].say()
    outcome = await sending
    assert isinstance(outcome, Refused)
    assert outcome.code == code


def tokens(peer: Peer) -> list[str]:
    return [str(dict(event.headers)["authorization"]) for event in peer.requests]


async def test_a_token_that_is_refused_is_made_anew_once_apple_would_take_another(
    apns: Apns, peers: list[Peer], clock: VirtualClock
) -> None:
    refused: Any = (":status", "403")
    for stream in (1, 3):
        assert await sent(apns, peers, stream, refused) == Down("unauthorized")
    for _ in range(int(TOKEN_FOR_AT_LEAST // 200)):
        await clock.advance(200)
        stream += 2
        assert await sent(apns, peers, stream, refused) == Down("unauthorized")
    assert await sent(apns, peers, stream + 2) == Accepted(DISPATCH)
    told = tokens(peers[-1])
    assert len(peers) == 1
    assert len(set(told[:-1])) == 1
    assert told[-1] != told[0]


async def test_a_key_that_changes_in_part_signs_at_once(apns: Apns, peers: list[Peer]) -> None:
    assert await sent(apns, peers, 1) == Accepted(DISPATCH)
    corrected = replace(credential(), apns={**(credential().apns or {}), "team_id": "TEAM2"})
    sending = asyncio.create_task(apns.send(notification(), corrected, 1))
    await turns()
    peers[-1].answer(3, (":status", "200"))
    assert await sending == Accepted(DISPATCH)
    assert len(set(tokens(peers[-1]))) == 2


async def test_a_connection_that_is_being_made_at_a_stop_is_given_up(
    apns: Apns, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def connect(*_: object) -> Http2Connection:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(module, "connect", connect)
    sending = asyncio.create_task(apns.send(notification(), credential(), 1))
    await begun.wait()
    await apns.stop()
    assert await sending == Down("connect_failed")
