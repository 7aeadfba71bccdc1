"""What a browser may show of media, and what it may only keep."""

import pytest

from recado.domain.media.media_types import KINDS
from recado.domain.media.showing import disposition, ending, is_inline, shown_type


@pytest.mark.parametrize(
    "mime_type",
    ["image/png", "IMAGE/JPG", "image/avif", "image/heic", "application/pdf", "audio/ogg; codecs=opus", "video/mp4"],
)
def test_pictures_sound_and_pdf_are_shown(mime_type: str) -> None:
    assert is_inline(mime_type)
    assert disposition(mime_type, "a.b", download=False).startswith("inline;")
    assert disposition(mime_type, "a.b", download=True).startswith("attachment;")


@pytest.mark.parametrize(
    "mime_type",
    ["text/html", "image/svg+xml", "application/xml", "audio/x+xml", "video/evil+XML", "text/plain", "", "image/tiff"],
)
def test_everything_else_is_octets_to_be_kept(mime_type: str) -> None:
    assert shown_type(mime_type) == "application/octet-stream"
    assert disposition(mime_type, "a.b", download=False).startswith("attachment;")


def test_a_name_breaks_out_of_no_header() -> None:
    header = disposition("image/png", 'a"b\r\nSet-Cookie: x;é%.png', download=False)
    assert header == "inline; filename=\"abSet-Cookie: x___.png\"; filename*=UTF-8''abSet-Cookie%3A%20x%3B%C3%A9%25.png"


@pytest.mark.parametrize(
    "said", ["audio/x\r\nSet-Cookie: a", "video/\x00", "audio/\ud800", "audio/é", "audio/", "audio/a b"]
)
def test_what_is_no_media_type_stands_in_no_header(said: str) -> None:
    assert shown_type(said) == "application/octet-stream"
    assert disposition(said, "name", download=False).startswith("attachment")


def test_whatever_can_be_sent_has_an_ending_of_its_own() -> None:
    assert "bin" not in {ending(mime_type) for mime_type in KINDS}
