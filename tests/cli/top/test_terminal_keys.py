"""Keys as terminals send them."""

import pytest

from recado.cli.top.terminal_keys import KeyReader


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ([b"p"], ["p"]),
        ([b"\x1b[A\x1bOBq"], ["up", "down", "q"]),
        ([b"\x1b"], ["escape"]),
        ([b"\x1b[", b"5~"], ["page_up"]),
        ([b"\x1bO", b"F"], ["end"]),
        ([b"\x1b[1;5C"], []),
        ([b"\r\n\x7f\b"], ["enter", "enter", "backspace", "backspace"]),
        (["é".encode()[:1], "é".encode()[1:]], ["é"]),
        ([b"\xffa"], ["a"]),
    ],
)
def test_keys_have_names(sent: list[bytes], keys: list[str]) -> None:
    reader = KeyReader()
    assert [key for piece in sent for key in reader.feed(piece)] == keys
