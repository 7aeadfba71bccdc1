"""Whether a cell has what a request shows: a credential, a code, the address of an account, an organization.

Nothing is changed, and nothing else of the record is read.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("whereabouts")

Shown = bytes | str
"""The hash of a token (32 bytes), or the text itself of what is no secret where it stands."""


class Shows(StrEnum):
    """By what an organization is found; the values name the statements."""

    KEY = "key"  # hash of an API key's token
    SESSION = "session"  # hash of a session's token
    INVITE = "invite"  # hash of an invitation's token
    EMAIL = "email"  # of an account, as `email_key` makes it
    LINK = "link"  # code of a link in a message
    CHAT = "chat"  # slug of a link to a chat
    ORGANIZATION = "organization"  # its id


async def having(executor: Executor, shows: Shows, shown: Sequence[Shown]) -> Mapping[Shown, bool]:
    """Of what this cell has: whether its organization stands still for a move, or has left already."""
    rows = await executor.fetch(getattr(SQL, shows.value), list(shown))
    return {row["key"]: row["moving"] for row in rows}
