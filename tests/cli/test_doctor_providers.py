"""What `recado doctor` says of those who send for each channel in live."""

from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.program import free_port

from recado.cli.doctor.providers import providers
from recado.config.settings import Settings

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
