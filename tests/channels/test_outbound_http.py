"""Retry-After in its two forms; the calls themselves are tested through the adapters."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from recado.channels.http.answer import MAX_RETRY_AFTER, MIN_RETRY_AFTER, NotSent, retry_after
from recado.channels.http.outbound_guard import Turn
from recado.channels.http.outbound_http import OutboundHttp
from recado.domain.core.errors import Unavailable

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", MIN_RETRY_AFTER),
        (" 120 ", 120.0),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("999999999", MAX_RETRY_AFTER),
        ("9" * 40, None),
        ("Fri, 20 Nov 2026 12:01:00 GMT", 60.0),
        ("Fri, 20 Nov 2026 09:01:00 -0300", 60.0),
        ("Fri, 20 Nov 2026 12:01:00 -0000", 60.0),
        ("Thu, 19 Nov 2026 12:01:00 GMT", MIN_RETRY_AFTER),
        ("Fri, 20 Nov 2099 12:01:00 GMT", MAX_RETRY_AFTER),
        ("Fri, 32 Nov 2026 12:01:00 GMT", None),
        ("tomorrow", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text(max_size=80))
def test_no_retry_after_breaks_the_reading(value: str) -> None:
    seconds = retry_after(value, NOW)

    assert seconds is None or MIN_RETRY_AFTER <= seconds <= MAX_RETRY_AFTER


async def test_a_client_that_was_not_started_sends_nothing() -> None:
    assert await OutboundHttp().post(URL("http://127.0.0.1:9"), b"", {}) == NotSent()


async def test_starting_and_stopping_twice_is_safe() -> None:
    http = OutboundHttp()
    for _ in range(2):
        await http.start()
    for _ in range(2):
        await http.stop()
    assert await http.post(URL("http://127.0.0.1:9"), b"", {}) == NotSent()


async def test_a_call_that_never_got_a_connection_of_the_pool_was_not_sent() -> None:
    called: list[str] = []

    async def answers(request: web.Request) -> web.Response:
        called.append(request.method)
        return web.Response(body=bytes(4 * 1024 * 1024))  # more than is read ahead: its connection stays taken

    application = web.Application()
    application.router.add_route("*", "/", answers)
    http = OutboundHttp(connections=1, timeout=0.3)
    async with TestServer(application) as server:
        await http.start()
        async with http.download(server.make_url("/"), {}, timeout=60) as (status, _, _):
            assert status == 200
            assert await http.post(server.make_url("/"), b"", {}) == NotSent()
        await http.stop()
    assert called == ["GET"]


@asynccontextmanager
async def never(owner: str) -> AsyncIterator[None]:
    await asyncio.get_running_loop().create_future()
    yield


@asynccontextmanager
async def too_many(owner: str) -> AsyncIterator[None]:
    raise Unavailable(owner)
    yield


@pytest.mark.parametrize("turn", [never, too_many])
async def test_a_call_whose_account_has_no_connection_left_in_time_was_not_sent(turn: Turn) -> None:
    address, http = URL("http://127.0.0.1:9"), OutboundHttp(timeout=0.05, turn=turn)
    await http.start()
    assert await http.post(address, b"", {}, owner="one") == NotSent()
    # A long time is for the call: it waits no longer than the others.
    assert await http.request("POST", address, {}, owner="one", timeout=3_600) == NotSent()
    with pytest.raises(ConnectionError, match=r"^(TimeoutError|Unavailable)$"):
        async with http.download(address, {}, owner="one", timeout=3_600):
            pass
    await http.stop()


async def test_a_download_that_waited_when_its_client_stopped_is_not_begun() -> None:
    waits, stopped = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def turn(owner: str) -> AsyncIterator[None]:
        waits.set()
        await stopped.wait()
        yield

    http = OutboundHttp(turn=turn)
    await http.start()

    async def downloads() -> None:
        async with http.download(URL("http://127.0.0.1:9"), {}, owner="one", timeout=60):
            pass

    waiting = asyncio.create_task(downloads())
    await waits.wait()
    await http.stop()
    stopped.set()
    with pytest.raises(ConnectionError, match="stopped"):
        await waiting
