"""An e-mail as it travels: from its content to bytes (RFC 5322, MIME; C10.2.10). Pure.

A field becomes part of one header, whatever it holds: none can begin another one.
"""

import binascii
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from email.header import Header as EncodedWords
from email.utils import format_datetime
from typing import Final

from recado.domain.core.mail_domains import ascii_domain
from recado.domain.email.content import EmailContent
from recado.domain.email.dkim import DkimKey, Header
from recado.domain.email.plain_text import text_of_html
from recado.domain.email.template_text import TextSource

LONGEST_LINE: Final = 998  # octets, of any line (RFC 5322)
_LINE: Final = 76  # octets, of encoded lines and of headers that can be folded
_LINES: Final = struct.Struct(f"{_LINE}s" * 64)
_LONGEST_LOCAL: Final = 64  # octets
_LONGEST_ADDRESS: Final = 254  # octets
_LONG: Final = 4 * 1024  # octets
_LONGER_BY_BASE64: Final = 1.25
"""Base64 takes half the time of quoted-printable: of a long text it may be a quarter longer (decision 0071)."""
_QUOTED, _BASE64 = 1 + 3 / 73, 4 / 3 * 78 / 76
"""What becomes of an octet that needs no quoting, with the line ends that are put in; of one that does, two more."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-\u0080-\U0010ffff]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")
_PRINTED = bytes([*range(0x20, 0x7F), *b"\t\r\n"])
_PLAIN_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+/?^_`{|}~\- ]+")
_HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,75}")
_OURS = frozenset(
    {
        "from", "to", "cc", "bcc", "sender", "reply-to", "return-path", "subject", "date", "message-id", "mime-version",
        "content-type", "content-transfer-encoding", "content-disposition", "feedback-id", "dkim-signature", "received",
    }
)  # fmt: skip


class UnsendableEmail(ValueError):
    """It cannot be made. `field`: by which field of it; the text says nothing of its value."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class WireAddress:
    """An address as it is told to a server: its domain is in ASCII. `utf8`: its local part is not (RFC 6531)."""

    text: str = field(repr=False)
    utf8: bool

    @property
    def domain(self) -> str:
        return self.text.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose e-mail it is, and when it leaves: what its headers say of it besides its content."""

    message_id: str
    organization_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class EmailOnWire:
    """Whom it is from and for, and its bytes, with CRLF for line ends. `utf8`: only a server with SMTPUTF8 takes it."""

    sender: str = field(repr=False)
    recipient: str = field(repr=False)
    data: bytes = field(repr=False)
    utf8: bool = False


def wire_address(address: str, name: str) -> WireAddress:
    """Raises `UnsendableEmail` of the field `name` for what no server could be told."""
    local, at, domain = address.rpartition("@")
    if not at or not _LOCAL.fullmatch(local) or _CONTROL.search(local) or not _is_text(local):
        raise UnsendableEmail(name, "it is no address")
    try:
        domain = ascii_domain(domain)
    except ValueError:
        raise UnsendableEmail(name, "its domain is none") from None
    if not _DOMAIN.fullmatch(domain):
        raise UnsendableEmail(name, "its domain is none")
    text = f"{local}@{domain}"
    if len(local.encode()) > _LONGEST_LOCAL or len(text.encode()) > _LONGEST_ADDRESS:
        raise UnsendableEmail(name, "it is too long")
    return WireAddress(text, not local.isascii())


def compose(content: EmailContent, to: str, origin: Origin, key: DkimKey | None = None) -> EmailOnWire:
    """One e-mail to one recipient; raises `UnsendableEmail`."""
    sender, recipient = wire_address(content.from_address, "from"), wire_address(to, "to")
    purpose = "transactional" if content.transactional else "marketing"
    kind, body = _body(content, origin.message_id)
    headers: list[Header] = [
        ("From", _mailbox("From", content.from_name, sender)),
        ("To", _mailbox("To", None, recipient)),
        ("Subject", _text("Subject", content.subject)),
        ("Date", format_datetime(origin.at).encode()),
        ("Message-ID", _token(f"<{origin.message_id}@{sender.domain}>")),
        ("Feedback-ID", _token(f"{purpose}:{sender.domain}:{origin.organization_id}:recado")),
        *_further(content.headers),
        ("MIME-Version", b"1.0"),
        *kind,
    ]
    if key is not None:
        headers.insert(0, key.sign(headers, body, origin.at))
    data = b"".join([*(name.encode() + b": " + value + b"\r\n" for name, value in headers), b"\r\n", body])
    return EmailOnWire(sender.text, recipient.text, data, sender.utf8 or recipient.utf8)


# Headers --------------------------------------------------------------------------------------------------------------


def _further(headers: Iterable[tuple[str, str]]) -> Iterable[Header]:
    """Those that the content has besides. What they hold is ours: a line end in it is a fault, and hides none."""
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _OURS:
            raise UnsendableEmail("headers", "a header has a name that it cannot have")
        if _CONTROL.search(value) or not value.strip():
            raise UnsendableEmail("headers", "a header has a value that it cannot have")
        yield name, _text(name, value)


def _text(name: str, text: str) -> bytes:
    """A text of any length and characters; line ends and other control characters in it become spaces."""
    text = _CONTROL.sub(" ", text)
    if text.isascii() and "=?" not in text and text == text.strip():
        if len(name) + 2 + len(text) <= _LINE:
            return text.encode()
        if name != "Subject" and len(name) + 2 + len(text) <= LONGEST_LINE:
            return text.encode()  # an address in brackets, which nobody reads over a fold
    return _encoded(name, text)


def _encoded(name: str, text: str) -> bytes:
    """As encoded words, none longer than it may be (RFC 2047)."""
    text = text.encode(errors="replace").decode()
    return EncodedWords(text, "utf-8", _LINE, name).encode(linesep="\r\n").encode()


def _mailbox(name: str, shown: str | None, address: WireAddress) -> bytes:
    at = f"<{address.text}>".encode()
    shown = _CONTROL.sub(" ", shown or "").strip()
    if not shown:
        return at[1:-1]
    if _PLAIN_NAME.fullmatch(shown) and "=?" not in shown:
        told = shown.encode()
    elif shown.isascii() and "=?" not in shown:
        told = b'"' + shown.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    else:
        told = _encoded(name, shown)
    last = len(told) - (told.rfind(b"\n") + 1) + (len(name) + 2 if b"\n" not in told else 0)
    return told + (b" " if last + 1 + len(at) <= _LINE else b"\r\n ") + at


def _token(text: str) -> bytes:
    """What we make ourselves, of ids."""
    if _CONTROL.search(text) or " " in text or not text.isascii():
        raise UnsendableEmail("id", "an id holds what no id holds")
    return text.encode()


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Body -----------------------------------------------------------------------------------------------------------------


def _body(content: EmailContent, message_id: str) -> tuple[list[Header], bytes]:
    """The headers that say what the body is, and the body: the text, the HTML, or both, the better one last."""
    text = content.text
    if text is None:
        text = _made_text(content.html or "", content.text_source)
    parts = [("plain", text)] if text or content.html is None else []
    if content.html is not None:
        parts.append(("html", content.html))
    encoded = [_part(kind, text) for kind, text in parts]
    if len(encoded) == 1:
        return encoded[0]
    # No encoded line can hold it: `=_` is neither quoted-printable nor base64, and a line of 7bit text is looked at.
    boundary = f"=_{message_id}".encode()
    while any(boundary in body for (_, (_, encoding)), body in encoded if encoding == b"7bit"):
        boundary += b"_"
    pieces: list[bytes] = []
    for headers, body in encoded:
        pieces += [b"--", boundary, b"\r\n", *(n.encode() + b": " + v + b"\r\n" for n, v in headers), b"\r\n", body]
        pieces.append(b"\r\n")  # it is the boundary's: the body keeps its own
    pieces += [b"--", boundary, b"--\r\n"]
    kind = b'multipart/alternative; boundary="' + boundary + b'"'
    return [("Content-Type", kind)], b"".join(pieces)


def _made_text(html: str, source: TextSource | None) -> str:
    """The text of the HTML; where it is a template's, mostly without reading it."""
    found = None if source is None else source.text(html)
    return text_of_html(html) if found is None else found


