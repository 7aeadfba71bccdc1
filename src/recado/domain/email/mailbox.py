"""Mailboxes as callers write them: an address, or a name with an address in angle brackets (C10.2.1)."""

import re
from dataclasses import dataclass, field
from typing import Final

_ATOM: Final = r'[^\s@<>()\[\],;:"\\\x00-\x1f\x7f]+'
_LABEL: Final = _ATOM.replace("[^", "[^.")
_FORM: Final = rf"{_ATOM}@{_LABEL}(?:\.{_LABEL})*"
ADDRESS: Final = rf"^{_FORM}$"
"""What may stand in the head of a message as it is: nothing in it ends a line, or begins another address; no part of
its domain is empty."""

_ADDRESS: Final = re.compile(_FORM)
_NAMED: Final = re.compile(r'\s*(?:"([^"<>\\]*)"|([^"<>]*?))\s*<([^<>]*)>\s*')


@dataclass(frozen=True, slots=True)
class NamedAddress:
    """`name`: what other programs show of it."""

    address: str = field(repr=False)
    name: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """As a caller writes it."""
        return self.address if self.name is None else f"{self.name} <{self.address}>"

    @property
    def domain(self) -> str:
        """In lower case."""
        return self.address.rpartition("@")[2].lower()


def mailbox_of(text: str) -> NamedAddress | None:
    """The mailbox that a text is; None when it is none."""
    named = _NAMED.fullmatch(text)
    if named is None:
        return NamedAddress(text) if _ADDRESS.fullmatch(text) else None
    quoted, plain, address = named.groups()
    if not _ADDRESS.fullmatch(address):
        return None
    return NamedAddress(address, (quoted or plain or "").strip() or None)
