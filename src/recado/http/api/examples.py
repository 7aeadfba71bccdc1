"""A request and its answer for the operations that a newcomer calls first, as the OpenAPI document shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One call. `request`: the body, None for a call without one; `response`: the body of its success."""

    request: Any = None
    response: Any


def examples() -> Mapping[str, Example]:
    """Return the examples by operation."""
    found = orjson.loads(files("recado.http").joinpath("examples.json").read_bytes())
    return {operation_id: Example(**example) for operation_id, example in found.items()}
