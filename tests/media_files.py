"""Small binaries of each type, as their programs write the beginning of them."""

import io
import zipfile
from typing import Final

PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)
JPEG: Final = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xd9"
PDF: Final = b"%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
HTML: Final = b"<!doctype html><script>alert(1)</script>"
SVG: Final = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'


def ogg(channels: int = 1, packet: bytes = b"OpusHead") -> bytes:
    """The first page of an OGG."""
    head = packet + b"\x01" + bytes([channels]) + b"\x38\x01\x80\xbb\x00\x00\x00\x00\x00"
    return b"OggS\x00\x02" + bytes(20) + b"\x01" + bytes([len(head)]) + head


def iso(brand: bytes, length: int = 20) -> bytes:
    """An ISO container: MP4, M4A, 3GP and others."""
    return length.to_bytes(4, "big") + b"ftyp" + brand + b"\x00\x00\x02\x00" + b"isom" + bytes(64)


def webp(*, animated: bool = False) -> bytes:
    return b"RIFF\x24\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00" + bytes([0x02 if animated else 0x00]) + bytes(32)


def office(folder: str = "word", **more: bytes) -> bytes:
    """A document of Office; `more`: members beside those that each has."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as document:
        document.writestr("[Content_Types].xml", "<Types/>")
        document.writestr(f"{folder}/document.xml", "<document/>")
        for name, content in more.items():
            document.writestr(name, content)
    return file.getvalue()
