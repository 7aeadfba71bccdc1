"""Base64 of addresses and tokens: there and back, refused where it is none, and written once."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.base64url import base64url, from_base64url

SOURCE = Path(__file__).parents[3] / "src" / "recado"


@given(st.binary())
def test_bytes_come_back_and_their_text_needs_no_escape(data: bytes) -> None:
    text = base64url(data)
    assert from_base64url(text) == data
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.parametrize("text", ["a", "ab cd", "é", "a=bc", "a.bc"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        from_base64url(text)


def test_nobody_else_writes_it() -> None:
    found = {str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if "urlsafe_b64" in file.read_text("utf-8")}
    assert found == {"domain/core/base64url.py"}
