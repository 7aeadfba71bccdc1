"""What routes promise of their answers, for tests to hold every answer to it."""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import BaseModel

from recado.http.api.route import Route
from recado.http.api.router import Router
from recado.http.openapi.problem_codes import problem_codes


class Contract:
    """What the routes promise: every answer of a test has a status and a body that its route declares."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._routes = routes
        self._router = _router(tuple((route.method, route.path) for route in routes))

    def check(self, method: str, target: str, status: int, body: Any) -> None:
        found = self._router.find(target.partition("?")[0])
        place = found[0].get(method) if found else None
        if place is None:
            return
        route = self._routes[place]
        problems = problem_codes(route)
        promised = {*route.responses, *problems, *([304] if route.versioned and method == "GET" else [])}
        assert status in promised, f"{method} {route.path} does not declare {status}: {body}"
        if status in problems and body is not None:
            assert body["code"] in problems[status], f"{method} {route.path} does not declare this code: {body}"
        model = route.responses.get(status)
        if model is not None:
            _validator(model).validate(body)


@cache
def _router(operations: tuple[tuple[str, str], ...]) -> Router[int]:
    """Where each operation stands among them: each test has routes of its own, of the same methods and paths."""
    return Router((method, path, place) for place, (method, path) in enumerate(operations))


@cache
def _validator(model: type[BaseModel]) -> Draft202012Validator:
    """Made once: to check the schema itself takes a hundred times as long as to check an answer by it."""
    schema = model.model_json_schema(by_alias=True, mode="serialization")
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
