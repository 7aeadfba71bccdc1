"""All operations on people of an organization: their accounts (C24.2) and their sessions (C24.3)."""

from recado.http.api.route import Route
from recado.http.routes.access.accounts import account_resource, account_routes
from recado.http.routes.access.sessions import session_routes
from recado.http.routes.core.dependencies import Dependencies
from recado.storage.access.passwords import Passwords


def people_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """Both share the two derivations of passwords at a time."""
    accounts, passwords = account_resource(dependencies), Passwords(dependencies.random_bytes)
    return (*account_routes(accounts, passwords), *session_routes(accounts, passwords))
