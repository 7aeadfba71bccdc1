"""Whom a call names: each identifier once, malformed ones apart (C7.2.2, C7.2.3)."""

import pytest
from tests.identifiers import read_identifiers

from recado.domain.audience.members import MAX_IDENTIFIERS
from recado.domain.core.errors import Problem

ID = "cnt_" + "0" * 21


def test_each_identifier_counts_once() -> None:
    found = read_identifiers([ID, ID], ["+55 11 8765-4321", "+5511987654321", "+5511987654321"], ["a", "A", "a"])
    assert found.contact_ids.keys == [ID]
    assert (found.phones.keys, found.phones.given) == (["+5511987654321"], ["+55 11 8765-4321"])
    assert found.external_ids.keys == ["a", "A"]
    assert len(found) == 4


def test_what_no_contact_can_have_is_malformed_once() -> None:
    found = read_identifiers(["cnt_1", "msg_" + "0" * 21, "cnt_1"], ["123", "x", "123"], ["", "x" * 256, "x" * 255])
    assert found.contact_ids.malformed == ["cnt_1", "msg_" + "0" * 21]
    assert found.phones.malformed == ["123", "x"]
    assert found.external_ids.malformed == ["", "x" * 256]
    assert (found.contact_ids.keys, found.phones.keys, found.external_ids.keys) == ([], [], ["x" * 255])
    assert len(found) == 7


def test_the_three_lists_together_hold_fifty_thousand() -> None:
    assert MAX_IDENTIFIERS == 50_000
    read_identifiers([ID] * 20_000, ["x"] * 20_000, ["y"] * 10_000)
    with pytest.raises(Problem) as caught:
        read_identifiers([ID] * 20_000, ["x"] * 20_000, ["y"] * 10_001)
    assert (caught.value.code, caught.value.status) == ("TOO_MANY_IDENTIFIERS", 422)
