"""A notification as adapters get it, and what an adapter of push is: it hands one over to one device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from recado.channels.core.provider import Outcome

UNREGISTERED: Final = "unregistered"  # of a Refused: the provider knows the token no more


@dataclass(frozen=True, slots=True, kw_only=True)
class PushCredential:
    """What notifications of an app leave with. `repr` holds none of it."""

    app_id: str
    organization_id: str
    env: str
    vapid_private: str = field(repr=False)
    vapid_public: str
    service_account: Mapping[str, Any] | None = field(default=None, repr=False)
    apns: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushNotification:
    """One notification for one device. `seconds`: for which it is worth being delivered."""

    dispatch_id: str
    message_id: str
    token: str = field(repr=False)
    p256dh: str | None = field(default=None, repr=False)
    auth: str | None = field(default=None, repr=False)
    title: str | None = field(default=None, repr=False)
    body: str | None = field(default=None, repr=False)
    deep_link: str | None = field(default=None, repr=False)
    image_url: str | None = field(default=None, repr=False)
    actions: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    data: Mapping[str, Any] | None = field(default=None, repr=False)
    silent: bool = False
    seconds: int = 86_400

    def told(self) -> dict[str, Any]:
        """What its app reads, whatever the platform (C22.3)."""
        told: dict[str, Any] = {"dispatchId": self.dispatch_id}
        if self.deep_link is not None:
            told["deepLink"] = self.deep_link
        if self.data:
            told["data"] = dict(self.data)
        return told

    def shown(self) -> dict[str, Any]:
        """What a device shows; nothing of a silent one."""
        shown: dict[str, Any] = {"title": self.title, "body": self.body, "imageUrl": self.image_url}
        shown["actions"] = [dict(action) for action in self.actions] or None
        return {name: value for name, value in shown.items() if value is not None}


class PushSender(Protocol):
    """Hands notifications over."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    @property
    def has_one_gateway(self) -> bool:
        """Whether all that it takes of one credential is in trouble together."""

    def gateway_of(self, credential: PushCredential, token: str) -> str:
        """What is in trouble together: a host, an account."""

    async def send(self, notification: PushNotification, credential: PushCredential, attempt: int) -> Outcome:
        """Hand one over. `attempt` counts from 1. Never raises, cancellation aside."""
