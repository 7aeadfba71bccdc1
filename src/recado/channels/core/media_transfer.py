"""How media goes over HTTP to and from a provider, whichever it is: a form of several parts up, a stream down."""

import secrets
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from recado.channels.core.errors import ProviderError

UPLOAD_TIMEOUT: Final = 300.0
"""Seconds for all of a body of up to 100 MB, as long as it keeps moving."""

LARGEST: Final = 100 * 1024 * 1024
"""Bytes of the largest media that a provider takes or gives."""

_BOUNDARY_BYTES = 16


class FormField(NamedTuple):
    """A part beside the file. `content_type` None: plain text."""

    name: str
    value: bytes
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class UploadForm:
    """The form of one upload: `content_type` of the request, its `length` in bytes, and its parts."""

    content_type: str
    length: int
    parts: AsyncIterator[bytes | memoryview] = field(repr=False)


def upload_form(
    fields: Sequence[FormField], content: AsyncIterable[bytes | memoryview], *, size: int, mime_type: str, filename: str
) -> UploadForm:
    """The fields, then the part `file`. `size`: bytes of its content; one of another length breaks the request off."""
    boundary = secrets.token_hex(_BOUNDARY_BYTES)
    head = b"".join(_part(boundary, f'name="{each.name}"', each.content_type) + each.value + b"\r\n" for each in fields)
    head += _part(boundary, f'name="file"; filename="{header_text(filename)}"', header_text(mime_type))
    tail = f"\r\n--{boundary}--\r\n".encode()

    async def parts() -> AsyncIterator[bytes | memoryview]:
        yield head
        async for chunk in content:
            yield chunk
        yield tail

    return UploadForm(f"multipart/form-data; boundary={boundary}", len(head) + size + len(tail), parts())


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


def header_text(text: str) -> str:
    """What may stand between quotes in a header of a part."""
    return "".join("_" if character in '"\\' or not character.isprintable() else character for character in text)


def _part(boundary: str, disposition: str, content_type: str | None) -> bytes:
    typed = "" if content_type is None else f"Content-Type: {content_type}\r\n"
    return f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n{typed}\r\n".encode()
