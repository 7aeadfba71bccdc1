"""Adapters that talk to a provider that misbehaves, with short time-outs."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from recado.channels.chatapp.bridge import Bridge
from recado.channels.chatapp.cloud import Cloud
from recado.channels.http.outbound_http import Shares
from recado.engine.clock import VirtualClock

TOKEN = "bridge-token-9f2c"
SECRET = "whsec_c2VjcmV0IG9mIHRoZSBicmlkZ2U="

APP_SECRET = "app-secret-77aa"


@pytest.fixture
async def bridge_to(clock: VirtualClock) -> AsyncIterator[Callable[..., Awaitable[Bridge]]]:
    """Make a started adapter for a base address."""
    started: list[Bridge] = []

    async def make(url: str, *, timeout: float = 5.0, shares: Shares | None = None) -> Bridge:
        bridge = Bridge(
            url=url,
            token=TOKEN,
            secret=SECRET,
            callback_url="https://recado.test/v2/callbacks/chatapp/bridge",
            clock=clock,
            timeout=timeout,
            shares=shares,
        )
        await bridge.start()
        started.append(bridge)
        return bridge

    yield make
    for bridge in started:
        await bridge.stop()


@pytest.fixture
async def cloud_to(clock: VirtualClock) -> AsyncIterator[Callable[..., Awaitable[Cloud]]]:
    """Make a started adapter of the hosted API for a base address."""
    started: list[Cloud] = []

    async def make(url: str, *, timeout: float = 5.0, shares: Shares | None = None) -> Cloud:
        cloud = Cloud(url=url, app_secret=APP_SECRET, clock=clock, timeout=timeout, shares=shares)
        await cloud.start()
        started.append(cloud)
        return cloud

    yield make
    for cloud in started:
        await cloud.stop()