def _part(kind: str, text: str) -> tuple[list[Header], bytes]:
    encoding, body = _encoded_text(text)
    return [
        ("Content-Type", f"text/{kind}; charset=utf-8".encode()),
        ("Content-Transfer-Encoding", encoding),
    ], body


def _encoded_text(text: str) -> tuple[bytes, bytes]:
    """The encoding, and the text in it, with CRLF for every line end."""
    data = _utf8(text)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data.endswith(b"\n"):
        data += b"\n"
    beyond = _beyond(text, data)
    if not beyond and max(map(len, data.split(b"\n"))) <= LONGEST_LINE:
        return b"7bit", data.replace(b"\n", b"\r\n")
    data = data.replace(b"\n", b"\r\n")
    longer = _LONGER_BY_BASE64 if len(data) >= _LONG and not text.isascii() else 1
    most = len(data) * _BASE64 / longer  # octets that it would have to have as quoted-printable
    quoted = len(data) * _QUOTED + 2 * beyond
    if quoted > most or quoted + 2 * data.count(b"=") > most:
        return b"base64", _in_lines(binascii.b2a_base64(data, newline=False))
    return b"quoted-printable", binascii.b2a_qp(data, istext=True)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()  # which takes a third of the time
    except UnicodeEncodeError:
        return text.encode(errors="replace")


def _in_lines(encoded: bytes) -> bytes:
    """Cut by a call for many lines: a slice for each would take as long as the encoding."""
    many = len(encoded) - len(encoded) % _LINES.size
    lines: list[bytes] = []
    for cut in _LINES.iter_unpack(memoryview(encoded)[:many]):
        lines += cut
    lines += [encoded[at : at + _LINE] for at in range(many, len(encoded), _LINE)]
    lines.append(b"")
    return b"\r\n".join(lines)


def _beyond(text: str, data: bytes) -> int:
    """About how many octets are no printable ASCII; 0 where none is."""
    if text.isascii():
        return len(data.translate(None, _PRINTED))
    return max(1, 2 * (len(data) - len(text)))  # each character beyond ASCII has one octet that it would have anyway
