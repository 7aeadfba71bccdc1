"""The scopes that operations ask for, and who may hold which (C3.2, C34.1)."""

from collections.abc import Iterable
from typing import Final

ALL_SCOPES: Final = frozenset(
    {
        "accounts:read",
        "accounts:write",
        "apikeys:read",
        "apikeys:write",
        "audit:read",
        "campaigns:read",
        "campaigns:write",
        "contacts:pii",
        "contacts:read",
        "contacts:write",
        "crm:read",
        "crm:write",
        "email:read",
        "email:send",
        "email:write",
        "flows:read",
        "flows:write",
        "messages:force",
        "messages:read",
        "messages:send",
        "numbers:read",
        "numbers:write",
        "ops:read",
        "ops:write",
        "org:read",
        "org:write",
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
        "wallet:write",
        "webhooks:read",
        "webhooks:write",
    }
)

PII: Final = "pii:full"
"""Shows phones and addresses in the clear (C2.5)."""

SESSION_ONLY: Final = frozenset({"accounts:read", "accounts:write", "contacts:pii"})
"""Scopes that no API key can be granted (C24.4)."""

KEY_SCOPES: Final = ALL_SCOPES - SESSION_ONLY

_IMPLIED: dict[str, frozenset[str]] = {"push:send": frozenset({"push:register"})}


def implied(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes granted, with those that they imply."""
    granted = frozenset(scopes)
    return granted.union(*(_IMPLIED.get(scope, frozenset()) for scope in granted))
