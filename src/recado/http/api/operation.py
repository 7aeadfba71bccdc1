"""A route made ready: everything about it that can be computed once, for the steps that run a thousand times."""

from pydantic import BaseModel

from recado.domain.core.errors import Problem
from recado.http.api.paging import ListedQuery
from recado.http.api.request_figures import Figures
from recado.http.api.route import MIB, Access, Idempotency, Route
from recado.http.bodies.body_reading import MOST_AT_ONCE, MOST_IN_LISTS, MOST_VALUES
from recado.http.bodies.parsing import QueryParser


class Operation:
    """See `Route`; the names are its own. `figures`: where its answers are counted."""

    __slots__ = (
        "administered", "bodies", "body", "by_key", "creates", "figures", "handler", "has_body", "idempotency",
        "keeps_answers", "lists", "load", "most_at_once", "most_values", "or_scopes", "path_ids", "query", "rate_class",
        "route", "scope", "spooled", "versioned", "writes",
    )  # fmt: skip

    def __init__(self, route: Route, figures: Figures) -> None:
        _check(route)
        self.route = route
        self.figures = figures
        self.handler = route.handler
        self.scope = route.scope
        self.or_scopes = route.or_scopes
        self.by_key = route.access is Access.KEY
        self.administered = route.administered
        self.rate_class = route.rate_class
        self.writes = route.method not in {"GET", "HEAD"}
        self.lists = self.by_key and route.query is not None and issubclass(route.query, ListedQuery)
        self.query = QueryParser(route.query, route.bad_query_status) if route.query is not None else None
        self.body: type[BaseModel] | None = route.body
        self.bodies = route.bodies
        self.most_at_once = MOST_AT_ONCE if route.body_limit <= MIB else MOST_IN_LISTS
        self.most_values = MOST_VALUES if route.body_limit <= MIB else None
        self.has_body = route.body is not None or route.raw_body
        self.spooled = frozenset(route.spooled)
        self.idempotency = route.idempotency is not Idempotency.NONE
        self.keeps_answers = route.idempotency is Idempotency.ACCEPTED
        self.path_ids = route.path_ids
        self.load = route.load
        self.versioned = (route.versioned or route.matches) and self.writes
        self.creates = route.creates


def _check(route: Route) -> None:
    """Refuse at start what would surprise at run time."""
    where = f"{route.method} {route.path}"
    if route.access is Access.KEY and not (route.rate_class and (route.scope or route.session_only)):
        raise ValueError(f"{where} needs a scope and a rate class")
    if route.access is not Access.KEY and route.scope is not None:
        raise ValueError(f"{where} asks for no credential that could hold a scope")
    if route.idempotency is not Idempotency.NONE and (route.method != "POST" or route.access is not Access.KEY):
        raise ValueError(f"{where} is no POST of a caller that an idempotency key could belong to")
    if route.administered and (route.access is not Access.KEY or route.session_only):
        raise ValueError(f"{where} is not for callers beside whom the administrator could be let in")
    if route.before_body is not None and route.access is Access.KEY:
        raise ValueError(f"{where} has callers who show a credential: they are told after it what is there")
    if unknown := [name for name in route.path_ids if "{" + name + "}" not in route.path]:
        raise ValueError(f"{where} has no parameter {unknown[0]}")
    if (route.body is not None) + route.raw_body + bool(route.spooled) > 1:
        raise ValueError(f"{where} takes its body in one way: parsed, left raw, or spooled")
    takes_a_body = route.body is not None or route.raw_body or bool(route.spooled)
    if route.examine is None and route.creates and takes_a_body:
        raise ValueError(
            f"{where} is a create: it says what examines its body before an If-Match (`as_modelled`: nothing)"
        )
    if route.examine is not None and not route.creates:
        raise ValueError(f"{where} is no create: what it refuses before another version stands in its handler")


def session_needed() -> Problem:
    """Return the 403 for an API key where only a person's session is served."""
    return Problem(
        "SESSION_ONLY",
        "This operation needs a dashboard session, which POST /v2/sessions opens; an API key cannot call it.",
    )


def missing_scope(scope: str) -> Problem:
    """Return the 403 for a credential without `scope`."""
    return Problem(
        "SCOPE_REQUIRED",
        f"This operation needs the scope {scope}, which the credential does not hold.",
        meta={"requiredScope": scope},
    )


def organization_suspended() -> Problem:
    """Return the 403 for a write of a suspended organization."""
    return Problem(
        "ORGANIZATION_SUSPENDED",
        "The organization is suspended: only reads are possible until its administrator reactivates it.",
    )
