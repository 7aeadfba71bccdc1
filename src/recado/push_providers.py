"""Those who take notifications, from the settings: the sandbox in test, push services in live."""

from collections.abc import Callable, Mapping
from typing import Final

from yarl import URL

from recado.actors.push.push_lane import RETRY_AFTER
from recado.channels.http.outbound_guard import OutboundGuard
from recado.channels.push.apns import Apns
from recado.channels.push.fcm import Fcm
from recado.channels.push.notification import PushCredential, PushSender
from recado.channels.push.sandbox import PushSandbox
from recado.channels.push.webpush import WebPush
from recado.config.settings import Settings
from recado.domain.core.clock import Clock
from recado.domain.push.device import ANDROID, IOS, PLATFORMS, WEB

DIRECT: Final = "direct"


class PushProviders:
    """A service (`start`, `stop`). `sends_in`: the environments in which somebody sends."""

    def __init__(
        self, settings: Settings, guard: OutboundGuard, clock: Clock, random_bytes: Callable[[int], bytes]
    ) -> None:
        self.sends_in = frozenset(["test", *(["live"] if settings.adapter_push else [])])
        scale = settings.sandbox_time_scale
        self._sandbox = PushSandbox(clock, scale)
        self.retry_after = tuple(seconds * min(scale, 1.0) for seconds in RETRY_AFTER)
        self._web: WebPush | None = None
        self._fcm: Fcm | None = None
        self._apns: Apns | None = None
        if settings.adapter_push == DIRECT:
            self.retry_after = RETRY_AFTER
            base = settings.address()
            subject = base if base.startswith("https://") else f"mailto:postmaster@{URL(base).host}"
            self._web = WebPush(guard, clock=clock, subject=subject, random_bytes=random_bytes)
            self._apns = Apns(URL(settings.apns_url or ""), URL(settings.apns_development_url or ""), clock=clock)
            self._fcm = Fcm(URL(settings.fcm_url or ""), URL(settings.fcm_token_url or ""), clock=clock)

    async def start(self) -> None:
        for each in self._senders():
            await each.start()

    async def stop(self) -> None:
        for each in self._senders():
            await each.stop()

    def sender_of(self, env: str, platform: str, credential: PushCredential) -> PushSender | None:
        """Who takes the notifications of an app; None: nobody, with the credentials that it has."""
        if env == "test" or self._web is None:
            return self._sandbox if env == "test" or "live" in self.sends_in else None
        if platform == WEB:
            return self._web
        if platform == IOS and credential.apns is not None:
            return self._apns
        return self._fcm if credential.service_account is not None else None

    def services(self, env: str) -> Mapping[str, str]:
        """Who takes the notifications of an environment, by platform; of an app without a key of Apple's FCM does."""
        if env not in self.sends_in:
            return {}
        if env == "test" or self._web is None:
            return dict.fromkeys(PLATFORMS, self._sandbox.name)
        return {WEB: WebPush.name, IOS: Apns.name, ANDROID: Fcm.name}

    def _senders(self) -> list[PushSender]:
        return [each for each in (self._sandbox, self._web, self._fcm, self._apns) if each is not None]
