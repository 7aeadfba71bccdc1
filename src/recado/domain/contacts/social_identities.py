"""Whom a contact is at social accounts: pairs of account and user id, as callers give them (C12.3, C26)."""

from typing import Any, Final, NamedTuple

from recado.domain.core.ids import SOCIAL_ACCOUNT, is_id
from recado.domain.core.reading import Refusal, items, members, text

MOST_IDENTITIES: Final = 20
MOST_USER_ID: Final = 128


class SocialIdentity(NamedTuple):
    """A user of the platform, as one account there sees it."""

    account_id: str
    user_id: str

    @property
    def stored(self) -> str:
        """As its contact holds it: account, a space, and user id."""
        return f"{self.account_id} {self.user_id}"

    @classmethod
    def of(cls, stored: str) -> "SocialIdentity":
        account_id, _, user_id = stored.partition(" ")
        return cls(account_id, user_id)


def read_identities(value: Any) -> tuple[str, ...]:
    """At most 20, each once, as they are stored; raises Refusal."""
    found = []
    for position, item in enumerate(items(value, MOST_IDENTITIES)):
        try:
            found.append(_identity(item).stored)
        except Refusal as refusal:
            raise refusal.under(position) from None
    return tuple(dict.fromkeys(found))


def _identity(value: Any) -> SocialIdentity:
    given = members(value)
    for name in ("socialAccountId", "userId"):
        if given.get(name) is None:
            raise Refusal("REQUIRED", "is required", f"/{name}")
    account_id = given["socialAccountId"]
    if not isinstance(account_id, str) or not is_id(SOCIAL_ACCOUNT, account_id):
        raise Refusal("REFERENCE_NOT_FOUND", "is not the id of a social account", "/socialAccountId")
    try:
        return SocialIdentity(account_id, text(given["userId"], MOST_USER_ID))
    except Refusal as refusal:
        raise refusal.under("userId") from None
