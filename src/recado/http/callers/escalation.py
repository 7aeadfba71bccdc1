"""Nobody grants what he does not hold himself (C24.2, C24.4), nor changes an account that holds more (C24.2)."""

from collections.abc import Iterable

from recado.domain.core.errors import Problem
from recado.http.api.call import Call


def refuse_escalation(call: Call, scopes: Iterable[str]) -> None:
    """Raise SCOPE_ESCALATION (403) when the caller would grant some of `scopes` beyond its own."""
    _refuse_beyond(call, scopes, "This credential does not hold what it would grant")


def refuse_change_of_superior(call: Call, scopes: Iterable[str]) -> None:
    """Raise SCOPE_ESCALATION (403) when the account to change holds some `scopes` that the caller lacks."""
    _refuse_beyond(call, scopes, "This credential lacks scopes of the account that it would change")


def _refuse_beyond(call: Call, scopes: Iterable[str], why: str) -> None:
    beyond = sorted(set(scopes) - call.principal.scopes)
    if beyond:
        raise Problem("SCOPE_ESCALATION", f"{why}: {', '.join(beyond)}.", meta={"scopes": beyond})
