"""Media at the hosted API: uploads as a form of several parts, downloads from an address that it gives."""

import secrets
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field, StrictInt
from yarl import URL

from recado.channels.chatapp.cloud_messages import PRODUCT
from recado.channels.core.errors import ProviderError
from recado.channels.core.fields import Text128, Text256, Text4096
from recado.channels.core.reading import record
from recado.channels.http.outbound_guard import UrlRefused, form_fault, target_of

UPLOAD_TIMEOUT: Final = 300.0
"""Seconds for all of a body of up to 100 MB, as long as it keeps moving."""

LARGEST: Final = 100 * 1024 * 1024
"""Bytes of the largest media that the provider takes or gives."""

MEDIA: Final = record(
    {"url": Text4096, "mime_type": Text256},
    {"sha256": Text128 | None, "file_size": Annotated[StrictInt, Field(ge=0, le=LARGEST)] | None},
)
"""What the provider says of media before it gives it."""

_BOUNDARY_BYTES = 16


@dataclass(frozen=True, slots=True)
class UploadForm:
    """The form of one upload: `content_type` of the request, its `length` in bytes, and its parts."""

    content_type: str
    length: int
    parts: AsyncIterator[bytes] = field(repr=False)


def upload_form(content: AsyncIterable[bytes], size: int, mime_type: str, filename: str) -> UploadForm:
    """`size`: bytes of the content; a content of another length breaks the request off."""
    boundary = secrets.token_hex(_BOUNDARY_BYTES)
    mime_type = _header_text(mime_type)
    head = b"".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in (("messaging_product", PRODUCT), ("type", mime_type))
    )
    head += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{_header_text(filename)}"\r\n'
        f"Content-Type: {mime_type}\r\n\r\n"
    ).encode()
    tail = f"\r\n--{boundary}--\r\n".encode()

    async def parts() -> AsyncIterator[bytes]:
        yield head
        async for chunk in content:
            yield chunk
        yield tail

    return UploadForm(f"multipart/form-data; boundary={boundary}", len(head) + size + len(tail), parts())


def download_address(text: str, api: URL) -> URL:
    """The address of media as the provider gives it; raises `ProviderError` for one that the token must not go to.

    That is the host of the API itself, or with https any name that is not one of a local network.
    """
    try:
        url, target = URL(text), target_of(text)
    except (ValueError, UrlRefused):
        url, target = URL(), None
    ours = url.host == api.host and url.scheme in (api.scheme, "https")
    if target is None or not (ours or form_fault(target, live=True) is None):
        raise ProviderError("unreachable", "malformed_answer", "the provider gave an address of media that is not safe")
    return url


async def chunks_of(chunks: AsyncIterator[bytes], size: int | None) -> AsyncIterator[bytes]:
    """The same chunks, with our error; more bytes than the provider said, or than any media has, break it off."""
    left = LARGEST if size is None else size
    try:
        async for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise ProviderError("unreachable", "malformed_answer", "the media is longer than the provider said")
            yield chunk
    except OSError:
        raise ProviderError("unreachable", "no_answer", "the media broke off") from None


def _header_text(text: str) -> str:
    """What may stand between quotes in a header of a part."""
    return "".join("_" if character in '"\\' or not character.isprintable() else character for character in text)
