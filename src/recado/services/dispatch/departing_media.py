"""The payload of a message that names media, as it leaves: with what its sender's provider calls it (C8.2.1)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from recado.domain.messages.message import Cause, FailureCode
from recado.services.dispatch.row import NewPayload, Row
from recado.services.media.media_use import MediaRefused, MediaUse, named_media


def may_name_media(row: Row) -> bool:
    """Most rows do not, and are not looked at."""
    return row.payload is not None and '"media"' in row.payload


class DepartingMedia:
    """Makes it for the length of a call."""

    def __init__(self, use: MediaUse) -> None:
        self._use = use

    @asynccontextmanager
    async def content_of(self, row: Row) -> AsyncIterator[NewPayload | Cause]:
        """Raises `Problem` where the provider has not taken the media for now: that spends an attempt."""
        yield await self._payload(row)

    async def _payload(self, row: Row) -> NewPayload | Cause:
        payload = orjson.loads(row.payload or "null")
        named = named_media(row.type, payload)
        if named is None:
            return NewPayload(payload)
        try:
            sent = await self._use.sent_as(row.channel, row.organization_id, row.env, row.sender_id, named)
        except MediaRefused:
            return Cause(FailureCode.MEDIA_INVALID, "the provider refused the media")
        if isinstance(sent, str):
            return Cause(FailureCode.MEDIA_INVALID, sent)
        if row.type == "media":
            return NewPayload({**payload, "media": {**payload["media"], "id": sent.provider_id}})
        header = {"media": {"id": sent.provider_id, "kind": sent.kind}}
        if row.type == "template":
            return NewPayload({**payload, "header": header})
        return NewPayload({**payload, "interactive": {**payload["interactive"], "header": header}})
