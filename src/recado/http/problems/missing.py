"""404 and 405 answers that say what does not exist: the record that the path names, or the route and what was meant."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from recado.domain.core.errors import NO_SUCH_RESOURCE, Problem, not_found
from recado.domain.core.ids import is_id
from recado.domain.core.references import KINDS, no_such
from recado.http.api.call import Call

T = TypeVar("T")


def found(record: T | None) -> T:
    """Return the record that was looked for; 404 when there is none."""
    if record is None:
        raise not_found()
    return record


def missing_record(path_ids: Mapping[str, str], call: Call) -> str:
    """Return the sentence on the record at the path of `call`; the same for a foreign record as for none (C2.2)."""
    if not path_ids:
        return NO_SUCH_RESOURCE
    env = call.principal.env
    given = [(prefix, call.path[name]) for name, prefix in path_ids.items()]
    for prefix, value in given:
        if not is_id(prefix, value):
            return no_such(prefix, value, env)
    # The last parameter is the record itself; the ones before it say whose it is.
    *owners, (prefix, value) = given
    whose = "".join(f" of {KINDS[kind]} {owner}" for kind, owner in reversed(owners))
    return f"No {KINDS[prefix]} {value}{whose} in {env}." if whose else no_such(prefix, value, env)


def no_page(detail: str) -> Problem:
    """Return the 404 for a page for people that is not there."""
    return Problem("ROUTE_NOT_FOUND", detail)


def no_route(similar: str | None) -> Problem:
    """Return the 404 for a path without operation, with the route that is most like it, if there is one."""
    return Problem("ROUTE_NOT_FOUND", f"There is no such route.{_hint(similar)} GET /v2/openapi.json lists all routes.")


def no_method(methods: Collection[str], meant: str | None) -> Problem:
    """Return the 405 for a path that takes only these methods, with the operation that was probably meant."""
    allowed = sorted({*methods, "HEAD"} if "GET" in methods else methods)
    return Problem(
        "METHOD_NOT_ALLOWED",
        f"This route takes only {' and '.join(sorted(methods))}.{_hint(meant)}",
        headers={"Allow": ", ".join(allowed)},
    )


def _hint(meant: str | None) -> str:
    return "" if meant is None else f" Did you mean {meant}?"
