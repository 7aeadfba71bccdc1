"""Requests and answers as the OpenAPI document shows them, of the operations that a newcomer calls first.

For other operations there is a request alone, where one made of the schema would be refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One call. `request`: the body; `response`: the body of its success; None for what is made of the schema.

    `requests`: by channel, of an operation whose body is another one for each, besides that of chat-app.
    """

    request: Any = None
    response: Any = None
    requests: Mapping[str, Any] = field(default_factory=dict)


def examples() -> Mapping[str, Example]:
    """Return the examples by operation."""
    found = orjson.loads(files("recado.http.openapi").joinpath("examples.json").read_bytes())
    return {operation_id: Example(**example) for operation_id, example in found.items()}
