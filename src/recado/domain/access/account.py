"""Accounts of people: their states, their roles and what these allow (C3.3, C24.2)."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from recado.domain.access.scopes import ALL_SCOPES, implied
from recado.domain.core.machine import Machine


class AccountStatus(StrEnum):
    """Only an `active` account signs in."""

    INVITED = "invited"  # has no password yet
    ACTIVE = "active"
    DISABLED = "disabled"  # by DELETE; its sessions have ended


class AccountEvent(StrEnum):
    """What happens to an account."""

    INVITE = "invite"  # again, with a new token: a lost invitation, or a way back for a disabled account
    ACCEPT = "accept"  # the invited person chose a password
    DISABLE = "disable"


class Role(StrEnum):
    """What an account is for."""

    OWNER = "owner"
    ADMIN = "admin"
    OPERATOR = "operator"
    ANALYST = "analyst"


_S = AccountStatus
_E = AccountEvent

ACCOUNT_MACHINE: Final = Machine(
    "account",
    {
        (_S.INVITED, _E.INVITE): _S.INVITED,
        (_S.INVITED, _E.ACCEPT): _S.ACTIVE,
        (_S.INVITED, _E.DISABLE): _S.DISABLED,
        (_S.ACTIVE, _E.DISABLE): _S.DISABLED,
        (_S.DISABLED, _E.DISABLE): _S.DISABLED,
        (_S.DISABLED, _E.INVITE): _S.INVITED,
    },
    initial={"created": _S.INVITED},
)

OPERATOR_SCOPES: Final = frozenset(
    {
        "campaigns:read",
        "campaigns:write",
        "contacts:read",
        "contacts:write",
        "crm:read",
        "crm:write",
        "email:read",
        "email:send",
        "email:write",
        "flows:read",
        "flows:write",
        "messages:read",
        "messages:send",
        "numbers:read",
        "ops:read",
        "ops:write",
        "org:read",
        "pii:full",
        "push:read",
        "push:register",
        "push:send",
        "rcs:read",
        "rcs:send",
        "sms:read",
        "sms:send",
        "social:read",
        "social:write",
        "templates:read",
        "templates:write",
        "wallet:read",
        "webhooks:read",
    }
)

ANALYST_SCOPES: Final = frozenset(scope for scope in ALL_SCOPES if scope.endswith(":read"))

ROLE_SCOPES: Final = {
    Role.OWNER: ALL_SCOPES,
    Role.ADMIN: ALL_SCOPES,
    Role.OPERATOR: OPERATOR_SCOPES,
    Role.ANALYST: ANALYST_SCOPES,
}


def scopes_of(role: str, extra_scopes: Iterable[str] = ()) -> frozenset[str]:
    """The scopes of an account (C3.3), with those that they imply."""
    return implied(ROLE_SCOPES[Role(role)].union(extra_scopes))
