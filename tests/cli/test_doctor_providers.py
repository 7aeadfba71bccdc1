"""What `recado doctor` says of those who send for each channel in live."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import dns.message
import dns.rrset
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.program import free_port

from recado.cli.doctor.providers import providers
from recado.config.settings import Settings
from recado.domain.email.dkim import dkim_key

BRIDGE = {"adapter_chatapp": "bridge", "bridge_chatapp_token": "t" * 20, "bridge_chatapp_secret": "s" * 20}
CLOUD = {"adapter_chatapp": "cloud", "cloud_app_secret": "s" * 20, "cloud_verify_token": "v" * 20}


async def told(settings: Mapping[str, Any], channel: str = "chatapp") -> list[tuple[str, str]]:
    """Verdict and text of what is said of a channel."""
    found = await providers(Settings(_env_file=None, **settings))
    assert {each.subject for each in found} == {"providers"}
    return [(each.verdict, each.text) for each in found if each.text.startswith((f"{channel}:", f"{channel} "))]


@pytest.mark.parametrize(
    ("adapter", "verdict", "text"),
    [
        ("", "ok", "chatapp: none for live, whose sends answer 502; test uses the sandbox"),
        ("sandbox", "warning", "chatapp: live messages go to the sandbox, to nobody"),
    ],
)
async def test_a_channel_whose_live_messages_reach_nobody_is_told(adapter: str, verdict: str, text: str) -> None:
    assert await told({"adapter_chatapp": adapter}) == [(verdict, text)]


async def test_of_a_channel_with_several_each_is_told_by_its_route() -> None:
    assert await told({"adapter_sms": "sandbox"}, "sms") == [
        ("warning", "sms through gateway_a: live messages go to the sandbox, to nobody")
    ]


async def test_a_provider_that_answers_anything_is_there_and_another_is_named_with_what_to_do() -> None:
    async with TestServer(web.Application()) as server:
        url = str(server.make_url("/nothing"))
        assert await told({**BRIDGE, "bridge_chatapp_url": url}) == [("ok", f"chatapp: the bridge at {url} answers")]
    gone = f"http://127.0.0.1:{free_port()}"
    ((verdict, text),) = await told({**BRIDGE, "bridge_chatapp_url": gone})
    assert verdict == "failure"
    assert text.startswith(f"chatapp: the bridge at {gone} does not answer (")
    assert text.endswith("): start it")


@pytest.mark.parametrize(
    ("base_url", "verdict", "text"),
    [
        ("https://r.example", "ok", "chatapp: enter {} as the callback address at the provider"),
        (
            "http://r.example",
            "warning",
            "chatapp: the provider calls https addresses only, not {}: set RECADO_BASE_URL",
        ),
    ],
)
async def test_where_the_provider_asks_for_our_address_it_is_told_what_to_enter(
    base_url: str, verdict: str, text: str
) -> None:
    found = await told({**CLOUD, "cloud_url": "http://provider.invalid/", "base_url": base_url})
    assert found[1] == (verdict, text.format(f"{base_url}/v2/callbacks/chatapp/cloud"))


async def test_a_simulator_on_this_machine_calls_any_address() -> None:
    found = await told({**CLOUD, "cloud_url": f"http://127.0.0.1:{free_port()}/", "base_url": "http://r.example"})
    assert [verdict for verdict, _ in found] == ["failure"]


# E-mail ---------------------------------------------------------------------------------------------------------------

SELECTOR, DOMAIN = "recado", "example.com"
PLACE = f"{SELECTOR}._domainkey.{DOMAIN}"
KEYS = {
    "rsa": rsa.generate_private_key(public_exponent=65_537, key_size=2_048),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}


def base64_of(kind: str) -> str:
    der = KEYS[kind].private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return base64.b64encode(der).decode()


class _Names(asyncio.DatagramProtocol):
    """A name server that knows one record."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        answer = dns.message.make_response(dns.message.from_wire(data))
        if self._text is not None:
            parts = " ".join(f'"{self._text[at : at + 200]}"' for at in range(0, len(self._text), 200))
            answer.answer.append(dns.rrset.from_text(f"{PLACE}.", 60, "IN", "TXT", parts))
        self._transport.sendto(answer.to_wire(), address)


@asynccontextmanager
async def by_mail(kind: str, text: str | None) -> AsyncIterator[dict[str, Any]]:
    """Settings of a mail server that listens, a key, and a name server that says so of it."""
    loop = asyncio.get_running_loop()
    mail = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    names, _ = await loop.create_datagram_endpoint(lambda: _Names(text), local_addr=("127.0.0.1", 0))
    try:
        yield {
            "adapter_email": "smtp",
            "smtp_url": f"smtp://127.0.0.1:{mail.sockets[0].getsockname()[1]}",
            "dkim_domain": DOMAIN,
            "dkim_selector": SELECTOR,
            "dkim_key": base64_of(kind),
            "dns_server": f"127.0.0.1:{names.get_extra_info('sockname')[1]}",
        }
    finally:
        names.close()
        mail.close()
        await mail.wait_closed()


@pytest.mark.parametrize("kind", list(KEYS))
async def test_a_mail_server_that_listens_and_a_key_in_the_dns_are_there(kind: str) -> None:
    public = dkim_key(DOMAIN, SELECTOR, base64_of(kind)).public
    async with by_mail(kind, f"v=DKIM1; k={kind}; p={public[:40]} {public[40:]}") as settings:
        assert await told(settings, "email") == [
            ("ok", f"email: the mail server at {settings['smtp_url']} listens"),
            ("ok", f"email: the DKIM key is at {PLACE}"),
        ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "no TXT record with the DKIM key"),
        ("v=DKIM1; p=", "another DKIM key than RECADO_DKIM_KEY"),
        ("v=DKIM1; p=AAAA", "another DKIM key than RECADO_DKIM_KEY"),
    ],
)
async def test_a_key_that_receivers_do_not_find_is_told_with_what_to_do(text: str | None, what: str) -> None:
    async with by_mail("ed25519", text) as settings:
        assert (await told(settings, "email"))[-1] == (
            "failure", f"email: {PLACE} has {what}: enter it, or receivers refuse the signature",
        )  # fmt: skip


async def test_without_a_name_server_nothing_is_said_against_the_key() -> None:
    async with by_mail("ed25519", None) as settings:
        settings["dns_server"] = f"127.0.0.1:{free_port()}"
        assert (await told(settings, "email"))[-1] == (
            "warning", f"email: no name server says whether {PLACE} has the DKIM key",
        )  # fmt: skip


async def test_a_mail_server_that_is_gone_is_named_and_no_key_is_looked_for_without_one() -> None:
    gone = f"smtp://127.0.0.1:{free_port()}"
    ((verdict, text),) = await told({"adapter_email": "smtp", "smtp_url": gone}, "email")
    assert verdict == "failure"
    assert text.startswith(f"email: the mail server at {gone} does not answer (")
