"""Looks whether those who send for each channel can be reached, and what they are to be told."""

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit

import aiohttp

from recado.channel_table import CHANNELS
from recado.channels.core.adapters import ProviderPlace
from recado.channels.core.errors import ProviderError
from recado.channels.http.outbound_http import CONNECTIONS
from recado.cli.doctor.finding import Finding, failure, ok, warning
from recado.config.settings import Settings
from recado.email_adapters import signing_key, txt_records
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
    return [*findings, *await _signature(settings)]


async def _signature(settings: Settings) -> list[Finding]:
    """Whether receivers find the public half of the DKIM key, with which `smtp` and `ses` sign."""
    key = signing_key(settings)
    if key is None or settings.adapter_email not in ("smtp", "ses"):
        return []
    name = f"{key.selector}._domainkey.{key.domain}"
    try:
        texts = await txt_records(settings).texts(name, "")
    except ProviderError:
        return [warning("providers", f"email: no name server says whether {name} has the DKIM key")]
    if key.public in map(_public_of, texts):
        return [ok("providers", f"email: the DKIM key is at {name}")]
    what = "another DKIM key than RECADO_DKIM_KEY" if texts else "no TXT record with the DKIM key"
    return [failure("providers", f"email: {name} has {what}: enter it, or receivers refuse the signature")]


def _public_of(record: str) -> str:
    """The key in a DKIM record, without the spaces that it may hold; empty: none, or withdrawn."""
    tags = (tag.partition("=") for tag in record.split(";"))
    return next(("".join(value.split()) for name, _, value in tags if name.strip() == "p"), "")


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
