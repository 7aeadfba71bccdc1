"""The OpenAPI 3.1 document, made from the table of routes: what it says is what the dispatcher does."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from recado.http.openapi_parts import HEADERS, PROBLEM_SCHEMA, SECURITY_SCHEMES, header_names, problem_responses
from recado.http.operation import statuses
from recado.http.route import Access, Idempotency, Route

VERSION = "3.1.1"

_REF = "#/components/schemas/"
_SECURITY: Mapping[Access, list[dict[str, list[str]]]] = {
    Access.KEY: [{"bearer": []}],
    Access.ADMIN: [{"administrator": []}],
    Access.PUBLIC: [],
    Access.CALLBACK: [],
}
_REASONS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted.",
    204: "Done; there is nothing to say.",
    304: "Not modified.",
}

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}

Mode = Literal["validation", "serialization"]


def document(
    routes: Iterable[Route], *, base_url: str, version: str, description: str = "", tags: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Return the document of every documented route. `tags`: descriptions by name."""
    shown = sorted((route for route in routes if route.documented), key=lambda route: (route.tag, route.path))
    schemas = _Schemas(shown)
    paths: dict[str, dict[str, Any]] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    used = dict.fromkeys(route.tag for route in shown)
    problems = {status for route in shown for status in statuses(route)}
    return {
        "openapi": VERSION,
        "info": {
            "title": "Recado",
            "version": version,
            "description": description or "Sends messages on many channels and tracks what becomes of each.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url.rstrip("/") or "/"}],
        "tags": [{"name": tag, "description": tags.get(tag, f"Operations on {tag}.")} for tag in used],
        "paths": paths,
        "components": {
            "securitySchemes": {
                name: SECURITY_SCHEMES[name]
                for name in dict.fromkeys(
                    name for route in shown for scheme in _SECURITY[route.access] for name in scheme
                )
            },
            "headers": HEADERS,
            "responses": problem_responses(problems),
            "schemas": {"Problem": PROBLEM_SCHEMA, **schemas.definitions},
        },
    }


class _Schemas:
    """The models of all routes as components. A model read and written in two shapes has two names."""

    def __init__(self, routes: Sequence[Route]) -> None:
        wanted: dict[tuple[type[BaseModel], Mode], None] = {}
        for route in routes:
            for model in (route.query, route.body, *route.spooled.values()):
                if model is not None:
                    wanted[model, "validation"] = None
            for answer in route.responses.values():
                if answer is not None:
                    wanted[answer, "serialization"] = None
        names, found = models_json_schema(list(wanted), ref_template=_REF + "{model}")
        definitions = {_name(name): _clean(schema) for name, schema in found.get("$defs", {}).items()}
        self._names = {key: _name(ref["$ref"].removeprefix(_REF)) for key, ref in names.items()}
        queries = {self._names[route.query, "validation"] for route in routes if route.query is not None}
        self._queries = {name: definitions[name] for name in queries}
        self.definitions = {name: schema for name, schema in definitions.items() if name not in queries}

    def ref(self, model: type[BaseModel], mode: Mode) -> dict[str, str]:
        """Return the reference to a model's schema."""
        return {"$ref": _REF + self._names[model, mode]}

    def parameters(self, model: type[BaseModel]) -> list[dict[str, Any]]:
        """Return the query parameters that `model` describes."""
        schema = self._queries[self._names[model, "validation"]]
        required = schema.get("required", ())
        return [_parameter(name, "query", field, name in required) for name, field in schema["properties"].items()]


def _name(name: str) -> str:
    """The name of a component: pydantic's, without the signs that it needs to tell two shapes of one model apart."""
    return name.replace("-Input", "Input").replace("-Output", "Output").lstrip("_")


def _clean(value: Any) -> Any:
    """A schema with every reference under its component's name, and without titles, which only repeat names."""
    if isinstance(value, dict):
        return {
            name: _clean(member) for name, member in value.items() if not (name == "title" and isinstance(member, str))
        }
    if isinstance(value, str):
        return _REF + _name(value.removeprefix(_REF)) if value.startswith(_REF) else value
    return [_clean(member) for member in value] if isinstance(value, list) else value


def _parameter(name: str, place: str, schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    # Bounds behind our own reading of numbers come under pydantic's names.
    schema = {_BOUNDS.get(name, name): member for name, member in schema.items()}
    description = schema.pop("description", None)
    options = schema.get("anyOf")
    if options is not None:  # a text parameter cannot be null: `X | None` is just not required
        options = [option for option in options if option != {"type": "null"}]
        del schema["anyOf"]
        schema |= options[0] if len(options) == 1 else {"anyOf": options}
    if schema.get("default", ...) is None:
        del schema["default"]
    parameter: dict[str, Any] = {"name": name, "in": place, "required": required, "schema": schema}
    if description:
        parameter["description"] = description
    return parameter


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "tags": [route.tag],
        "security": _SECURITY[route.access],
    }
    if description := _description(route):
        found["description"] = description
    if route.scope is not None:
        found["x-required-scope"] = route.scope
    if route.session_only:
        found["x-session-only"] = True
    if parameters := [*_path_parameters(route), *_query_parameters(route, schemas), *_header_parameters(route)]:
        found["parameters"] = parameters
    if route.body is not None:
        found["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": {"schema": schemas.ref(route.body, "validation")}},
        }
    elif route.spooled:
        content = {
            media_type: {"schema": {"type": "string"} if model is None else schemas.ref(model, "validation")}
            for media_type, model in route.spooled.items()
        }
        found["requestBody"] = {"required": True, "content": content}
    elif route.raw_body:
        found["requestBody"] = {"required": True, "content": {"*/*": {"schema": {}}}}
    found["responses"] = _responses(route, schemas)
    return found


