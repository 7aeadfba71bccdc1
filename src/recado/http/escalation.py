"""Nobody grants what he does not hold (C24.2, C24.4)."""

from collections.abc import Iterable

from recado.domain.errors import Problem
from recado.http.call import Call


def refuse_escalation(call: Call, scopes: Iterable[str]) -> None:
    """Raise SCOPE_ESCALATION (403) when the caller would grant some of `scopes` beyond its own."""
    beyond = sorted(set(scopes) - call.principal.scopes)
    if beyond:
        raise Problem(
            "SCOPE_ESCALATION",
            f"This credential does not hold what it would grant: {', '.join(beyond)}.",
            meta={"scopes": beyond},
        )
