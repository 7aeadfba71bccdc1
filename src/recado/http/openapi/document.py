"""The OpenAPI 3.1 document, made from the table of routes: what it says is what the dispatcher does."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from recado.http.api.route import Access, Idempotency, Route
from recado.http.openapi.operation_examples import JSON, Exemplifier
from recado.http.openapi.problem_codes import problem_codes
from recado.http.openapi.schemas import Schemas
from recado.http.openapi.shared_parts import (
    HEADERS,
    PROBLEM_SCHEMA,
    SECURITY_SCHEMES,
    UNKNOWN_FIELDS,
    UNKNOWN_FIELDS_SCHEMA,
    ProblemResponses,
    header_names,
    names_unknown,
)
from recado.http.openapi.written_examples import Example
from recado.http.webhook_events import webhook

VERSION = "3.1.1"

_SECURITY: Mapping[Access, list[dict[str, list[str]]]] = {
    Access.KEY: [{"bearer": []}],
    Access.ADMIN: [{"administrator": []}],
    Access.PUBLIC: [],
    Access.CALLBACK: [],
}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
# A body that is taken as it is: with "*/*", or no format, generators of clients leave the operation out, or take text.
_BYTES = {"type": "string", "format": "binary"}
_RAW_TYPE = "application/octet-stream"
_OF_BYTES = {_RAW_TYPE, "image/gif"}
_REASONS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted.",
    204: "Done; there is nothing to say.",
    304: "Not modified.",
}


def document(
    routes: Iterable[Route],
    *,
    base_url: str,
    version: str,
    description: str = "",
    tags: Mapping[str, str] = {},
    events: Mapping[str, type[BaseModel]] = {},
    examples: Mapping[str, Example] = {},
) -> dict[str, Any]:
    """Return the document of every documented route.

    `tags`: descriptions by name, in the order of the document; `events`: the data of what webhooks are told, by name;
    `examples`: by operation; where there is none, it is made of the schemas.
    """
    shown = sorted((route for route in routes if route.documented), key=lambda route: (route.tag, route.path))
    schemas = Schemas(shown, events.values())
    problems = ProblemResponses(shown, base_url)
    exemplifier = Exemplifier(shown, schemas.definitions, examples, base_url)
    paths: dict[str, dict[str, Any]] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, problems)
    operations = [(route, paths[route.path][route.method.lower()]) for route in shown]
    for act in (exemplifier.learn, exemplifier.exemplify):
        for route, operation in operations:
            act(route, operation)
    shared = _share_headers(operation for _, operation in operations)
    used = dict.fromkeys(route.tag for route in shown)
    return {
        "openapi": VERSION,
        "info": {
            "title": "Recado",
            "version": version,
            "description": description or "Sends messages on many channels and tracks what becomes of each.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url.rstrip("/") or "/"}],
        "tags": [
            {"name": tag, "description": tags.get(tag, f"Operations on {tag}.")}
            for tag in {**tags, **used}
            if tag in used
        ],
        "paths": paths,
        "webhooks": {name: webhook(name, schemas.ref(data, "serialization")) for name, data in events.items()},
        "components": {
            "securitySchemes": {
                name: SECURITY_SCHEMES[name]
                for name in dict.fromkeys(
                    name for route in shown for scheme in _SECURITY[route.access] for name in scheme
                )
            },
            "headers": HEADERS,
            **({"parameters": shared} if shared else {}),
            "responses": problems.components,
            "examples": problems.examples,
            "schemas": {"Problem": PROBLEM_SCHEMA, UNKNOWN_FIELDS: UNKNOWN_FIELDS_SCHEMA, **schemas.definitions},
        },
    }


def _share_headers(operations: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The headers that any of many operations takes, by name: each operation refers to them."""
    shared: dict[str, Any] = {}
    for operation in operations:
        for place, parameter in enumerate(operation.get("parameters", ())):
            if parameter["in"] == "header" and not parameter.get("required"):
                name = parameter["name"]
                if shared.setdefault(name, parameter) == parameter:
                    operation["parameters"][place] = {"$ref": f"#/components/parameters/{name}"}
    return shared


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
    parameter: dict[str, Any] = {
        "name": name,
        "in": place,
        **({"required": True} if required else {}),
        "schema": schema,
    }
    if description:
        parameter["description"] = description
    return parameter


def _operation(route: Route, schemas: Schemas, problems: ProblemResponses) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "tags": [route.tag],
        "security": _SECURITY[route.access] + (_SECURITY[Access.ADMIN] if route.administered else []),
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
            "content": {JSON: {"schema": _body_schema(route.body, route, schemas)}},
        }
    elif route.spooled:
        content = {
            media_type: {"schema": _BYTES if model is None else schemas.ref(model, "validation")}
            for media_type, model in route.spooled.items()
        }
        found["requestBody"] = {"required": True, "content": content}
    elif route.raw_body:
        found["requestBody"] = {"required": True, "content": {_RAW_TYPE: {"schema": _BYTES}}}
    found["responses"] = _responses(route, schemas, problems)
    return found


def _body_schema(usual: type[BaseModel], route: Route, schemas: Schemas) -> dict[str, Any]:
    found = [schemas.ref(model, "validation") for model in (usual, *route.bodies.values())]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _description(route: Route) -> str:
    parts = [route.description] if route.description else []
    if route.scope is not None:
        needed = " or ".join(f"`{scope}`" for scope in (route.scope, *route.or_scopes))
        parts.append(f"Needs the scope {needed}{', as its body says' if route.or_scopes else ''}.")
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


def _query_parameters(route: Route, schemas: Schemas) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = schemas.query(route.query)
    required = schema.get("required", ())
    return [_parameter(name, "query", field, name in required) for name, field in schema["properties"].items()]


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    found = []
    for name, about in route.headers.items():
        found.append(_parameter(name, "header", {"type": "string", "minLength": 1}, True))
        found[-1]["description"] = about
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
    if names_unknown(route):
        found.append(_parameter("Prefer", "header", {"type": "string"}, False))
        found[-1]["description"] = (
            "`handling=strict`: fields and parameters that the operation does not know are refused."
        )
    return found


def _responses(route: Route, schemas: Schemas, problems: ProblemResponses) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, model in sorted(route.responses.items()):
        response: dict[str, Any] = {
            "description": _REASONS.get(status, "Answered."),
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in header_names(route, status)},
        }
        if model is not None:
            response["content"] = {JSON: {"schema": schemas.ref(model, "serialization")}}
        elif status in route.response_types:
            media_type = route.response_types[status]
            response["content"] = {media_type: {"schema": _BYTES if media_type in _OF_BYTES else {}}}
        found[str(status)] = response
    if route.versioned and route.method == "GET":
        found["304"] = {
            "description": _REASONS[304],
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in header_names(route, 304)},
        }
    for status, codes in problem_codes(route).items():
        found[str(status)] = problems.of(status, codes, route.response_types.get(status))
    return dict(sorted(found.items()))
