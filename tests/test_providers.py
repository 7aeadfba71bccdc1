"""From the settings to the adapters."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from recado.channel_table import sms_gateways
from recado.channels.email.dns_proof import DnsProof
from recado.channels.email.sandbox import EmailSandbox
from recado.channels.email.ses.ses import Ses
from recado.config.settings import Settings
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.channels.email import EMAIL
from recado.domain.channels.sms import GATEWAYS, SMS
from recado.email_adapters import by_half, greeting_name, is_loopback
from recado.engine.clock import SystemClock
from recado.providers import adapters_of

BRIDGE: dict[str, Any] = {
    "adapter_chatapp": "bridge",
    "bridge_chatapp_url": "http://127.0.0.1:1",
    "bridge_chatapp_token": "token",
    "bridge_chatapp_secret": "secret",
}


@pytest.mark.parametrize(("given", "idempotent"), [({}, False), ({"bridge_chatapp_idempotent": True}, True)])
def test_a_bridge_is_idempotent_only_where_its_operator_says_so(given: dict[str, Any], idempotent: bool) -> None:
    settings = Settings(_env_file=None, **BRIDGE, **given)

    sender = adapters_of(settings, SystemClock(), connections=1).sender(CHATAPP, "live")
    assert sender is not None
    assert sender.idempotent is idempotent


@pytest.mark.parametrize("live", ["", "sandbox"])
def test_whoever_calls_in_the_name_of_the_sandbox_is_not_it(live: Any) -> None:
    adapters = adapters_of(Settings(_env_file=None, adapter_chatapp=live), SystemClock(), connections=1)

    assert adapters.callback_sources() == {}
    assert adapters.sends_in(CHATAPP) == ({"test", "live"} if live else {"test"})
    assert adapters.connections() == {}


def test_an_adapter_is_found_by_channel_environment_and_route() -> None:
    adapters = adapters_of(Settings(_env_file=None, **BRIDGE), SystemClock(), connections=7)

    live = adapters.find(CHATAPP, "live")
    assert live.sender is live.callbacks is live.admin is live.templates
    assert adapters.callback_sources() == {(CHATAPP, "bridge"): live.callbacks}
    assert adapters.connections() == {(CHATAPP, "live"): 7}
    for missing in (("push", "live"), (CHATAPP, "other"), (CHATAPP, "live", "gateway_a")):
        assert adapters.sender(*missing) is adapters.admin(*missing) is adapters.reviewer(*missing) is None
    assert adapters.sends_in("push") == frozenset()
    assert [sender.name for sender in adapters.senders()] == ["sandbox", "bridge", *["sandbox"] * 4]


@pytest.mark.parametrize(("sends", "part"), [(False, 800), (True, 200)])
def test_processes_that_send_share_the_connections_to_the_provider_of_numbers(sends: bool, part: int) -> None:
    settings = Settings(_env_file=None, workers=4, workers_send=sends, **BRIDGE)
    adapters = adapters_of(settings, SystemClock(), connections=800)

    assert adapters.connections() == {(CHATAPP, "live"): part}


def test_each_gateway_of_sms_has_its_adapter_and_its_address_for_callbacks() -> None:
    def bridge(name: str) -> dict[str, Any]:
        return {f"bridge_{name}_{what}": f"http://127.0.0.1:1/{name}" for what in ("url", "token", "secret")}

    given: dict[str, Any] = {"adapter_sms": "bridge", "adapter_sms_b": "bridge", "sms_gateway_b_per_second": 20}
    settings = Settings(_env_file=None, **given, **bridge("sms"), **bridge("sms_b"))
    adapters = adapters_of(settings, SystemClock(), connections=8_000)

    first, second = (adapters.find(SMS, "live", route) for route in GATEWAYS)
    assert adapters.callback_sources() == {(SMS, "bridge"): first.callbacks, (SMS, "bridge_b"): second.callbacks}
    plans = sms_gateways(settings, adapters)
    assert [(each.env, each.name, each.provider, each.per_second) for each in plans] == [
        ("test", "sandbox", adapters.sender(SMS, "test"), 100),
        ("live", "gateway_a", first.sender, 100),
        ("live", "gateway_b", second.sender, 20),
    ]
    assert [each.connections for each in plans[1:]] == [1_500, 300]


def test_a_gateway_over_smpp_hears_on_its_own_connections_and_bears_as_many_calls_as_its_windows() -> None:
    given: dict[str, Any] = {"smpp_url": "smpps://127.0.0.1:3550", "smpp_system_id": "us", "smpp_password": "secret"}
    settings = Settings(_env_file=None, adapter_sms="smpp", smpp_binds=2, smpp_window=30, **given)
    adapters = adapters_of(settings, SystemClock(), connections=8_000)

    adapter = adapters.find(SMS, "live", GATEWAYS[0])
    assert adapters.session_sources() == [(SMS, adapter.sessions)]
    assert adapters.callback_sources() == {}
    (_, plan) = sms_gateways(settings, adapters)
    assert (plan.provider, plan.connections) == (adapter.sender, 60)


@pytest.mark.parametrize(("given", "names"), [({}, []), ({"adapter_sms_b": "sandbox"}, ["gateway_b"])])
def test_a_gateway_without_an_adapter_is_none(given: Any, names: list[str]) -> None:
    settings = Settings(_env_file=None, **given)
    adapters = adapters_of(settings, SystemClock(), connections=1)

    assert [each.name for each in sms_gateways(settings, adapters)] == ["sandbox", *names]
    assert adapters.sends_in(SMS) == {"test", *(["live"] if names else [])}


@pytest.mark.parametrize(
    ("live", "kind"), [("", type(None)), ("sandbox", EmailSandbox), ("smtp", DnsProof), ("ses", DnsProof)]
)
def test_senders_of_email_are_verified_by_the_adapter_of_the_setting(live: str, kind: type[object]) -> None:
    adapters = adapters_of(Settings(_env_file=None, adapter_email=live), SystemClock(), connections=1)
    assert type(adapters.verifier(EMAIL, "live")) is kind
    assert isinstance(adapters.verifier(EMAIL, "test"), EmailSandbox)
    assert adapters.sends_in(EMAIL) == {"test", *(["live"] if live else [])}


def test_a_mail_server_sends_and_reports_nothing() -> None:
    settings = Settings(_env_file=None, adapter_email="smtp", smtp_url="smtps://mail.example.com:465")
    adapters = adapters_of(settings, SystemClock(), connections=8)

    adapter = adapters.find(EMAIL, "live")
    assert adapter.sender is not None
    assert adapter.sender.name == "smtp"
    assert (adapter.callbacks, adapter.connections) == (None, 8)
    assert adapter.place is not None
    assert adapter.place.url == "smtps://mail.example.com:465"


def test_ses_sends_and_hears_by_callbacks() -> None:
    settings = Settings(_env_file=None, adapter_email="ses", ses_region="eu-west-1", ses_connections=30)
    adapters = adapters_of(settings, SystemClock(), connections=8_000)

    adapter = adapters.find(EMAIL, "live")
    assert adapter.sender is not None
    assert adapter.sender.name == "ses"
    assert {at: type(each) for at, each in adapters.callback_sources().items()} == {(EMAIL, "ses"): Ses}
    assert adapter.connections == 30
    assert adapter.place is not None
    assert adapter.place.url == "https://email.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("10.0.0.1", False),
     ("mail.localhost.example", False), ("mail.example.com", False), ("0.0.0.0", False)],
)  # fmt: skip
def test_only_what_is_on_this_machine_is_spoken_to_in_the_clear(host: str, here: bool) -> None:
    assert is_loopback(host) is here


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://api.example.com", "api.example.com"),
        ("http://127.0.0.1:8080", "[127.0.0.1]"),
        ("http://[::1]:8080", "[IPv6:::1]"),
    ],
)
def test_we_greet_a_mail_server_by_the_host_of_the_api(address: str, name: str) -> None:
    assert greeting_name(address) == name


async def test_an_organization_leaves_half_of_the_connections_to_others() -> None:
    places = by_half(4)
    async with places("org_1"), places("org_1"):
        third = asyncio.create_task(held(places("org_1")))
        await held(places("org_2"))
        assert not third.done()
    await third


async def held(place: AbstractAsyncContextManager[None]) -> None:
    async with place:
        pass
