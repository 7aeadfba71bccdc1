"""From the settings to the adapters."""

from typing import Any

import pytest

from recado.config.settings import Settings
from recado.domain.channels.chatapp import CHATAPP
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
    for missing in (("sms", "live"), (CHATAPP, "other"), (CHATAPP, "live", "gateway_a")):
        assert adapters.sender(*missing) is adapters.admin(*missing) is adapters.reviewer(*missing) is None
    assert adapters.sends_in("sms") == frozenset()
    assert [sender.name for sender in adapters.senders()] == ["sandbox", "bridge"]
