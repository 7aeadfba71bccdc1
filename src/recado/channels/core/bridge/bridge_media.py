"""A bridge whose provider keeps media: it takes what messages then send, and gives what people sent (C29.2, C29.3)."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from recado.channels.core import media_transfer
from recado.channels.core.answers import arrived, read
from recado.channels.core.bridge import bridge_answers
from recado.channels.core.bridge.bridge import ChannelBridge
from recado.channels.core.errors import ProviderError
from recado.channels.core.fields import Text256
from recado.channels.core.media import OpenMedia
from recado.channels.core.media_transfer import FormField
from recado.channels.core.provider import Account
from recado.channels.core.reading import record
from recado.channels.http.answer import Answer
from recado.channels.http.outbound_http import MAX_ANSWER, MEDIA_CONNECTIONS

_UPLOADED: Final = record({"mediaId": Text256})
_GONE: Final = 410
_NOT_THERE: Final = (404, 405)
_OCTETS: Final = "application/octet-stream"


class MediaBridge(ChannelBridge):
    """As any, with media, whose connections are others: they take minutes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._media = self._pool(MEDIA_CONNECTIONS)

    async def start(self) -> None:
        await super().start()
        await self._media.start()

    async def stop(self) -> None:
        try:
            await super().stop()
        finally:
            await self._media.stop()

    async def upload_media(
        self, account: Account, content: AsyncIterable[bytes | memoryview], *, size: int, mime_type: str, filename: str
    ) -> str:
        """A form of two parts: `request`, JSON as of any operation, and `file`. Raises `ProviderError`."""
        request = self.request_body(account, filename=filename, mimeType=mime_type, size=size)
        form = media_transfer.upload_form(
            [FormField("request", request, "application/json")],
            content,
            size=size,
            mime_type=mime_type,
            filename=filename,
        )
        answer = await self._media.request(
            "POST",
            self._base / "upload_media",
            {**self._headers, "Content-Type": form.content_type, "Content-Length": str(form.length)},
            owner=account.owner,
            body=form.parts,
            timeout=media_transfer.UPLOAD_TIMEOUT,
        )
        taken = self._result(arrived(answer, "upload_media", self.noun))
        media_id: str = read(_UPLOADED, taken, "media", self.noun)["mediaId"]
        return media_id

    @asynccontextmanager
    async def open_media(self, account: Account, media_ref: str) -> AsyncIterator[OpenMedia]:
        """The answer's body is the media. Raises `ProviderError`."""
        try:
            async with self._media.download(
                self._base / "open_media",
                self._headers,
                owner=account.owner,
                timeout=media_transfer.UPLOAD_TIMEOUT,
                body=self.request_body(account, mediaRef=media_ref),
            ) as (status, headers, chunks):
                if status != 200:
                    raise await self._not_given(status, chunks)
                size = _length(headers)
                mime_type = headers.get("Content-Type") or _OCTETS
                yield OpenMedia(mime_type, size, None, media_transfer.chunks_of(chunks, size))
        except OSError:
            raise ProviderError("unreachable", "no_answer", "the bridge did not answer open_media") from None

    async def _not_given(self, status: int, chunks: AsyncIterator[bytes]) -> ProviderError:
        """What an answer without media means."""
        if status == _GONE:
            return ProviderError("refused", "not_found", "the provider has the media no more")
        if status in _NOT_THERE:  # the bridge gives no media: others would take it for media that is gone
            return ProviderError("unreachable", "no_answer", f"the bridge answered open_media with status {status}")
        said = bytearray()
        async for chunk in chunks:
            said += chunk
            if len(said) > MAX_ANSWER:
                break
        try:
            self._result(Answer(status, None, bytes(said), len(said) <= MAX_ANSWER))
        except ProviderError as error:
            return error
        return ProviderError("unreachable", "malformed_answer", f"the bridge answered open_media with status {status}")

    def _result(self, answer: Answer) -> Mapping[str, Any]:
        return bridge_answers.operation_result(answer, personal=(self._token,), codes=self.codes)


def _length(headers: Mapping[str, str]) -> int | None:
    """What the bridge says, where it does; raises `ProviderError` for more than any media has."""
    said = headers.get("Content-Length", "")
    if not said.isdecimal():
        return None
    if int(said) > media_transfer.LARGEST:
        raise ProviderError("unreachable", "malformed_answer", "the media is longer than any may be")
    return int(said)
