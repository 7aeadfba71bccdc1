"""The push service of the test environment: what becomes of a notification, its token says (C29.4)."""

from typing import Final

from recado.channels.core.provider import Accepted, Outcome, Refused, Retry
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification
from recado.domain.core.clock import Clock

ACCEPTED_AFTER: Final = 0.1  # seconds


class PushSandbox:
    """`time_scale` multiplies the time that it takes. Tokens end in `-unregistered`, `-failed` or `-retry`.

    The last are refused twice, and then taken.
    """

    name = "sandbox"
    has_one_gateway = True

    def __init__(self, clock: Clock, time_scale: float = 1.0) -> None:
        self._clock = clock
        self._seconds = ACCEPTED_AFTER * time_scale

    async def start(self) -> None:
        """Nothing is held."""

    async def stop(self) -> None:
        """Nothing is held."""

    def gateway_of(self, credential: PushCredential, token: str) -> str:
        return self.name

    async def send(self, notification: PushNotification, credential: PushCredential, attempt: int) -> Outcome:
        if self._seconds:
            await self._clock.sleep(self._seconds)
        if notification.token.endswith("-unregistered"):
            return Refused(UNREGISTERED, "the device is not registered any more")
        if notification.token.endswith("-failed"):
            return Refused("provider_error", "the notification was refused")
        if notification.token.endswith("-retry") and attempt < 3:
            return Retry()
        return Accepted(notification.dispatch_id)
