"""Tokens: their form, and what gives them away as wrong (C3.1)."""

import hashlib
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.ids import BASE62
from recado.domain.core.tokens import is_session, mint_token, token_env, token_hash, token_prefix

randomness = st.binary(min_size=32, max_size=32)
prefixes = st.sampled_from(["svc_live_", "svc_test_", "svcs_live_", "svcs_test_"])


@given(prefixes, randomness)
def test_a_minted_token_has_its_form_and_its_environment(prefix: str, random_bytes: bytes) -> None:
    token = mint_token(prefix, lambda size: random_bytes[:size])
    assert re.fullmatch(prefix + "[0-9A-Za-z]{43}", token)
    assert token_env(token) == prefix.split("_")[1]
    assert is_session(token) == prefix.startswith("svcs")
    checksum = 0
    for character in token[-6:]:
        checksum = checksum * 62 + BASE62.index(character)
    assert checksum == zlib.crc32(token[:-6].encode())


def test_256_random_bits_are_asked_for() -> None:
    asked: list[int] = []

    def count(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    mint_token("svc_live_", count)
    assert asked == [32]


@given(prefixes, randomness, st.data())
def test_a_token_with_a_wrong_character_is_no_token(prefix: str, random_bytes: bytes, data: st.DataObject) -> None:
    token = mint_token(prefix, lambda _: random_bytes)
    index = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters().filter(lambda character: character != token[index]))
    assert token_env(token[:index] + other + token[index + 1 :]) is None


@pytest.mark.parametrize("text", ["", "svc_live_", "x" * 43, "svc_prod_" + "0" * 43, "svc_live_" + "\udcff" * 43])
def test_other_texts_are_no_tokens(text: str) -> None:
    assert token_env(text) is None


@given(randomness, st.text(BASE62, min_size=1, max_size=3))
def test_a_longer_token_is_no_token(random_bytes: bytes, more: str) -> None:
    assert token_env(mint_token("svc_live_", lambda _: random_bytes) + more) is None


def test_a_token_is_stored_as_its_hash_and_shown_by_its_head() -> None:
    token = mint_token("svc_test_", lambda size: b"\1" * size)
    assert token_hash(token) == hashlib.sha256(token.encode()).digest()
    assert token_prefix(token) == token[:13]
    assert token_prefix(token).startswith("svc_test_")


def test_a_header_with_broken_bytes_has_a_hash_too() -> None:
    assert token_hash("svc_live_\udcff") != token_hash("svc_live_")
