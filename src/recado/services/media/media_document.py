"""Reads a JSON body with a binary in base64 from a file, piece by piece: neither is ever in memory as a whole (C8.2).

Everything beside the binary is copied to a small document, which is then read as any other body.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import IO, Final

import structlog

from recado.domain.core.errors import Problem, Unavailable, field_refused
from recado.domain.media.media_types import LARGEST, too_large
from recado.storage.core.gathered import GatheredBytes

MEMBER: Final = "dataBase64"
MOST_CHARACTERS: Final = 140_000_000
MOST_BESIDE: Final = 64 * 1024  # bytes of all other members
IN_MEMORY: Final = 256 * 1024  # bytes
_PIECE: Final = 64 * 1024  # bytes: the interpreter's lock is held for one of them
_SPACE: Final = b" \t\r\n"
_STRUCTURE: Final = re.compile(rb'["{}\[\]]')
# At its closing quote, or where the piece ends; an escape is not cut in two. Possessive: no byte is looked at twice.
_WITHIN_TEXT: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_ESCAPES: Final = ((rb"\n", b""), (rb"\r", b""), (rb"\t", b""), (rb"\/", b"/"))
"""Those that base64 may have: an escaped backslash is none of it."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class MediaDocument:
    """`rest`: the document with an empty text in the binary's place. The binary is in `file`, to be closed."""

    rest: bytes
    file: IO[bytes] = field(repr=False)
    size: int
    sha256: str


def read_document(body: IO[bytes], folder: str | None) -> MediaDocument:
    """Cut a body apart; `folder`: where the binary's file is, None: the system's own.

    Raises `Problem` for what is no base64 (422), has too many characters, or too much beside it (413); 503
    where there is no room for the file.
    """
    body.seek(0)
    file = GatheredBytes(folder, IN_MEMORY)
    try:
        return _Cut(body, file).run()
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            log.warning("media_not_decoded", cause=error.strerror)
            raise Unavailable("There is no room for the media now: try again shortly.") from None
        raise


class _Cut:
    """One pass over the body: outside of texts only braces, brackets and quotes matter."""

    def __init__(self, body: IO[bytes], file: GatheredBytes) -> None:
        self._body = body
        self._file = file
        self._held = b""
        self._at = 0
        self._rest = bytearray()
        self._size = 0
        self._digest = sha256()

    def run(self) -> MediaDocument:
        depth, name, found = 0, b"", False
        while True:
            match = _STRUCTURE.search(self._held, self._at)
            if match is None:
                self._keep(self._held[self._at :])
                if not self._more():
                    break
                continue
            self._keep(self._held[self._at : match.end()])
            between, self._at = self._rest[-64:], match.end()
            sign = match[0]
            if sign in b"{[":
                depth += 1
            elif sign in b"}]":
                depth -= 1
            elif depth == 1 and name == MEMBER.encode() and bytes(between).rstrip(b'"').rstrip(_SPACE).endswith(b":"):
                if found:
                    raise field_refused("VALIDATION_ERROR", f"/{MEMBER}", f"`{MEMBER}` stands in the body twice.")
                self._binary()
                self._keep(b'"')
                found, name = True, b""
            else:
                name = self._text()
        self._file.file.seek(0)
        return MediaDocument(bytes(self._rest), self._file.file, self._size, self._digest.hexdigest())

    def _keep(self, part: bytes) -> None:
        if len(self._rest) + len(part) > MOST_BESIDE:
            raise Problem(
                "BODY_TOO_LARGE",
                f"The body has more than {MOST_BESIDE:,} bytes beside `{MEMBER}`.",
                meta={"limitBytes": MOST_BESIDE},
            )
        self._rest += part

    def _more(self) -> bool:
        self._held, self._at = self._body.read(_PIECE), 0
        return bool(self._held)

    def _text(self) -> bytes:
        """Copy a text, with its closing quote, as far as there is room for it; answers what it says."""
        start = len(self._rest)
        for piece in self._pieces():
            self._keep(piece)
        said = bytes(self._rest[start:])
        self._keep(b'"')
        return said

    def _pieces(self) -> Iterator[bytes]:
        """The text up to its closing quote as it stands there, in pieces that cut no escape in two."""
        while True:
            start, end = self._at, _end_of_text(self._held, self._at)
            yield self._held[start:end]
            left, self._at = self._held[end : end + 1], end + 1
            if left == b'"' or not self._more():
                return
            self._held = left + self._held

    def _binary(self) -> None:
        """Decode the text in steps of four characters; white space counts nowhere."""
        characters, left = 0, b""
        for piece in self._pieces():
            if b"\\\\" in piece:
                raise _no_base64()
            for escape, meant in _ESCAPES:
                piece = piece.replace(escape, meant)
            plain = piece.translate(None, _SPACE)
            characters += len(plain)
            if characters > MOST_CHARACTERS:
                raise too_large(LARGEST, "any")
            left += plain
            whole = len(left) & ~3
            # What ends with `=` is the end: whatever follows it is refused.
            self._decode(left[:whole])
            left = left[whole:]
        if left:
            raise _no_base64()

    def _decode(self, characters: bytes) -> None:
        if not characters:
            return
        if self._ended:
            raise _no_base64()
        try:
            decoded = b64decode(characters, validate=True)
        except (NotBase64, ValueError):
            raise _no_base64() from None
        self._ended = characters.endswith(b"=")
        self._size += len(decoded)
        self._digest.update(decoded)
        self._file.write(decoded)

    _ended = False


def _end_of_text(held: bytes, at: int) -> int:
    found = _WITHIN_TEXT.match(held, at)
    assert found is not None  # noqa: S101 - it matches nothing too
    return found.end()


def _no_base64() -> Problem:
    return field_refused("VALIDATION_ERROR", f"/{MEMBER}", f"`{MEMBER}` is not base64.")
