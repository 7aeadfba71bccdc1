"""A binary in base64 within JSON, cut out piece by piece."""

import base64
import io
import json
import sys
import tracemalloc
from collections import Counter
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.domain.core.errors import Problem, Unavailable
from recado.services.media import media_document
from recado.services.media.media_document import MediaDocument, read_document


def read(body: bytes) -> MediaDocument:
    return read_document(io.BytesIO(body), None)


def refusal(body: bytes) -> str:
    with pytest.raises(Problem) as refused:
        read(body)
    return refused.value.code


@settings(max_examples=examples(200))
@given(st.binary(max_size=3_000), st.text(max_size=40), st.integers(1, 64), st.booleans(), st.sampled_from([0, 1, 2]))
def test_any_binary_comes_out_as_it_went_in(
    content: bytes, filename: str, piece: int, wrapped: bool, place: int
) -> None:
    text = (base64.encodebytes if wrapped else base64.b64encode)(content).decode()
    members = [("filename", filename), ("mimeType", 'a "dataBase64": "x')]
    members.insert(place, ("dataBase64", text))
    usual = media_document._PIECE
    media_document._PIECE = piece  # type: ignore[misc]
    try:
        document = read(json.dumps(dict(members)).encode())
    finally:
        media_document._PIECE = usual  # type: ignore[misc]
    assert document.file.read() == content
    assert (document.size, document.sha256) == (len(content), sha256(content).hexdigest())
    assert json.loads(document.rest) == {**dict(members), "dataBase64": ""}
    document.file.close()


@pytest.mark.parametrize(
    "text", ["a", "ab", "abc", "abcd=", "====", "ab==cdef", "ab=c", "ab-_", "é", "YWJj\\u0041", "YQ==YQ=="]
)
def test_what_is_no_base64_is_refused(text: str) -> None:
    assert refusal(f'{{"dataBase64": "{text}"}}'.encode()) == "VALIDATION_ERROR"


def test_the_member_counts_at_the_top_and_once() -> None:
    inside = read(b'{"x": {"dataBase64": "YQ=="}, "y": ["dataBase64", "YQ=="]}')
    inside.file.close()
    assert (inside.size, b"YQ==" in inside.rest) == (0, True)
    assert refusal(b'{"dataBase64": "YQ==", "dataBase64": "YQ=="}') == "VALIDATION_ERROR"


def test_nothing_else_may_be_large(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(b'{"filename": "' + b"x" * 70_000 + b'"}') == "BODY_TOO_LARGE"
    assert refusal(b" " * 70_000 + b"{}") == "BODY_TOO_LARGE"
    monkeypatch.setattr(media_document, "MOST_CHARACTERS", 8)
    document = read(b'{"dataBase64": "YWJj\\nYWJj"}')
    document.file.close()
    assert document.size == 6
    assert refusal(b'{"dataBase64": "YWJjYWJjYWJj"}') == "MEDIA_TOO_LARGE"


def test_a_text_that_is_too_large_is_refused_before_it_is_gathered() -> None:
    body = io.BytesIO(b'{"filename": "' + rb"\n" * 500_000 + b'"}')
    tracemalloc.start()
    try:
        with pytest.raises(Problem):
            read_document(body, None)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < len(body.getbuffer()) / 3


def test_escapes_are_not_read_one_by_one() -> None:
    steps = Counter[str]()
    body = io.BytesIO(b'{"dataBase64": "' + rb"\nYW\r\tJj" * 50_000 + b'"}')
    sys.setprofile(lambda frame, event, _: steps.update([event]))
    try:
        document = read_document(body, None)
    finally:
        sys.setprofile(None)
    document.file.close()
    assert document.size == 150_000
    assert steps.total() < 1_000


def test_a_full_disk_is_told_as_one_that_may_have_room_later() -> None:
    large = json.dumps({"dataBase64": "YWJj" * 100_000}).encode()
    with pytest.raises(Unavailable):
        read_document(io.BytesIO(large), "/dev/null")
