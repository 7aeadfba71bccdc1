"""Cursors are opaque, signed and bound to their list (C5.4)."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.errors import Problem
from recado.domain.core.page import CursorSigner, cursor_scope

KEY = b"k" * 32
SCOPE = cursor_scope("org_1", "live", "listMessages", {"status": "sent"})


def refusal(signer: CursorSigner, text: str, scope: bytes = SCOPE) -> tuple[int, str]:
    with pytest.raises(Problem) as caught:
        signer.decode(text, scope)
    return caught.value.status, caught.value.code


@given(st.lists(st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=3))
def test_a_cursor_gives_back_its_order_key(k: list[Any]) -> None:
    signer = CursorSigner(KEY)
    assert signer.decode(signer.encode(k, SCOPE), SCOPE) == k


def test_a_cursor_has_the_published_form() -> None:
    payload_text, _, signature_text = CursorSigner(KEY).encode(["msg_1"], SCOPE).partition(".")
    payload = base64.urlsafe_b64decode(payload_text + "==")
    assert json.loads(payload) == {"v": 1, "k": ["msg_1"], "s": SCOPE.hex()}
    signature = base64.urlsafe_b64decode(signature_text + "==")
    assert signature == hmac.new(KEY, payload, hashlib.sha256).digest()[:16]


@given(st.text(max_size=80))
def test_foreign_text_is_refused(text: str) -> None:
    assert refusal(CursorSigner(KEY), text) == (400, "INVALID_CURSOR")


@given(st.data())
def test_a_cursor_changed_in_one_character_is_refused(data: st.DataObject) -> None:
    signer = CursorSigner(KEY)
    text = signer.encode(["msg_1"], SCOPE)
    index = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda character: character != text[index]))
    assert refusal(signer, text[:index] + other + text[index + 1 :]) == (400, "INVALID_CURSOR")


def test_padding_makes_no_second_spelling() -> None:
    signer = CursorSigner(KEY)
    assert refusal(signer, signer.encode(["msg_1"], SCOPE) + "==") == (400, "INVALID_CURSOR")


def test_a_cursor_of_another_key_is_refused() -> None:
    assert refusal(CursorSigner(KEY), CursorSigner(b"x" * 32).encode(["msg_1"], SCOPE)) == (400, "INVALID_CURSOR")


@pytest.mark.parametrize(
    "other",
    [
        cursor_scope("org_2", "live", "listMessages", {"status": "sent"}),
        cursor_scope("org_1", "test", "listMessages", {"status": "sent"}),
        cursor_scope("org_1", "live", "listNumbers", {"status": "sent"}),
        cursor_scope("org_1", "live", "listMessages", {"status": "read"}),
        cursor_scope("org_1", "live", "listMessages", {"status": "sent", "type": "text"}),
        cursor_scope("org_1", "live", "listMessages", {}),
    ],
)
def test_a_cursor_is_refused_in_another_list(other: bytes) -> None:
    signer = CursorSigner(KEY)
    assert refusal(signer, signer.encode(["msg_1"], SCOPE), other) == (400, "INVALID_CURSOR")


def test_the_page_size_the_cursor_itself_and_absent_filters_do_not_change_the_list() -> None:
    same = cursor_scope(
        "org_1", "live", "listMessages", {"limit": 10, "cursor": "x", "campaignId": None, "status": "sent"}
    )
    assert same == SCOPE
    assert len(SCOPE) == 8


def test_the_order_of_filters_does_not_change_the_list() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert cursor_scope("o", "live", "x", {"a": at, "b": {"q", "p"}}) == cursor_scope(
        "o", "live", "x", {"b": {"p", "q"}, "a": at}
    )
