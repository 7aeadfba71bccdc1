"""Opens what people sent, where their provider keeps it (C8.3.1)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recado.channels.core.errors import ProviderError
from recado.channels.core.media import OpenMedia
from recado.services.media.media_senders import MediaSenders
from recado.services.media.media_use import MediaFor
from recado.storage.media.inbound_media import InboundMedia


class MediaExpired(Exception):
    """The provider no longer has it, or is no longer the sender's."""


class ProviderMedia:
    """Of messages that came."""

    def __init__(self, *, senders: MediaSenders, media_for: MediaFor) -> None:
        self._senders = senders
        self._media_for = media_for

    @asynccontextmanager
    async def open(self, media: InboundMedia) -> AsyncIterator[OpenMedia]:
        """Raises `MediaExpired`, or `ProviderError` where it may be tried again."""
        sender = await self._senders.get(media.channel, (media.organization_id, media.env, media.sender_id))
        store = self._media_for(media.channel, media.env)
        if sender is None:
            raise MediaExpired
        if store is None:
            raise ProviderError("unreachable", "no_provider", "nobody keeps media for this channel")
        try:
            async with store.open_media(sender.account(), media.reference) as opened:
                yield opened
        except ProviderError as error:
            if error.code == "not_found":
                raise MediaExpired from None
            raise
