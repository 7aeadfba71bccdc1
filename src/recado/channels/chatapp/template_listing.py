"""What a provider lists of its templates: one that cannot be read is left out and told, and costs no other (C11.1)."""

import structlog

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.provider import Account, ProviderTemplate

log = structlog.get_logger(__name__)


class TemplateListing:
    """Takes them one by one."""

    def __init__(self) -> None:
        self._templates: list[ProviderTemplate] = []
        self._left_out = 0
        self._first: str | None = None

    def take(self, read: ProviderTemplate | MalformedCallback | None) -> None:
        """One, as it was read; None: it is none that this service could send."""
        if isinstance(read, ProviderTemplate):
            self._templates.append(read)
        elif read is not None:
            self._left_out += 1
            self._first = self._first or read.where

    def ended(self, account: Account) -> list[ProviderTemplate]:
        """Those that could be read. The place of the first of the others is logged: a field, never its value."""
        if self._left_out:
            log.warning(
                "templates_left_out", number=account.sender_id, env=account.env, count=self._left_out, first=self._first
            )
        return self._templates
