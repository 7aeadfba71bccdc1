"""The parts of the OpenAPI document that are the same for every operation: problems, headers, credentials."""

from collections.abc import Iterable
from typing import Any

from recado.domain.errors import CODES, KINDS
from recado.http.route import Access, Route

SECURITY_SCHEMES: dict[str, Any] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`svc_live_…`, `svc_test_…`) or a dashboard session (`svcs_live_…`, `svcs_test_…`). "
        "Its prefix chooses the environment.",
    },
    "administrator": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of the installation's administrator.",
    },
}

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "What went wrong (RFC 7807). `code` is stable; `detail` never holds personal data.",
    "required": ["type", "title", "status", "detail", "instance", "code", "kind", "requestId"],
    "properties": {
        "type": {"type": "string", "description": "An address that names the code."},
        "title": {"type": "string", "description": "Fixed per code."},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "This occurrence."},
        "instance": {"type": "string", "description": "The path of the request, without its query."},
        "code": {"type": "string", "pattern": "^[A-Z][A-Z0-9_]*$"},
        "kind": {"type": "string", "enum": sorted(set(KINDS.values()))},
        "requestId": {"type": "string", "pattern": "^req_[0-9A-Za-z]{21}$"},
        "errors": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "type": "object",
                "required": ["path", "code", "message"],
                "properties": {
                    "path": {"type": "string", "description": "A JSON pointer, or the name of a parameter."},
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                },
            },
        },
        "meta": {"type": "object", "description": "Per code."},
    },
}

HEADERS: dict[str, Any] = {
    "X-Request-Id": {
        "description": "The id of this request, also in the service's log.",
        "schema": {"type": "string", "pattern": "^req_[0-9A-Za-z]{21}$"},
    },
    "RateLimit-Policy": {
        "description": 'The limit that the request was counted in: `"<class>";q=<capacity>;w=<seconds>`.',
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": 'What is left of it: `"<class>";r=<tokens>;t=<seconds until full>`.',
        "schema": {"type": "string"},
    },
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"description": "The credential that is asked for.", "schema": {"type": "string"}},
    "ETag": {"description": "The version of the record.", "schema": {"type": "string"}},
}

_WHAT = {
    400: "The request is not well formed.",
    401: "There is no valid credential.",
    402: "The balance does not suffice.",
    403: "The credential does not allow this.",
    404: "There is no such resource here.",
    408: "The body stopped arriving.",
    409: "The present state does not allow this.",
    412: "The record has another version.",
    413: "The body is too large.",
    415: "The body is of another media type.",
    416: "The range lies outside.",
    422: "The values are not acceptable.",
    429: "Too many requests of this class.",
    500: "The service failed.",
    502: "A provider failed.",
    503: "The service cannot take the request now; nothing was done.",
}
_EXTRA_HEADERS = {401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}


def problem_responses(statuses: Iterable[int]) -> dict[str, Any]:
    """Return the components `Problem<status>`."""
    return {f"Problem{status}": _problem_response(status) for status in sorted(statuses)}


def header_names(route: Route, status: int) -> list[str]:
    """Return the names of the headers that an answer of `route` carries."""
    names = ["X-Request-Id"]
    if route.access is Access.KEY:
        names += ["RateLimit-Policy", "RateLimit"]
    if route.versioned and status in {200, 201, 304}:
        names.append("ETag")
    return names


def _problem_response(status: int) -> dict[str, Any]:
    codes = ", ".join(f"`{code}`" for code, entry in CODES.items() if entry.status == status)
    headers = ["X-Request-Id", *_EXTRA_HEADERS.get(status, ())]
    return {
        "description": _WHAT[status] + (f" Codes of this status: {codes}." if codes else ""),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
