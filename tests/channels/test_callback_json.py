"""The JSON of callbacks, and halves of characters in it (C29.5)."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.core.callback_json import callback_json
from recado.channels.core.errors import MalformedCallback


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\uD83D", "\ufffd"),
        (rb"\ude00", "\ufffd"),
        (rb"\ude00\ud83d", "\ufffd\ufffd"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\ud83d\u00e1", "\ufffd\u00e1"),
        (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (rb"\\\ud83d", "\\\ufffd"),
        (rb"\" \n \ud83d", '" \n \ufffd'),
        (rb"\ud83d9", "\ufffd9"),
    ],
)
def test_half_a_character_is_replaced_and_nothing_else(written: bytes, read: str) -> None:
    assert callback_json(b'{"a": "' + written + b'", "b": 1}') == {"a": read, "b": 1}


@pytest.mark.parametrize("body", [b"", b"{", rb'{"a": "\ud8"}', rb'{"a": "\ud83d"', rb"\ud83d", b"\xff", b'{"a": "\\'])
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedCallback, match="body"):
        callback_json(body)


@given(st.recursive(st.none() | st.text(st.characters(exclude_categories=())), st.lists))
def test_whatever_texts_a_body_holds_it_is_read_and_can_be_stored(document: object) -> None:
    read = callback_json(json.dumps(document).encode())
    assert callback_json(orjson.dumps(read)) == read
    assert json.dumps(read).count("ufffd") >= json.dumps(document).count("ufffd")
