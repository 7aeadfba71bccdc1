"""Looks whether those who send for each channel can be reached, and what they are to be told."""

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit

import aiohttp

from recado.channel_table import CHANNELS
from recado.channels.core.adapters import ProviderPlace
from recado.channels.http.outbound_http import CONNECTIONS
from recado.cli.doctor.finding import Finding, failure, ok, warning
from recado.config.settings import Settings
from recado.engine.clock import SystemClock
from recado.providers import adapters_of

_TIMEOUT = 5.0  # seconds
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})  # a simulator, which calls any address


async def providers(settings: Settings) -> list[Finding]:
    """Whether those who send for each channel in live can be reached."""
    adapters = adapters_of(settings, SystemClock(), CONNECTIONS)
    findings: list[Finding] = []
    for channel in (each.channel for each in CHANNELS):
        live = adapters.of(channel, "live")
        if not live:
            text = f"{channel}: none for live, whose sends answer 502; test uses the sandbox"
            findings.append(ok("providers", text))
        for route, adapter in live.items():
            name = channel if route is None else f"{channel} through {route}"
            if adapter.place is None:
                findings.append(warning("providers", f"{name}: live messages go to the sandbox, to nobody"))
                continue
            findings.append(await _answers(name, adapter.place))
            if adapter.callbacks is not None and adapter.callbacks.challenged:
                address = f"{settings.address()}/v2/callbacks/{channel}/{adapter.callbacks.name}"
                findings += _entered_by_hand(name, address, adapter.place)
    return findings


def _entered_by_hand(name: str, address: str, place: ProviderPlace) -> Iterator[Finding]:
    """What the provider is to be told, and what would keep its callbacks away."""
    if address.startswith("https://"):
        yield ok("providers", f"{name}: enter {address} as the callback address at the provider")
    elif urlsplit(place.url).hostname not in _HERE:
        text = f"{name}: the provider calls https addresses only, not {address}: set RECADO_BASE_URL"
        yield warning("providers", text)


async def _answers(name: str, place: ProviderPlace) -> Finding:
    """Any answer will do: what the provider says to a request without a message is its own affair.

    At what speaks no HTTP a connection will do: to log in there would take one of ours.
    """
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    what, at = f"{name}: {place.what} at {place.url}", urlsplit(place.url)
    try:
        if at.scheme not in ("http", "https"):
            async with asyncio.timeout(_TIMEOUT):
                _, writer = await asyncio.open_connection(at.hostname, at.port)
            writer.close()
            return ok("providers", f"{what} listens")
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(place.url, allow_redirects=False):
            return ok("providers", f"{what} answers")
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        return failure("providers", f"{what} does not answer ({type(error).__name__}): {place.fix}")
