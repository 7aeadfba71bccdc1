"""Which problems an operation can answer: by what its route says, and the codes that its handler adds (C4.2)."""

from recado.domain.core.errors import CODES, KINDS
from recado.http.api.models import QueryModel
from recado.http.api.paging import PeriodQuery
from recado.http.api.route import Access, Idempotency, Route


def problem_codes(route: Route) -> dict[int, tuple[str, ...]]:
    """Return every problem that an operation can answer, its own and those of the steps before it: codes by status."""
    found = {*_of_everyone(route), *_of_the_body(route), *_of_repeats(route), *_of_its_own(route)}
    if route.query is not None:
        found |= _of_the_query(route.query, route.bad_query_status)
    if "{" in route.path:
        found.add((404, "NOT_FOUND"))
    if route.creates or route.matches or (route.versioned and route.method != "GET"):
        found.add((412, "VERSION_MISMATCH"))
    catalogue = list(CODES)
    by_status: dict[int, tuple[str, ...]] = {}
    for status, code in sorted(found, key=lambda problem: (problem[0], catalogue.index(problem[1]))):
        by_status[status] = (*by_status.get(status, ()), code)
    return by_status


def _status(code: str) -> int:
    return CODES[code].status


def _of_its_own(route: Route) -> set[tuple[int, str]]:
    """`AUDIENCE_INVALID` is of the body, and has its status."""
    of_the_body = {"AUDIENCE_INVALID": route.bad_body_status}
    return {(of_the_body.get(code, _status(code)), code) for code in route.errors}


def _of_everyone(route: Route) -> set[tuple[int, str]]:
    """What the steps answer that look at no content: credential, rate, scope, suspension, and what is not even HTTP."""
    codes = {"BAD_REQUEST", "INTERNAL_ERROR"}
    if route.access is not Access.PUBLIC or route.rate_class:
        codes.add("RATE_LIMITED")
    if route.access is not Access.PUBLIC:
        codes.add("SERVICE_UNAVAILABLE")
    if route.access in {Access.KEY, Access.ADMIN}:
        codes.add("VALIDATION_ERROR")  # what it does not know, with `Prefer: handling=strict`
    if route.access is Access.ADMIN:
        codes |= {"UNAUTHORIZED", "ROUTE_NOT_FOUND"}
    if route.access is Access.KEY:
        codes |= {"UNAUTHORIZED", "API_KEY_EXPIRED", "API_KEY_REVOKED", "SESSION_EXPIRED", "IP_NOT_ALLOWED"}
        if route.scope is not None:
            codes.add("SCOPE_REQUIRED")
        if route.session_only:
            codes.add("SESSION_ONLY")
        if route.method not in {"GET", "HEAD"} and not route.while_suspended:
            codes.add("ORGANIZATION_SUSPENDED")
    return {(_status(code), code) for code in codes}


def _of_the_query(query: type[QueryModel], bad_status: int) -> set[tuple[int, str]]:
    if query.forgiving:
        return set()
    codes = {"INVALID_PARAMETER", KINDS[bad_status] if bad_status != 400 else "INVALID_PARAMETER"}
    if "cursor" in query.model_fields:
        codes.add("INVALID_CURSOR")
    if issubclass(query, PeriodQuery):
        codes.add(query.misordered)
    return {(_status(code), code) for code in codes}


def _of_the_body(route: Route) -> set[tuple[int, str]]:
    if route.body is None and not route.raw_body and not route.spooled:
        return set()
    codes = {"BODY_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "RATE_LIMITED", "SERVICE_UNAVAILABLE"}
    if route.body is not None:
        codes |= {"MALFORMED_JSON", "INVALID_CHARACTER", "VALIDATION_ERROR", KINDS[route.bad_body_status]}
    elif route.spooled:
        codes.add("VALIDATION_ERROR")
    return {(408, "BAD_REQUEST"), *((_status(code), code) for code in codes)}


def _of_repeats(route: Route) -> set[tuple[int, str]]:
    if route.idempotency is Idempotency.NONE:
        return set()
    codes = {"IDEMPOTENCY_KEY_INVALID", "IDEMPOTENCY_KEY_REUSED"}
    if route.idempotency is Idempotency.REQUIRED:
        codes.add("IDEMPOTENCY_KEY_REQUIRED")
    if route.idempotency is Idempotency.ACCEPTED or route.makes_no_row is not None:
        codes.add("IDEMPOTENCY_IN_PROGRESS")
    if route.idempotency is Idempotency.ACCEPTED and (route.creates or route.rotates):
        codes.add("CONFLICT")  # it was made, and its answer lost; or it was rotated since
    return {(_status(code), code) for code in codes}
