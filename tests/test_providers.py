"""From the settings to the adapters."""

from typing import Any

import pytest

from recado.config.settings import Settings
from recado.engine.clock import SystemClock
from recado.providers import chatapp_providers

BRIDGE: dict[str, Any] = {
    "adapter_chatapp": "bridge",
    "bridge_chatapp_url": "http://127.0.0.1:1",
    "bridge_chatapp_token": "token",
    "bridge_chatapp_secret": "secret",
}


@pytest.mark.parametrize(("given", "idempotent"), [({}, False), ({"bridge_chatapp_idempotent": True}, True)])
def test_a_bridge_is_idempotent_only_where_its_operator_says_so(given: dict[str, Any], idempotent: bool) -> None:
    settings = Settings(_env_file=None, **BRIDGE, **given)

    assert chatapp_providers(settings, SystemClock(), connections=1)["live"].idempotent is idempotent
