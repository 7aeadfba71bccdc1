"""Domains of e-mail addresses: the one form in which servers and comparisons have them."""

from typing import Final

import idna

ADDRESS_FORM: Final = r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+"
"""An address that something could be sent to: its domain has two parts or more, and none is empty."""


def ascii_domain(domain: str) -> str:
    """In lower case; one outside of ASCII as it is looked up (IDNA, UTS 46). Raises `ValueError` for what is none."""
    if not domain.isascii():
        domain = idna.encode(domain, uts46=True).decode()
    return domain.lower()
