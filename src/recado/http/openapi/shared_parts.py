"""The parts of the OpenAPI document that are the same for every operation: problems, headers, credentials."""

from collections.abc import Iterable
from typing import Any

from recado.domain.core.errors import CODES, KINDS
from recado.http.api.route import Access, Idempotency, Route
from recado.http.bodies.unknown_fields import HEADER as WARNINGS
from recado.http.openapi.problem_codes import problem_codes
from recado.http.problems.problem_texts import explained
from recado.http.problems.problems import ProblemRenderer
from recado.http.wire.reply import REPLAYED

(REPLAYED_NAME,) = REPLAYED

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

UNKNOWN_FIELDS = "UnknownFields"
UNKNOWN_FIELDS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "maxItems": 50,
    "description": "Of a write: fields and parameters of the request that the operation does not know, and ignored. "
    "With `Prefer: handling=strict` they are refused.",
    "items": {
        "type": "object",
        "required": ["code", "path", "detail"],
        "properties": {
            "code": {"type": "string", "const": "UNKNOWN_FIELD"},
            "path": {"type": "string", "description": "A JSON pointer, or the name of a parameter."},
            "detail": {"type": "string"},
        },
    },
}

HEADERS: dict[str, Any] = {
    "X-Request-Id": {
        "description": "The id of this request, also in the service's log.",
        "schema": {"type": "string", "pattern": "^req_[0-9A-Za-z]{21}$"},
    },
    "Cache-Control": {
        "description": "`no-store`, but for documents and files that are the same for everybody.",
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": "The limit that the request was counted in, where its credential has one: "
        '`"<class>";q=<capacity>;w=<seconds>`.',
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": 'What is left of it: `"<class>";r=<tokens>;t=<seconds until full>`.',
        "schema": {"type": "string"},
    },
    REPLAYED_NAME: {
        "description": "What an earlier request under the same `Idempotency-Key` did is answered.",
        "schema": {"type": "string", "const": "true"},
    },
    "Location": {"description": "Where to go on.", "schema": {"type": "string", "format": "uri"}},
    "Content-Range": {"description": "Which part of the file it is.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"description": "The credential that is asked for.", "schema": {"type": "string"}},
    "ETag": {"description": "The version of the record.", "schema": {"type": "string"}},
    WARNINGS: {
        "description": "Where the answer has no `warnings`: fields and parameters of the request that the operation "
        "does not know, and ignored. A JSON array of the first ten, each with `code` and `path`, "
        "and with `detail` where it says what was probably meant.",
        "schema": {"type": "string", "contentMediaType": "application/json"},
    },
}

_WHAT = {
    400: "The request is not well formed.",
    401: "There is no valid credential.",
    402: "The balance does not suffice.",
    403: "The credential does not allow this.",
    404: "There is no such resource here.",
    408: "The body did not arrive: no byte for 30 seconds.",
    409: "The present state does not allow this.",
    412: "The record has another version.",
    413: "The body is too large.",
    415: "The body is of another media type.",
    416: "The range lies outside.",
    422: "The values are not acceptable.",
    429: "Too many requests of this class.",
    500: "The service failed.",
    502: "A provider failed.",
    503: (
        "The service cannot answer now. Whether the request was carried out is not always known: "
        "repeat it, a write with its `Idempotency-Key`."
    ),
}
_READ = (400, 402, 404, 409, 412, 422, 502)  # found out when the request was read
_OF_ALL = ("X-Request-Id", "Cache-Control")
_OF_STATUS = {302: ("Location",), 206: ("Content-Range",)}
_LIMITS = ("RateLimit-Policy", "RateLimit")
_EXTRA_HEADERS = {
    401: ["WWW-Authenticate"],
    429: ["Retry-After"],
    503: ["Retry-After", WARNINGS],
    **{status: [WARNINGS] for status in _READ},
}


class ProblemResponses:
    """The responses of problems: by status and codes. Each is a component: those that are alike stand together, and so
    the document is compressed better.

    Each code has one example under each of its statuses, a component too.
    """

    def __init__(self, routes: Iterable[Route], base_url: str) -> None:
        """`base_url`: as in the `type` of problems."""
        used: dict[tuple[int, tuple[str, ...]], list[str]] = {}  # by which operations, as nothing but a problem
        self._limited: set[tuple[int, tuple[str, ...]]] = set()  # those of requests that are counted by credential
        for route in routes:
            for status, codes in problem_codes(route).items():
                by = used.setdefault((status, codes), [])
                if route.access is Access.KEY and status != 401:
                    self._limited.add((status, codes))
                if status not in route.response_types:
                    by.append(route.operation_id)
        common: dict[int, set[str]] = {}
        for status, codes in used:
            common[status] = common.get(status, set(codes)) & set(codes)
        self._names = {
            (status, codes): (
                f"Problem{status}{''.join(_camel(code) for code in codes if code not in common[status])}"
                if len(operations) > 1
                else f"{operations[0][0].upper()}{operations[0][1:]}{status}"
            )
            for (status, codes), operations in sorted(used.items())
            if operations
        }
        self.components = {name: self._response(*problem) for problem, name in self._names.items()}
        renderer = ProblemRenderer(base_url)
        self.examples = {
            _example_name(status, code): _problem_example(status, code, renderer)
            for status, code in sorted({(status, code) for status, codes in used for code in codes})
        }

    def of(self, status: int, codes: tuple[str, ...], other_type: str | None = None) -> dict[str, Any]:
        """Return the response, or the reference to it. `other_type`: what it may be instead of a problem."""
        name = self._names.get((status, codes))
        if name is not None and other_type is None:
            return {"$ref": f"#/components/responses/{name}"}
        response = self._response(status, codes)
        if other_type is not None:
            response["content"][other_type] = {"schema": {}}
        return response

    def _response(self, status: int, codes: tuple[str, ...]) -> dict[str, Any]:
        limits = _LIMITS if (status, codes) in self._limited else ()
        later = ("Retry-After",) if "IDEMPOTENCY_IN_PROGRESS" in codes else ()
        return _problem_response(status, codes, [*_OF_ALL, *limits, *later, *_EXTRA_HEADERS.get(status, ())])


def header_names(route: Route, status: int) -> list[str]:
    """Return the names of the headers that an answer of `route` carries."""
    names = [*_OF_ALL]
    if route.access is Access.KEY:
        names += _LIMITS
    if route.idempotency is not Idempotency.NONE and status < 300:
        names.append(REPLAYED_NAME)
    names += _OF_STATUS.get(status, ())
    if route.versioned and status in {200, 201, 304}:
        names.append("ETag")
    if names_unknown(route) and (route.method == "GET" or route.responses.get(status) is None):
        names.append(WARNINGS)
    return names


def names_unknown(route: Route) -> bool:
    """Whether callers hear of what the operation does not know, and may have it refused (C2.3.1)."""
    return route.access in {Access.KEY, Access.ADMIN}


def _camel(code: str) -> str:
    return code.title().replace("_", "")


def _example_name(status: int, code: str) -> str:
    return _camel(code) if status == CODES[code].status else f"{_camel(code)}{status}"


def _problem_example(status: int, code: str, renderer: ProblemRenderer) -> dict[str, Any]:
    body = {**explained()[code].example, "status": status, "kind": KINDS[status], "type": renderer.type_of(code)}
    return {"summary": CODES[code].title, "value": body}


def _problem_response(status: int, codes: tuple[str, ...], headers: Iterable[str]) -> dict[str, Any]:
    titles = "".join(f"\n- `{code}`: {CODES[code].title}." for code in codes)
    # The codes stand beside the one reference, not as a second part: generators of clients keep to one class then.
    schema = {"allOf": [{"$ref": "#/components/schemas/Problem"}], "properties": {"code": {"enum": list(codes)}}}
    return {
        "description": f"{_WHAT[status]}\n{titles}",
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {
            "application/problem+json": {
                "schema": schema,
                "examples": {code: {"$ref": f"#/components/examples/{_example_name(status, code)}"} for code in codes},
            }
        },
    }
