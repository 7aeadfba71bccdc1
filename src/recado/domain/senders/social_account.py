"""A social account: its platform's kind, its states, and the pace at which it sends (C26)."""

from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine

PER_SECOND: Final = 20
"""Messages of an account within a second: what leaves is written by people, in answer to people."""


class Platform(StrEnum):
    """What kind of account it is, without the name of a platform."""

    DIRECT = "direct"  # direct messages of a profile
    PAGE = "page"  # the inbox of a page


class SocialAccountStatus(StrEnum):
    """Only a `connected` one sends."""

    PENDING = "pending"  # waits for the customer to connect it
    CONNECTED = "connected"  # in service; the customer or the provider ends that
    DISCONNECTED = "disconnected"  # out of service; the customer connects it again


class SocialAccountEvent(StrEnum):
    """What happens to an account. The comments name who says so."""

    CONNECT = "connect"  # customer, once the provider has accepted it
    DISCONNECT = "disconnect"  # customer
    LOST = "lost"  # provider: its token is refused


_S = SocialAccountStatus
_E = SocialAccountEvent

SOCIAL_ACCOUNT_MACHINE: Final = Machine(
    "social account",
    {
        (_S.PENDING, _E.CONNECT): _S.CONNECTED,
        (_S.DISCONNECTED, _E.CONNECT): _S.CONNECTED,
        (_S.CONNECTED, _E.DISCONNECT): _S.DISCONNECTED,
        (_S.CONNECTED, _E.LOST): _S.DISCONNECTED,
    },
    initial={"registered": _S.PENDING, "sandbox": _S.CONNECTED},
)


def how_to_connect(status: SocialAccountStatus, account_id: str) -> str:
    """How an account in this state sends again: the rest of a sentence (C4.1)."""
    if status is _S.CONNECTED:
        return "it is in service already"
    return f"connect it with POST /v2/social/accounts/{account_id}/connect"
