"""What routes promise of their answers, for tests to hold every answer to it."""

from functools import cache
from typing import Any

import jsonschema
from pydantic import BaseModel

from recado.http.operation import statuses
from recado.http.route import Route
from recado.http.router import Router


class Contract:
    """What the routes promise: every answer of a test has a status and a body that its route declares."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._router = Router((route.method, route.path, route) for route in routes)

    def check(self, method: str, target: str, status: int, body: Any) -> None:
        found = self._router.find(target.partition("?")[0])
        route = found[0].get(method) if found else None
        if route is None:
            return
        promised = {*route.responses, *statuses(route), *([304] if route.versioned and method == "GET" else [])}
        assert status in promised, f"{method} {route.path} does not declare {status}: {body}"
        model = route.responses.get(status)
        if model is not None:
            jsonschema.validate(body, _schema(model))


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True, mode="serialization")
