"""The models of all bodies: worker processes find each of them, and none builds a long list of errors."""

import importlib
from typing import Any

import orjson
import pytest
from pydantic import ValidationError
from tests.acceptance.served import Served

from recado.http.bodies.body_reading import name_of

MANY = 1_000
MOST_ERRORS = 200
NESTED: dict[str, Any] = {"templateVars": [0] * 60, "phones": [0] * 20, "children": [0] * 20, "text": 0}
LONG: list[Any] = [
    [0] * MANY,
    [{}] * MANY,
    [NESTED] * 300,
    ["x"] * MANY,
    {f"key{n}": 0 for n in range(MANY)},
]


def test_each_model_is_found_by_its_name(served: Served) -> None:
    for model in {route.body for route in served.routes if route.body is not None}:
        module, _, name = name_of(model).partition(":")
        assert getattr(importlib.import_module(module), name) is model


@pytest.mark.parametrize("value", LONG, ids=["numbers", "objects", "nested", "texts", "members"])
def test_no_field_collects_an_error_for_each_of_thousands_of_items(served: Served, value: Any) -> None:
    found = {}
    content = orjson.dumps(value).decode()
    for model in {route.body for route in served.routes if route.body is not None}:
        for name, info in model.model_fields.items():
            try:
                model.model_validate_json(f'{{"{info.alias or name}": {content}}}')
            except ValidationError as error:
                found[f"{model.__name__}.{name}"] = error.error_count()
    assert found
    assert {name: count for name, count in found.items() if count > MOST_ERRORS} == {}
