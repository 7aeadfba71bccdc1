"""Correlation metadata (C15.2)."""

from typing import Any

import pytest

from recado.domain.core.metadata import metadata_errors


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"order": "A-17", "total": 12.5, "count": 3, "paid": True, "z.y_x-1": ""},
        {f"k{index}": index for index in range(20)},
        {"k" * 64: "v" * 256},
        {"a": 1e249, "b": -1.5e-240, "c": 2**64 - 1},
    ],
)
def test_flat_small_values_pass(value: dict[str, Any]) -> None:
    assert metadata_errors(value) == []


@pytest.mark.parametrize(
    ("value", "path", "code"),
    [
        ([], "/metadata", "METADATA_INVALID"),
        (None, "/metadata", "METADATA_INVALID"),
        ({f"k{index}": index for index in range(21)}, "/metadata", "METADATA_INVALID"),
        ({"1st": 1}, "/metadata", "METADATA_INVALID"),
        ({"": 1}, "/metadata", "METADATA_INVALID"),
        ({"a/b": 1}, "/metadata", "METADATA_INVALID"),
        ({"ação": 1}, "/metadata", "METADATA_INVALID"),
        ({"a\n": 1}, "/metadata", "METADATA_INVALID"),
        ({"k" * 65: 1}, "/metadata", "METADATA_INVALID"),
        ({"a": "v" * 257}, "/metadata/a", "METADATA_INVALID"),
        ({"a": None}, "/metadata/a", "METADATA_INVALID"),
        ({"a": {}}, "/metadata/a", "METADATA_INVALID"),
        ({"a": ["x"]}, "/metadata/a", "METADATA_INVALID"),
        ({"a": "x\0y"}, "/metadata/a", "INVALID_CHARACTER"),
    ],
)
def test_each_fault_is_named_by_its_place(value: Any, path: str, code: str) -> None:
    errors = metadata_errors(value)
    assert [(error.path, error.code) for error in errors] == [(path, code)]


def test_faults_never_repeat_what_a_bad_key_or_value_says() -> None:
    secret = "+5511987651234"
    errors = metadata_errors({secret: 1, "a": [secret], "b": secret * 40}, "/properties")
    assert len(errors) == 3
    assert all(secret not in error.path + error.message for error in errors)
