"""The types of media: which can be sent, as what and how large (C8.2), and what their first bytes say they are. Pure.

Only leading bytes are read, and of a ZIP the names in its directory: nothing is ever unpacked.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from recado.domain.core.errors import Problem, field_refused

MIB: Final = 1024 * 1024
LARGEST: Final = 105_000_000
"""Bytes of any media."""
LONGEST_FILENAME: Final = 240  # characters
LONGEST_TYPE: Final = 256

READ: Final = 64 * 1024
"""Bytes of the beginning that tell a type."""
_MOST_DIRECTORY: Final = MIB  # bytes of the names in a ZIP

IMAGE, AUDIO, VIDEO, DOCUMENT, STICKER = "image", "audio", "video", "document", "sticker"

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
DOCX: Final = f"{_OFFICE}wordprocessingml.document"
XLSX: Final = f"{_OFFICE}spreadsheetml.sheet"
PPTX: Final = f"{_OFFICE}presentationml.presentation"
_OLD_OFFICE: Final = ("application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint")

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("image/jpeg", "image/png"), IMAGE),
        **dict.fromkeys(("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"), AUDIO),
        **dict.fromkeys(("video/mp4", "video/3gpp"), VIDEO),
        **dict.fromkeys(("application/pdf", "text/plain", *_OLD_OFFICE, DOCX, XLSX, PPTX), DOCUMENT),
        "image/webp": STICKER,
    }
)
"""What can be sent, by type."""

LIMITS: Final[Mapping[str, int]] = MappingProxyType(
    {IMAGE: 5 * MIB, AUDIO: 16 * MIB, VIDEO: 16 * MIB, DOCUMENT: 100 * MIB, STICKER: 500 * 1024}
)
"""Bytes by kind that a number sends; of a sticker that is not animated: `STILL`."""
STILL: Final = 100 * 1024

_SAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("image/jpg", "image/pjpeg"), "image/jpeg"),
        "image/x-png": "image/png",
        "audio/mp3": "audio/mpeg",
        **dict.fromkeys(("audio/x-wav", "audio/wave"), "audio/wav"),
        **dict.fromkeys(("audio/x-m4a", "audio/m4a"), "audio/mp4"),
        "video/x-m4v": "video/mp4",
        "application/x-pdf": "application/pdf",
    }
)

Bytes = Callable[[int, int], bytes]
"""Bytes of a binary from an offset on, so many or fewer."""

_ISO: Final[Mapping[bytes, tuple[str, ...]]] = MappingProxyType(
    {
        b"M4A ": ("audio/mp4",),
        b"M4B ": ("audio/mp4",),
        b"qt  ": ("video/quicktime",),
        b"heic": ("image/heic",),
        b"heix": ("image/heic",),
        b"mif1": ("image/heif",),
        b"avif": ("image/avif",),
        b"avis": ("image/avif",),
    }
)
"""By the major brand of an ISO container; others that are known hold a video, or a sound alone."""
_ISO_OF_ANY: Final = re.compile(rb"(?:iso[m2-9]|mp4[12]|avc1|dash|M4V |MSNV|F4V |mmp4)").fullmatch
_OGG: Final = "application/ogg"
_MARKUP: Final = re.compile(
    rb"[\s\xef\xbb\xbf]*<(?:!doctype|html|head|body|script|svg|\?xml|!--|iframe|[a-z]+[ >/])", re.IGNORECASE
)
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]").search
_ASCII: Final = bytes(range(0x80))
_PLAIN: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"#!AMR\n", "audio/amr"),
    (b"#!AMR-WB\n", "audio/amr"),
    (b"ID3", "audio/mpeg"),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a binary is by its bytes: one of `types`, the likeliest first. `voice`: Opus of one channel, in OGG."""

    types: tuple[str, ...] = ()
    voice: bool = False
    animated: bool = False


@dataclass(frozen=True, slots=True)
class MediaForm:
    """What can be sent as it is. `limit`: bytes."""

    kind: str
    mime_type: str
    voice: bool
    limit: int


def normalized(mime_type: str) -> str:
    """A media type without parameters, in lower case, by its usual name (C8.3.5)."""
    name = mime_type.partition(";")[0].strip().lower()
    return _SAME.get(name, name)


def safe_filename(name: str) -> str:
    """Without path separators and control characters, within 240 characters (C8.2.2); may be left empty."""
    kept = "".join(character for character in name if character.isprintable() and character not in '/\\"')
    return kept.strip().strip(".").strip()[:LONGEST_FILENAME]


def form_of(declared: str, seen: Seen, size: int, limits: Mapping[str, int] = LIMITS) -> MediaForm:
    """How a binary can be sent; raises MEDIA_TYPE_NOT_ALLOWED, MEDIA_TYPE_MISMATCH (415) or MEDIA_TOO_LARGE (413).

    `limits`: bytes by kind, of those that whoever sends it takes.
    """
    declared = normalized(declared)
    if declared not in KINDS:
        raise Problem("MEDIA_TYPE_NOT_ALLOWED", "Media of the declared type cannot be sent.")
    types = [each for each in seen.types if each in KINDS]
    if not types:
        raise Problem("MEDIA_TYPE_NOT_ALLOWED", "The content is of no type that can be sent.")
    same_kind = [each for each in types if KINDS[each] == KINDS[declared]]
    if not same_kind:
        raise Problem(
            "MEDIA_TYPE_MISMATCH", f"The content is of kind {KINDS[types[0]]}; the declared type is {KINDS[declared]}."
        )
    mime_type = declared if declared in same_kind else same_kind[0]
    kind = KINDS[mime_type]
    if kind not in limits:
        *others, last = limits
        raise Problem("MEDIA_TYPE_NOT_ALLOWED", f"Only {', '.join(others)} and {last} are taken here.")
    form = MediaForm(kind, mime_type, seen.voice, STILL if kind == STICKER and not seen.animated else limits[kind])
    if size > form.limit:
        raise too_large(form.limit, kind)
    return form


