"""The sandbox of a channel whose provider keeps media: takes what is uploaded, and holds what imagined people send."""

from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, Final

from recado.channels.core.errors import ProviderError
from recado.channels.core.media import OpenMedia
from recado.channels.core.provider import Account
from recado.channels.core.sandbox import ChannelSandbox

_MOST_MEDIA: Final = 32 * 1024 * 1024
"""Bytes of what imagined people sent, until it is copied: the oldest go first."""
_PIECE: Final = 64 * 1024


class MediaSandbox(ChannelSandbox):
    """As any, with media."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sent: OrderedDict[str, tuple[str, bytes]] = OrderedDict()  # by reference: type and content

    async def upload_media(
        self, account: Account, content: AsyncIterable[bytes | memoryview], *, size: int, mime_type: str, filename: str
    ) -> str:
        """Not kept: nobody looks at it, so no more of it is read than its id is made of, which is its beginning."""
        left, digest = min(size, _PIECE), sha256(f"{account.provider_id} {size}".encode())
        if left:
            async for chunk in content:
                digest.update(chunk[:left])
                left -= len(chunk)
                if left <= 0:
                    break
        if left > 0:
            raise ProviderError("refused", "media_invalid", "the media is not as long as was said")
        return f"sandbox-{digest.hexdigest()[:32]}"

    def person_sends(self, reference: str, mime_type: str, content: bytes) -> None:
        """Hold what an imagined person sends, for `open_media`."""
        self._sent[reference] = (mime_type, content)
        while sum(len(held) for _, held in self._sent.values()) > _MOST_MEDIA and len(self._sent) > 1:
            self._sent.popitem(last=False)

    @asynccontextmanager
    async def open_media(self, account: Account, media_ref: str) -> AsyncIterator[OpenMedia]:
        if (found := self._sent.get(media_ref)) is None:
            raise ProviderError("refused", "not_found", "the sandbox holds no such media any more")
        mime_type, content = found

        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(content), _PIECE):
                yield content[at : at + _PIECE]

        yield OpenMedia(mime_type, len(content), None, chunks())
