"""Reading answers from a connection that stays open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.loadtest.connection import parse_answer

ANSWER = b'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"id":"m1"}'


def test_an_answer_is_status_and_body() -> None:
    assert parse_answer(ANSWER) == (201, b'{"id":"m1"}', True, 0)


@given(length=st.integers(0, len(ANSWER) - 1))
def test_an_incomplete_answer_waits_for_the_rest(length: int) -> None:
    assert parse_answer(ANSWER[:length]) is None


def test_bytes_beyond_the_answer_are_counted() -> None:
    assert parse_answer(ANSWER + b"more") == (201, b'{"id":"m1"}', True, 4)


@pytest.mark.parametrize("name", [b"content-length", b"CONTENT-LENGTH", b"Content-length"])
def test_the_length_is_found_in_any_case(name: bytes) -> None:
    assert parse_answer(b"HTTP/1.1 200 OK\r\n" + name + b": 2\r\nX: y\r\n\r\nok") == (200, b"ok", True, 0)


def test_a_server_that_closes_is_believed() -> None:
    answer = parse_answer(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    assert answer == (503, b"", False, 0)


def test_an_answer_of_unknown_length_ends_the_connection() -> None:
    assert parse_answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n") == (200, b"", False, 3)
    assert parse_answer(b"HTTP/1.1 204 No Content\r\n\r\n") == (204, b"", True, 0)
