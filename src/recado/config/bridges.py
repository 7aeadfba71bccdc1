"""What the settings say of a bridge, of whatever channel: by one name, as its adapter takes it (C29.1)."""

from typing import TypedDict

from pydantic import SecretStr

from recado.config.settings import Settings


class BridgeSettings(TypedDict):
    """What an adapter of a bridge is made with."""

    url: str
    token: str
    secret: str
    callback_url: str
    idempotent: bool


def bridge_settings(settings: Settings, name: str, channel: str, *, callbacks: str = "bridge") -> BridgeSettings:
    """The settings `bridge_<name>_…`; `callbacks`: as what the bridge calls back. What is not set is empty."""
    token: SecretStr | None = getattr(settings, f"bridge_{name}_token")
    secret: SecretStr | None = getattr(settings, f"bridge_{name}_secret")
    return BridgeSettings(
        url=getattr(settings, f"bridge_{name}_url") or "",
        token=token.get_secret_value() if token else "",
        secret=secret.get_secret_value() if secret else "",
        callback_url=f"{settings.address()}/v2/callbacks/{channel}/{callbacks}",
        idempotent=getattr(settings, f"bridge_{name}_idempotent", False),  # e-mails are never repeated
    )
