"""The social platform of the test environment: its stories (C29.4)."""

from recado.channels.core.chat_stories import CHAT_STORIES, USUAL_CHAT
from recado.channels.core.media_sandbox import MediaSandbox
from recado.channels.core.provider import Account
from recado.domain.core.clock import Clock


class SocialSandbox(MediaSandbox):
    """`time_scale` multiplies every time; 0: everything is due at once and no send waits."""

    def __init__(self, clock: Clock, time_scale: float = 1.0) -> None:
        super().__init__(clock, time_scale, usual=USUAL_CHAT, stories=CHAT_STORIES)

    async def connect(self, account: Account) -> None:
        """Always let in."""

    async def disconnect(self, account: Account) -> None:
        """Always let go."""
