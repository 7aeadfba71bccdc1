"""404 answers that say what does not exist: the record that the path names, or the route and the one most like it."""

from collections.abc import Mapping

from recado.domain.errors import NO_SUCH_RESOURCE, Problem
from recado.domain.ids import is_id
from recado.domain.references import KINDS, no_such
from recado.http.call import Call


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
    hint = "" if similar is None else f" Did you mean {similar}?"
    return Problem("ROUTE_NOT_FOUND", f"There is no such route.{hint} GET /v2/openapi.json lists all routes.")
