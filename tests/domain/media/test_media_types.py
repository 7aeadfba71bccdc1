"""What binaries are by their bytes, whatever anybody says of them."""

import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.media_files import HTML, JPEG, PDF, PNG, SVG, iso, office, ogg, webp

from recado.domain.channels.social import MEDIA_LIMITS
from recado.domain.core.errors import Problem
from recado.domain.media.media_types import (
    DOCX,
    MIB,
    PPTX,
    XLSX,
    Seen,
    form_of,
    look,
    normalized,
    safe_filename,
    type_of,
)


def seen(content: bytes) -> Seen:
    file = io.BytesIO(content)

    def read(at: int, length: int) -> bytes:
        file.seek(at)
        return file.read(length)

    return look(read, len(content))


KNOWN = [
    (PNG, "image/png"),
    (JPEG, "image/jpeg"),
    (PDF, "application/pdf"),
    (webp(), "image/webp"),
    (ogg(), "audio/ogg"),
    (b"#!AMR\n\x3c", "audio/amr"),
    (b"ID3\x04\x00\x00", "audio/mpeg"),
    (b"\xff\xfb\x90\x64", "audio/mpeg"),
    (b"\xff\xf1\x50\x80", "audio/aac"),
    (iso(b"M4A "), "audio/mp4"),
    (iso(b"isom"), "video/mp4"),
    (iso(b"3gp4"), "video/3gpp"),
    (office("word"), DOCX),
    (office("xl"), XLSX),
    (office("ppt"), PPTX),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "application/msword"),
    ("Bom dia, João\n".encode(), "text/plain"),
    ("Bom dia, João\n".encode("latin-1"), "text/plain"),
]


@pytest.mark.parametrize(("content", "mime_type"), KNOWN, ids=[each[1] for each in KNOWN])
def test_a_type_is_read_from_the_bytes(content: bytes, mime_type: str) -> None:
    assert seen(content).types[0] == mime_type
    assert form_of(mime_type, seen(content), len(content)).mime_type == mime_type


@pytest.mark.parametrize(
    "content",
    [
        HTML,
        SVG,
        b"\n\t <HTML><body>",
        b"GIF89a" + bytes(20),
        b"PK\x03\x04" + bytes(40),
        office("macros"),
        office()[:-30],
        iso(b"isom", length=5_000),
        iso(b"isom", length=8),
        iso(b"qt  "),
        ogg(packet=b"\x01vorbis"),
        b"OggS",
        b"\x89PNG\r\n\x1a\n",
        b"\x00\x01\x02",
        b"MZ\x90\x00" + bytes(20),
        b"\xff",
    ],
)
@pytest.mark.parametrize("declared", ["image/png", "text/plain", DOCX, "audio/ogg", "video/mp4"])
def test_what_is_of_no_type_that_can_be_sent_is_refused_as_whatever_it_is_declared(
    content: bytes, declared: str
) -> None:
    with pytest.raises(Problem) as refused:
        form_of(declared, seen(content), len(content))
    assert refused.value.code == "MEDIA_TYPE_NOT_ALLOWED"


def test_another_kind_than_the_declared_one_is_a_mismatch_and_the_same_kind_is_corrected() -> None:
    with pytest.raises(Problem) as refused:
        form_of("image/png", seen(PDF), len(PDF))
    assert refused.value.code == "MEDIA_TYPE_MISMATCH"
    assert form_of("image/png", seen(JPEG), len(JPEG)).mime_type == "image/jpeg"
    with pytest.raises(Problem) as refused:
        form_of("image/gif", seen(PNG), len(PNG))
    assert refused.value.code == "MEDIA_TYPE_NOT_ALLOWED"


def test_a_polyglot_is_what_it_begins_with() -> None:
    both = PDF + b"<script>alert(1)</script>" + office()
    assert seen(both).types == ("application/pdf",)
    assert seen(JPEG + HTML).types == ("image/jpeg",)


def test_a_voice_note_is_opus_of_one_channel() -> None:
    assert (seen(ogg(1)).voice, seen(ogg(2)).voice, seen(ogg(1, b"OpusTags")).voice) == (True, False, False)