def too_large(limit: int, kind: str = "media") -> Problem:
    """413."""
    return Problem("MEDIA_TOO_LARGE", f"Media of kind {kind} has at most {limit:,} bytes.", meta={"limitBytes": limit})


def check_size(size: int, path: str) -> None:
    """Neither empty (422) nor larger than any media (413)."""
    if not size:
        raise field_refused("VALIDATION_ERROR", path, "The media is empty.")
    if size > LARGEST:
        raise too_large(LARGEST, "any")


def look(read: Bytes, size: int) -> Seen:
    """What the binary is. `read` is asked for its beginning, and of a ZIP for its end."""
    head = read(0, READ)
    if head.startswith(b"PK\x03\x04"):
        return Seen(_zip_types(read, size))
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return Seen(_OLD_OFFICE)
    if head[:4] == b"OggS":
        return _ogg(head)
    if head[4:8] == b"ftyp":
        return Seen(_iso(head, size))
    if head[:4] == b"RIFF":
        return _riff(head)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        return Seen(("image/png",))
    for start, mime_type in _PLAIN:
        if head.startswith(start):
            return Seen((mime_type,))
    if (sound := _framed(head)) is not None:
        return Seen((sound,))
    return Seen(_text(head))


def type_of(declared: str, seen: Seen) -> str:
    """The real type of what somebody sent: as its bytes say, else as declared."""
    declared = normalized(declared) or "application/octet-stream"
    if not seen.types or declared in seen.types:
        return declared
    if seen.types == ("text/plain",) and declared.startswith("text/") and declared != "text/html":
        return declared
    if seen.types == (_OGG,) and declared in ("audio/ogg", "video/ogg"):
        return declared  # the container holds either
    return seen.types[0]


def _framed(head: bytes) -> str | None:
    """Sound in frames without a container: 11 bits of synchronization, then version and layer."""
    if len(head) < 4 or head[0] != 0xFF:
        return None
    if head[1] & 0xF6 == 0xF0:
        return "audio/aac"
    if head[1] & 0xE6 == 0xE2 and head[1] & 0x18 != 0x08 and head[2] & 0xF0 not in (0x00, 0xF0):
        return "audio/mpeg"
    return None


def _ogg(head: bytes) -> Seen:
    """The first page of an OGG: what its stream begins with."""
    if len(head) < 28 or head[4] != 0:
        return Seen()
    start = 27 + head[26]
    packet = head[start : start + 19]
    if packet[:8] == b"OpusHead" and len(packet) >= 10:
        return Seen(("audio/ogg",), voice=packet[9] == 1)
    return Seen((_OGG,))


def _iso(head: bytes, size: int) -> tuple[str, ...]:
    """By the brand of a first box that lies within the file."""
    length, brand = int.from_bytes(head[:4], "big"), head[8:12]
    if not 16 <= length <= size:
        return ()
    if brand.startswith((b"3gp", b"3g2", b"3ge", b"3gg")):
        return ("video/3gpp",)
    if _ISO_OF_ANY(brand):
        return ("video/mp4", "audio/mp4")
    return _ISO.get(brand, ())


def _riff(head: bytes) -> Seen:
    form = head[8:12]
    if form == b"WEBP" and head[12:15] == b"VP8":
        return Seen(("image/webp",), animated=head[12:16] == b"VP8X" and len(head) > 20 and bool(head[20] & 0x02))
    return Seen({b"WAVE": ("audio/wav",), b"AVI ": ("video/x-msvideo",)}.get(form, ()))


def _text(head: bytes) -> tuple[str, ...]:
    if not head or _CONTROL(head):
        return ()
    try:
        head.decode()
    except UnicodeDecodeError as error:
        cut = error.start >= len(head) - 3 and len(head) == READ  # a character may be cut in two
        # Texts in Latin-1 and its like are in ASCII for the most part, and say nowhere what they are.
        if not cut and len(head.translate(None, _ASCII)) * 2 >= len(head):
            return ()
    if (found := _MARKUP.match(head)) is not None:
        return ("image/svg+xml",) if b"<svg" in head[:1024].lower() else ("text/html",) if found else ()
    return ("text/plain",)


def _zip_types(read: Bytes, size: int) -> tuple[str, ...]:
    """An Office document has its list of types and a folder of its program; any other ZIP is only that."""
    names = _zip_names(read, size)
    if b"[Content_Types].xml" in names:
        for folder, mime_type in ((b"word/", DOCX), (b"xl/", XLSX), (b"ppt/", PPTX)):
            if any(name.startswith(folder) for name in names):
                return (mime_type,)
    return ("application/zip",)


def _zip_names(read: Bytes, size: int) -> frozenset[bytes]:
    """The names in the directory at the end, which must lie within the file; none of one that does not."""
    tail_at = max(0, size - 65_557)
    tail = read(tail_at, 65_557)
    found = tail.rfind(b"PK\x05\x06")
    if found < 0 or found + 22 > len(tail):
        return frozenset()
    length, start = (int.from_bytes(tail[found + at : found + at + 4], "little") for at in (12, 16))
    if start + length > tail_at + found or length > _MOST_DIRECTORY:
        return frozenset()
    directory, at, names = read(start, length), 0, set()
    while directory[at : at + 4] == b"PK\x01\x02" and at + 46 <= len(directory):
        name, extra, comment = (int.from_bytes(directory[at + n : at + n + 2], "little") for n in (28, 30, 32))
        names.add(directory[at + 46 : at + 46 + name])
        at += 46 + name + extra + comment
    return frozenset(names)
