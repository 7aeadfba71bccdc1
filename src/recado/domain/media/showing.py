"""How a download is shown: under its own type, or only to be kept; with which name (C8.3). Pure."""

import re
from typing import Final
from urllib.parse import quote

from recado.domain.media.media_types import DOCX, PPTX, XLSX, normalized, safe_filename

OCTETS: Final = "application/octet-stream"
_INLINE: Final = frozenset(
    {
        *(f"image/{name}" for name in ("png", "jpeg", "gif", "webp", "avif", "bmp", "heic", "heif")),
        "application/pdf",
    }
)
_PLAYED: Final = re.compile(r"(?:audio|video)/[a-z0-9!#$&^_.+-]+")
"""What senders declare is theirs to say, and goes into a header."""
_ENDINGS: Final = {
    "image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp", "image/heic": "heic",
    "audio/aac": "aac", "audio/amr": "amr", "audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/ogg": "ogg",
    "audio/wav": "wav", "video/mp4": "mp4", "video/3gpp": "3gp", "video/quicktime": "mov", "video/webm": "webm",
    "application/pdf": "pdf", "text/plain": "txt", "text/csv": "csv", "application/zip": "zip",
    "application/msword": "doc", "application/vnd.ms-excel": "xls", "application/vnd.ms-powerpoint": "ppt",
    DOCX: "docx", XLSX: "xlsx", PPTX: "pptx",
}  # fmt: skip

STREAM_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-store",
}


def is_inline(mime_type: str) -> bool:
    """Whether a browser may show media of this type: pictures, PDF, sound and moving pictures, and no markup."""
    name = normalized(mime_type)
    return name in _INLINE or (_PLAYED.fullmatch(name) is not None and not name.endswith("+xml"))


def shown_type(mime_type: str) -> str:
    """Under which type media is given."""
    return normalized(mime_type) if is_inline(mime_type) else OCTETS


def ending(mime_type: str) -> str:
    return _ENDINGS.get(normalized(mime_type), "bin")


def disposition(mime_type: str, name: str, *, download: bool) -> str:
    """The header `Content-Disposition`."""
    name = safe_filename(name) or "media"
    plain = "".join(character if character.isascii() and character not in "%;" else "_" for character in name)
    how = "inline" if is_inline(mime_type) and not download else "attachment"
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
