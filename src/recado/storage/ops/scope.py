"""Whose records an operator sees."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Scope:
    """An environment of an organization, or with empty fields the whole installation (C34.1)."""

    organization_id: str = ""
    env: str = ""

    @property
    def whole(self) -> bool:
        """Whether it is the administrator's."""
        return not self.organization_id

    def holds(self, organization_id: str, env: str) -> bool:
        """Whether what belongs there is in it."""
        return self.whole or (self.organization_id == organization_id and self.env == env)


INSTALLATION: Final = Scope()
