"""Every bridge has the same settings, and its adapter takes them alike."""

from typing import Any

import pytest

from recado.config.bridges import bridge_settings
from recado.config.settings import Settings

BRIDGES = sorted(
    field.removeprefix("bridge_").removesuffix("_url")
    for field in Settings.model_fields
    if field.startswith("bridge_") and field.endswith("_url")
)


def test_they_are_known() -> None:
    assert BRIDGES == ["chatapp", "email", "rcs", "sms", "sms_b", "social"]


@pytest.mark.parametrize("name", BRIDGES)
def test_a_bridge_is_made_with_what_its_settings_say(name: str) -> None:
    given: dict[str, Any] = {
        "base_url": "https://api.example.com", f"bridge_{name}_url": "https://bridge.example.com/",
        f"bridge_{name}_token": "a token", f"bridge_{name}_secret": "a secret", f"bridge_{name}_idempotent": True,
    }  # fmt: skip
    repeats = f"bridge_{name}_idempotent" in Settings.model_fields
    assert repeats is (name != "email")
    said = bridge_settings(Settings(_env_file=None, **given), name, "channel", callbacks="there")
    assert said == {
        "url": "https://bridge.example.com", "token": "a token", "secret": "a secret",
        "callback_url": "https://api.example.com/v2/callbacks/channel/there", "idempotent": repeats,
    }  # fmt: skip


@pytest.mark.parametrize("name", BRIDGES)
def test_what_is_not_set_is_empty(name: str) -> None:
    said = bridge_settings(Settings(_env_file=None), name, "channel")
    assert (said["url"], said["token"], said["secret"], said["idempotent"]) == ("", "", "", False)