@pytest.mark.parametrize(
    ("content", "declared", "limit"),
    [
        (PNG, "image/png", 5 * MIB),
        (ogg(), "audio/ogg", 16 * MIB),
        (PDF, "application/pdf", 100 * MIB),
        (webp(), "image/webp", 100 * 1024),
        (webp(animated=True), "image/webp", 500 * 1024),
    ],
)
def test_each_kind_has_a_limit(content: bytes, declared: str, limit: int) -> None:
    assert form_of(declared, seen(content), limit).limit == limit
    with pytest.raises(Problem) as refused:
        form_of(declared, seen(content), limit + 1)
    assert (refused.value.code, refused.value.meta["limitBytes"]) == ("MEDIA_TOO_LARGE", limit)


@pytest.mark.parametrize(
    ("content", "declared", "limit"),
    [(PNG, "image/png", 8 * MIB), (ogg(), "audio/ogg", 16 * MIB), (iso(b"isom"), "video/mp4", 25 * MIB)],
)
def test_social_takes_larger_pictures_and_films(content: bytes, declared: str, limit: int) -> None:
    assert form_of(declared, seen(content), limit, MEDIA_LIMITS).limit == limit
    with pytest.raises(Problem) as refused:
        form_of(declared, seen(content), limit + 1, MEDIA_LIMITS)
    assert (refused.value.code, refused.value.meta["limitBytes"]) == ("MEDIA_TOO_LARGE", limit)


@pytest.mark.parametrize(("content", "declared"), [(PDF, "application/pdf"), (webp(), "image/webp")])
def test_social_takes_no_documents_and_no_stickers(content: bytes, declared: str) -> None:
    with pytest.raises(Problem) as refused:
        form_of(declared, seen(content), len(content), MEDIA_LIMITS)
    assert refused.value.code == "MEDIA_TYPE_NOT_ALLOWED"
    assert refused.value.detail == "Only image, audio and video are taken here."


def test_of_a_bomb_only_names_are_read() -> None:
    bomb = office(**{"word/bomb.xml": bytes(64 * MIB)})
    read: list[int] = []

    def reading(at: int, length: int) -> bytes:
        read.append(length)
        return bomb[at : at + length]

    assert look(reading, len(bomb)).types == (DOCX,)
    assert max(read) <= MIB


def test_a_directory_that_lies_about_its_size_or_place_names_nothing() -> None:
    document = office()
    end = document.rfind(b"PK\x05\x06")
    for length, start in ((2**32 - 1, 0), (10, 2**32 - 1), (2 * MIB, 0), (0, 0)):
        lying = document[: end + 12] + struct.pack("<II", length, start) + document[end + 20 :]
        assert seen(lying).types == ("application/zip",)


@settings(max_examples=examples(300))
@given(st.binary(max_size=400))
def test_any_bytes_are_looked_at_without_an_error(content: bytes) -> None:
    seen(content)
    seen(b"PK\x03\x04" + content)
    seen(b"OggS\x00" + content)
    seen(b"\x00\x00\x00\x14ftyp" + content)


@pytest.mark.parametrize(
    ("declared", "content", "found"),
    [
        ("image/png", HTML, "text/html"),
        ("audio/ogg; codecs=opus", ogg(), "audio/ogg"),
        ("audio/ogg", ogg(packet=b"\x01vorbis"), "audio/ogg"),
        ("image/png", ogg(packet=b"\x01vorbis"), "application/ogg"),
        ("image/svg+xml", SVG, "image/svg+xml"),
        ("text/csv", b"a,b\n", "text/csv"),
        ("text/html", b"plain", "text/plain"),
        ("application/x-thing", b"\x00\x01", "application/x-thing"),
        ("", b"\x00\x01", "application/octet-stream"),
    ],
)
def test_what_came_is_of_the_type_that_its_bytes_say_else_of_the_declared_one(
    declared: str, content: bytes, found: str
) -> None:
    assert type_of(declared, seen(content)) == found


@pytest.mark.parametrize(
    ("given_type", "usual"),
    [
        ("Image/JPG", "image/jpeg"),
        ("audio/ogg; codecs=opus", "audio/ogg"),
        ("audio/x-m4a", "audio/mp4"),
        ("audio/wave", "audio/wav"),
        ("application/x-pdf", "application/pdf"),
        ("video/x-m4v", "video/mp4"),
    ],
)
def test_types_have_one_name(given_type: str, usual: str) -> None:
    assert normalized(given_type) == usual


def test_a_filename_keeps_no_path_and_no_control_character() -> None:
    assert safe_filename("../../etc/pass\x00wd\r\n.txt") == "etcpasswd.txt"
    assert safe_filename("relatório.pdf") == "relatório.pdf"
    assert safe_filename("a" * 300) == "a" * 240
    assert safe_filename("../..") == ""
