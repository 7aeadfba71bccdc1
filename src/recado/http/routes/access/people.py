"""All operations on people of an organization: their accounts (C24.2) and their sessions (C24.3)."""

from collections.abc import Callable

from recado.domain.core.ids import IdSource
from recado.http.api.route import Route
from recado.http.routes.access.accounts import account_routes
from recado.http.routes.access.sessions import session_routes
from recado.storage.access.passwords import Passwords
from recado.storage.access.session_directory import SessionDirectory
from recado.storage.core.postgres import Database


def people_routes(
    *, database: Database, ids: IdSource, sessions: SessionDirectory, random_bytes: Callable[[int], bytes]
) -> tuple[Route, ...]:
    """`random_bytes`: unpredictable ones, for tokens and salts. Both share the two derivations at a time."""
    passwords = Passwords(random_bytes)
    return (
        *account_routes(database=database, ids=ids, sessions=sessions, passwords=passwords, random_bytes=random_bytes),
        *session_routes(database=database, ids=ids, sessions=sessions, passwords=passwords, random_bytes=random_bytes),
    )
