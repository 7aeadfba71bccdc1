"""The social bridge: the content of its messages, and how accounts are connected there (C29.3)."""

from collections.abc import Mapping
from typing import Any

from recado.channels.core.bridge.bridge_media import MediaBridge
from recado.channels.core.provider import Account, OutboundMessage
from recado.channels.social.account import social_details


class SocialBridge(MediaBridge):
    """As of any channel. It gets the token of an account when that is connected, and keeps it."""

    def content(self, message: OutboundMessage) -> Mapping[str, Any]:
        return {"type": message.type, "payload": message.payload}

    async def connect(self, account: Account) -> None:
        details = social_details(account)
        await self.call("connect", account, platform=details.platform, accessToken=details.access_token)

    async def disconnect(self, account: Account) -> None:
        await self.call("disconnect", account, platform=social_details(account).platform)