def _description(route: Route) -> str:
    parts = [route.description] if route.description else []
    if route.scope is not None:
        parts.append(f"Needs the scope `{route.scope}`.")
    if route.session_only:
        parts.append("Needs a dashboard session.")
    return "\n\n".join(parts)


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    found = []
    for name in names:
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if prefix := route.path_ids.get(name):
            schema = {"type": "string", "pattern": f"^{prefix}[0-9A-Za-z]{{21}}$"}
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
    return found


def _query_parameters(route: Route, schemas: _Schemas) -> list[dict[str, Any]]:
    return schemas.parameters(route.query) if route.query is not None else []


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    found = []
    if route.idempotency is not Idempotency.NONE:
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
        found.append(_parameter("Idempotency-Key", "header", schema, route.idempotency is Idempotency.REQUIRED))
        found[-1]["description"] = "Repeats of the request with this key within 24 hours have no further effect."
    if route.matches or (route.versioned and route.method != "GET" and not route.creates):
        found.append(_parameter("If-Match", "header", {"type": "string"}, False))
        found[-1]["description"] = "The `ETag` of the version that the change is meant for, or `*`."
    if route.versioned and route.method == "GET":
        found.append(_parameter("If-None-Match", "header", {"type": "string"}, False))
        found[-1]["description"] = "The `ETag` of the version that the caller holds."
    return found


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, model in sorted(route.responses.items()):
        response: dict[str, Any] = {
            "description": _REASONS.get(status, "Answered."),
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in header_names(route, status)},
        }
        if model is not None:
            response["content"] = {"application/json": {"schema": schemas.ref(model, "serialization")}}
        elif status in route.response_types:
            response["content"] = {route.response_types[status]: {"schema": {}}}
        found[str(status)] = response
    if route.versioned and route.method == "GET":
        found["304"] = {
            "description": _REASONS[304],
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in header_names(route, 304)},
        }
    for status in statuses(route):
        found[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}
    return dict(sorted(found.items()))
